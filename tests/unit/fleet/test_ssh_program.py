"""The ssh command that a route becomes, as OpenSSH itself reads it."""

import getpass
import shlex
import subprocess
from pathlib import Path

import pytest

from lumctl.fleet.ssh.routes import SshRoute, ssh_command

HOME = Path("/home/op")


def route(**changed):
    values = {
        "label": "n1",
        "address": "10.0.0.7",
        "port": 22,
        "user": "ops",
        "key_files": (),
        "certificate_files": (),
        "only_these_keys": False,
        "known_hosts": (HOME / ".ssh/known_hosts",),
        "key_name": "10.0.0.7",
    }
    return SshRoute(**{**values, **changed})


@pytest.fixture
def read(require_program):
    """What OpenSSH makes of a command, by the names of its options."""
    require_program("ssh")

    def asked(command):
        answer = subprocess.run([command[0], "-G", *command[1:]], check=True, capture_output=True, text=True)
        found = {}
        for line in answer.stdout.splitlines():
            name, _, value = line.partition(" ")
            found.setdefault(name, []).append(value)
        return found

    return asked


def test_a_host_as_our_sessions_reach_it(read):
    key = HOME / "keys 50%/id"
    command = ssh_command(route(port=2222, key_files=(key,), only_these_keys=True, key_name="[10.0.0.7]:2222"))
    said = read(command)
    assert (said["hostname"], said["port"], said["user"]) == (["10.0.0.7"], ["2222"], ["ops"])
    assert said["identityfile"] == ["/home/op/keys 50%%/id"]
    assert said["identitiesonly"] == ["yes"]
    assert said["stricthostkeychecking"] == ["true"]
    assert said["userknownhostsfile"] == ["/home/op/.ssh/known_hosts"]
    assert said["globalknownhostsfile"] == ["/dev/null"]
    assert "hostkeyalias" not in said


def test_no_file_of_ours_says_anything_beside_the_route(tmp_path, monkeypatch, read):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text("Host *\n  StrictHostKeyChecking no\n  Port 99\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read(ssh_command(route()))["port"] == ["22"]


def test_files_with_spaces_and_a_name_in_them(read):
    files = (HOME / "two words", HOME / "other")
    said = read(ssh_command(route(known_hosts=files, key_name="rack-7")))
    assert said["userknownhostsfile"] == ["/home/op/two words /home/op/other"]
    assert said["hostkeyalias"] == ["rack-7"]


def test_jump_hosts_have_their_own_keys_and_known_hosts(read):
    first = route(address="gate", user="ann", key_files=(HOME / "gate key",), key_name="gate")
    second = route(address="fd00::2", port=2002, jump=first, key_name="[fd00::2]:2002")
    said = read(ssh_command(route(jump=second)))
    way = shlex.split(said["proxycommand"][0].replace("%%", "%"))
    assert way[0] == "ssh"
    assert way[-4:] == ["-W", "[10.0.0.7]:22", "--", "fd00::2"]
    before = shlex.split(read([word for word in way if word != "-W"])["proxycommand"][0].replace("%%", "%"))
    assert before[-4:] == ["-W", "[fd00::2]:2002", "--", "gate"]
    assert 'IdentityFile="/home/op/gate key"' in before
    assert before[before.index("-l") + 1] == "ann"


def test_a_proxy_command_is_taken_as_it_was_expanded(read):
    assert read(ssh_command(route(proxy_command="nc 100% h 22")))["proxycommand"] == ["nc 100%% h 22"]


@pytest.mark.parametrize("address", ["-oProxyCommand=touch /tmp/x", "$(reboot)", "a; reboot"])
def test_an_address_is_one_word_and_never_an_option(address):
    command = ssh_command(route(address=address, user=getpass.getuser()))
    assert command[-2:] == ("--", address)
