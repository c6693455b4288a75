"""A shell on a host from the dashboard, over a real sshd: the dashboard makes room for it and comes back."""

import getpass
import os
import subprocess
import sys

import pytest
from terminals import terminal

from lumctl.inventory.load import example

EXECUTES = 'eval "${SSH_ORIGINAL_COMMAND:-exec env PS1=ready: /bin/sh -i}"'
"""What sshd does for us: the command that is asked for, else a shell."""


@pytest.fixture(scope="module")
def endpoint(serve_ssh, require_program, tmp_path_factory):
    key = tmp_path_factory.mktemp("key") / "id"
    subprocess.run([require_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    require_program("ssh")
    return serve_ssh(key, EXECUTES)


@pytest.fixture
def environment(endpoint, tmp_path):
    """That of a user whose inventory reaches each host there; ``known`` is the file with the hosts' keys."""
    (tmp_path / "run").mkdir(mode=0o700)
    known = tmp_path / "known_hosts"
    known.write_text(endpoint.known_hosts.read_text())
    config = tmp_path / "ssh_config"
    config.write_text(f"Host *\n  HostName {endpoint.address}\n  UserKnownHostsFile {known}\n")
    ssh = (
        f"    user: {getpass.getuser()}\n    port: {endpoint.ssh.port}\n    key_file: {endpoint.ssh.key_file}\n"
        f"    config_file: {config}\n"
    )
    inventory = tmp_path / "rack.yaml"
    inventory.write_text(example("prototype").read_text().replace("    user: lumctl\n", ssh))
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "LUMCTL_INVENTORY": str(inventory),
        "LANG": "C.UTF-8",
    }


COMMAND = [sys.executable, "-m", "lumctl", "top", "--interval", "3600"]


@pytest.mark.timeout(180)
def test_a_shell_has_the_terminal_until_it_is_left(environment):
    with terminal(COMMAND, environment) as top:
        top.press("2", "plan swap")
        top.see("s0-gpu0", "accelerators")
        top.press("s", "s shell")
        top.see("TARGET rack: a shell on s0; exit returns to lumctl top", "ready:")
        top.press("echo $((40 + 2)) $SSH_CONNECTION\r", "ready:", anywhere=True)
        top.see("42 127.0.0.1")
        top.see_lines(2, "ready:")
        top.press("\x03", "ready:", anywhere=True)  # for the shell, and not for the dashboard
        top.see_lines(3, "ready:")  # an interrupt discards what was typed before the shell noticed it
        top.press("exit 3\r", "ready:", anywhere=True)
        top.see("the shell on s0 ended with exit status 3", "q quit", without=["ready:"])
        top.press("q", "q quit")
        assert top.code() == 0


@pytest.mark.timeout(180)
def test_a_host_with_another_key_is_refused_and_said_before_the_dashboard_returns(environment, tmp_path):
    with terminal(COMMAND, environment) as top:
        top.press("2", "plan swap")
        top.see("s0-gpu0", "accelerators")
        (tmp_path / "known_hosts").write_text("")
        top.press("s", "s shell")
        top.see("Host key verification failed", "press enter to return to lumctl top")
        top.press("\r", "press enter", anywhere=True)
        top.see("the shell on s0 ended with exit status 255", "q quit")
        top.press("q", "q quit")
        assert top.code() == 0
