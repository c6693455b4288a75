import getpass
from pathlib import Path

import pytest

from lumctl.devices.endpoints import HostEndpoint
from lumctl.errors import UsageError
from lumctl.fleet.ssh.routes import Routes
from lumctl.inventory.model import SshSettings

CONFIG = """
Host bastion
    User gate
    Port 2022

Host h*
    HostName %h.rack.example
    User operator
    Port 2200
    IdentityFile ~/.ssh/rack
    UserKnownHostsFile /etc/rack/known_hosts /etc/rack/more
    StrictHostKeyChecking no
    ProxyJump bastion

Host odd
    HostKeyAlias odd-one
    ProxyCommand nc %h %p
"""


@pytest.fixture
def route(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    config = tmp_path / "config"
    config.write_text(CONFIG)

    def find(address, known_hosts=None, **ssh):
        settings = SshSettings(**{"config_file": config, **ssh})
        return Routes().of(HostEndpoint("name", address, settings, known_hosts))

    return find


def test_the_client_configuration_is_honoured(route, tmp_path):
    found = route("h01")
    assert (found.address, found.port, found.user) == ("h01.rack.example", 2200, "operator")
    assert found.key_files == (tmp_path / ".ssh/rack",)
    assert not found.only_these_keys
    assert found.known_hosts[:2] == (Path("/etc/rack/known_hosts"), Path("/etc/rack/more"))
    assert found.key_name == "[h01.rack.example]:2200"
    assert found.jump is not None
    assert (found.jump.address, found.jump.port, found.jump.user) == ("bastion", 2022, "gate")


def test_the_inventory_wins(route, tmp_path):
    mine = tmp_path / "mine"
    found = route("h01", user="me", port=22, key_file=mine, jump="none", known_hosts=tmp_path / "own")
    assert (found.user, found.port, found.key_files, found.only_these_keys) == ("me", 22, (mine,), True)
    assert (found.jump, found.known_hosts, found.key_name) == (None, (tmp_path / "own",), "h01.rack.example")


def test_nothing_said_anywhere(route):
    found = route("10.0.0.7")
    assert (found.address, found.port, found.user) == ("10.0.0.7", 22, getpass.getuser())
    assert (found.key_files, found.jump, found.key_name) == ((), None, "10.0.0.7")


def test_keys_of_the_user_are_found(route, tmp_path):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_rsa").touch()
    assert route("10.0.0.7").key_files == (tmp_path / ".ssh/id_rsa",)


def test_a_proxy_command_and_an_alias(route):
    found = route("odd")
    assert (found.proxy_command, found.key_name) == ("nc odd 22", "odd-one")
    # The inventory's jump host is the better word on how to get there.
    assert route("odd", jump="bastion").proxy_command is None


def test_a_chain_of_jump_hosts(route):
    found = route("10.0.0.7", jump="ann@first:2001,[fd00::2]:2002")
    assert [(hop.user, hop.address, hop.port) for hop in found.jumps] == [
        ("ann", "first", 2001),
        (getpass.getuser(), "fd00::2", 2002),
    ]


def test_a_jump_host_that_its_own_rule_matches_is_reached_directly(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host *\n  ProxyJump gate\n")
    found = Routes().of(HostEndpoint("n", "h1", SshSettings(config_file=config)))
    assert [hop.address for hop in found.jumps] == ["gate"]


@pytest.mark.parametrize("jump", ["user@", "host:ssh", "@", "host:٣"])
def test_a_malformed_jump_host(route, jump):
    with pytest.raises(UsageError, match="jump host"):
        route("10.0.0.7", jump=jump)


def test_a_configuration_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        Routes().of(HostEndpoint("n", "h1", SshSettings(config_file=tmp_path / "none")))
    broken = tmp_path / "broken"
    broken.write_text("Host\n")
    with pytest.raises(UsageError, match="broken"):
        Routes().of(HostEndpoint("n", "h1", SshSettings(config_file=broken)))
