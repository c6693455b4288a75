"""A coordinator's line over OpenSSH: it may break, and agent and workers continue behind it."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest
from agents import Agents, end, listed

from lumctl.training.protocol import MessageLine

AGENT = (sys.executable, "-P", "-m", "lumctl.training.agent")


@pytest.fixture
def agents():
    agents = Agents()
    yield agents
    agents.close()


@pytest.fixture(scope="module")
def ssh(serve_ssh, require_program, tmp_path_factory):
    """The words that run a command through a real sshd, with the user's own shell."""
    key = tmp_path_factory.mktemp("client") / "key"
    subprocess.run([require_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    at = serve_ssh(key, 'eval "$SSH_ORIGINAL_COMMAND"')
    options = ["BatchMode=yes", "IdentitiesOnly=yes", f"UserKnownHostsFile={at.known_hosts}"]
    return [
        *(require_program("ssh"), "-F", os.devnull, "-T", "-i", str(key), "-p", str(at.ssh.port)),
        *(word for option in options for word in ("-o", option)),
        f"{at.ssh.user}@{at.address}",
    ]


@pytest.fixture
def bridged(agents):
    """Coordinators behind a program that relays what goes through its input and output."""
    with ExitStack() as running:

        def start(command):
            ours, theirs = socket.socketpair()
            with theirs:
                process = running.enter_context(subprocess.Popen(command, stdin=theirs, stdout=theirs))
            running.callback(process.kill)
            return agents.line(MessageLine(ours)), process

        yield start


def over(ssh, folder, *flags):
    return [*ssh, shlex.join([*AGENT, "bridge", str(folder), *flags])]


def test_a_job_goes_on_behind_a_connection_that_breaks(agents, bridged, ssh):
    folder = agents.folder()
    first, process = bridged(over(ssh, folder))
    assert first.until("list")["workers"] == []
    first.start_worker("a#1", environment={"LUMCTL_JOB": "j"})
    end(process.pid)
    agent = agents.pid(folder)

    second, process = bridged(over(ssh, folder, "--take"))
    assert listed(second.until("list"), "a#1")["connected"]
    second.do("a#1", do="say", message={"say": "saved", "done": 3, "path": "x" * 300_000})
    assert len(second.until("said", say="saved")["message"]["path"]) == 300_000

    third, refused = bridged(over(ssh, folder))
    assert third.until("taken")["by"].endswith("for 127.0.0.1")
    assert third.hung_up()
    assert refused.wait(10) == 0

    second.line.close()  # the end of its input is the end of the bridge, and of nothing else
    assert process.wait(10) == 0
    fourth, _ = bridged(over(ssh, folder, "--take"))
    assert listed(fourth.until("list"), "a#1")["alive"]
    fourth.do("a#1", do="exit", code=4)
    assert fourth.until("exited")["code"] == 4
    assert agents.pid(folder) == agent


def test_a_bridge_ends_with_its_agent_and_the_next_one_starts_another(agents, bridged, ssh):
    folder = agents.folder()
    first, process = bridged(over(ssh, folder))
    first.until("list")
    first.start_worker("a#1")
    end(agents.pid(folder))
    assert first.hung_up()
    assert process.wait(10) == 0
    second, _ = bridged(over(ssh, folder))
    assert listed(second.until("list"), "a#1")["alive"]
    second.ask("kill", worker="a#1")
    assert second.until("exited")["worker"] == "a#1"


def test_a_bridge_says_why_it_cannot_be_one(tmp_path):
    tmp_path.chmod(0o755)
    said = subprocess.run([*AGENT, "bridge", tmp_path], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert said.returncode == 5
    why = json.loads(said.stdout)
    assert (why["tell"], why["why"]) == ("refused", f"{tmp_path} is not a private folder of this user")
    assert why["hint"] in said.stderr.decode()


def test_neither_side_waits_for_the_other_when_both_have_much_to_say(agents, bridged):
    line, process = bridged([*AGENT, "bridge", str(agents.folder())])
    line.until("list")
    line.start_worker("a#1")
    for number in range(40):
        # Nothing is read until all is asked: the answers must not stop the asking.
        line.do("a#1", do="say", message={"say": "saved", "done": number, "path": "x" * 20_000})
    assert [line.until("said", say="saved")["message"]["done"] for _ in range(40)] == list(range(40))
    process.send_signal(signal.SIGTERM)
    assert line.hung_up()
