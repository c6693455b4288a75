"""Lines to agents over commands on hosts, of which some are no agents."""

import pytest

from lumctl.training.job_run import over_ssh
from lumctl.training.protocol import encoded


class Command:
    """A command that has written this, and has ended."""

    def __init__(self, *said: bytes, complaint: str = "") -> None:
        self.said = list(said)
        self.complaint = lambda: complaint
        self.patience_s: list[float | None] = []
        self.settimeout = self.patience_s.append

    def recv(self, _count: int) -> bytes:
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
    assert (line.receive(), line.receive()) == ({"tell": "list"}, None)


@pytest.mark.parametrize(
    ("complaint", "told"), [("no module named lumctl", "no module named lumctl"), ("", "its command ends at once")]
)
def test_what_is_no_agent_is_an_error_that_says_what_the_host_said(complaint, told):
    line, _ = opened(Command(complaint=complaint))
    with pytest.raises(ConnectionError, match=f"^no agent starts there: {told}$"):
        line.receive()
