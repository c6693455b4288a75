"""Lines to agents: over commands on hosts, of which some are no agents; slow, lost and closed ones."""

import socket
import threading
from queue import Empty, SimpleQueue

import pytest

from lumctl.fleet.ways import _Channel
from lumctl.training import agent_lines
from lumctl.training.agent_lines import AgentLines
from lumctl.training.job_run import over_ssh
from lumctl.training.protocol import MessageLine, encoded


class Command:
    """A command that has written this, and has ended."""

    def __init__(self, *said: bytes, complaint: str = "") -> None:
        self.said = list(said)
        self.complaint = lambda: complaint
        self.patience_s: list[float | None] = []
        self.settimeout = self.patience_s.append

    def recv_now(self, _count: int) -> bytes:
        return self.said.pop(0) if self.said else b""


class Hosts:
    """A context whose one host answers with this command."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.asked: list[str] = []
        self.fleet = self

    def stream(self, host: str, command: str, *, within_s: float) -> Command:
        assert within_s > 0
        self.asked.append(f"{host}: {command}")
        return self.command


def opened(command: Command, *, take: bool = False):
    hosts = Hosts(command)
    line = over_ssh(hosts, ["my python", "-m", "agent"], ".lumctl/jobs/j", take=take, who="pid 1 on there")("h1")
    return line, hosts.asked


@pytest.mark.parametrize("take", [False, True])
def test_an_agent_is_asked_for_by_its_command_and_heard_to_its_end(take):
    command = Command(encoded({"tell": "list"})[:5], encoded({"tell": "list"})[5:], complaint="not asked for")
    line, asked = opened(command, take=take)
    assert asked == [
        "h1: 'my python' -m agent bridge .lumctl/jobs/j" + (" --take" if take else "") + " --who 'pid 1 on there'"
    ]
    assert command.patience_s == [None]
    assert [line.read() for _ in range(3)] == [True, True, False]
    assert line.receive() == {"tell": "list"}
    assert line.why_ended() == "it closed the connection"


@pytest.mark.parametrize(
    ("complaint", "told"), [("no module named lumctl", "no module named lumctl"), ("", "its command ends at once")]
)
def test_what_is_no_agent_is_an_error_that_says_what_the_host_said(complaint, told):
    line, _ = opened(Command(complaint=complaint))
    assert not line.read()
    assert line.why_ended() == f"no agent starts there: {told}"


class Agents:
    """The far ends of lines, and what the near ends have heard."""

    def __init__(self) -> None:
        self.ends: dict[str, socket.socket] = {}
        self.heard: SimpleQueue[tuple] = SimpleQueue()
        self.lines = AgentLines(self.open, "me", lambda *told: self.heard.put(told))

    def open(self, host: str) -> MessageLine:
        if host == "none":
            raise ConnectionRefusedError("nobody is there")
        ours, self.ends[host] = socket.socketpair()
        self.ends[host].settimeout(20)
        return MessageLine(ours, patience_s=20)

    def opened(self, host: str) -> MessageLine:
        """Open a line; its far end, once the line is open."""
        self.lines.open(host)
        while host not in self.ends:
            threading.Event().wait(0.001)
        line = MessageLine(self.ends[host])
        assert line.receive() == {"ask": "who", "who": "me"}
        line.send({"tell": "list", "of": host})
        assert self.hear(host) == ({"tell": "list", "of": host}, "")
        return line

    def hear(self, host: str) -> tuple:
        of, *told = self.heard.get(timeout=20)
        assert of == host
        return tuple(told)


@pytest.fixture
def agents():
    agents = Agents()
    yield agents
    agents.lines.close()
    for each in agents.ends.values():
        each.close()


def test_lines_to_many_hosts_have_one_thread_that_stays(agents):
    before = {each for each in threading.enumerate() if each.name.startswith("lumctl-agent-")}
    for number in range(20):
        line = agents.opened(f"h{number}")
        assert agents.lines.ask(f"h{number}", {"ask": "list"})
        assert line.receive() == {"ask": "list"}
    opening = {each for each in threading.enumerate() if each.name.startswith("lumctl-agent-")} - before
    assert len(opening) <= 3


def test_a_host_that_does_not_read_delays_no_other_and_gets_all_once_it_reads(agents):
    slow, other = agents.opened("slow"), agents.opened("other")
    long = "x" * 200_000
    for number in range(30):  # far more than the buffers of a socket
        assert agents.lines.ask("slow", {"number": number, "long": long})
        assert agents.lines.ask("other", {"number": number})
    assert [other.receive()["number"] for _ in range(30)] == list(range(30))
    assert [slow.receive()["number"] for _ in range(30)] == list(range(30))
    agents.lines.ask("slow", {"number": 30})
    assert slow.receive() == {"number": 30}


def test_a_host_for_which_too_much_waits_counts_as_lost(agents, monkeypatch):
    monkeypatch.setattr(agent_lines, "MOST_UNSENT_BYTES", 1_000_000)
    agents.opened("slow")
    sent = 0
    while agents.lines.ask("slow", {"long": "x" * 100_000}):
        sent += 1
        assert sent < 1000
    assert agents.hear("slow")[0] is None
    assert not agents.lines.ask("slow", {})


def test_a_line_that_ends_or_cannot_be_opened_is_lost_and_can_be_opened_again(agents):
    agents.lines.open("none")
    assert agents.hear("none") == (None, "nobody is there")
    line = agents.opened("h1")
    line.send({"tell": "last"})
    line.close()
    assert agents.hear("h1") == ({"tell": "last"}, "")
    assert agents.hear("h1")[0] is None
    del agents.ends["h1"]
    agents.opened("h1")
    agents.ends["h1"].sendall(b"no message\n")
    assert "no JSON" in agents.hear("h1")[1]


def test_after_the_end_nothing_is_heard_and_the_far_ends_are_closed(agents):
    line = agents.opened("h1")
    agents.lines.close()
    assert line.receive() is None
    agents.lines.open("h2")
    assert not agents.lines.ask("h1", {})
    with pytest.raises(Empty):
        agents.heard.get_nowait()


class Channel:
    """A paramiko channel of a command that has written to its standard error, and goes on."""

    settimeout = None

    def __init__(self) -> None:
        self.errors, self.eof_received, self.closed = b"a warning\nno module named lumctl\n", False, False
        self.recv = lambda _count: b""

    def fileno(self) -> int:
        return 0

    def recv_ready(self) -> bool:
        return False

    def recv_stderr_ready(self) -> bool:
        return bool(self.errors)

    def recv_stderr(self, count: int) -> bytes:
        said, self.errors = self.errors[:count], self.errors[count:]
        return said


def test_errors_that_a_command_writes_are_read_while_nothing_else_has_come_and_are_its_complaint():
    channel = Channel()
    stream = _Channel(channel)
    with pytest.raises(BlockingIOError):
        stream.recv_now(100)
    assert not channel.recv_stderr_ready()  # else its descriptor would stay readable
    channel.eof_received = True
    assert stream.recv_now(100) == b""
    assert stream.complaint() == "no module named lumctl"
