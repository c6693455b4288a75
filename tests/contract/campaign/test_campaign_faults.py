"""What befalls bytes on a faulty way, and commands in a faulty shell."""

import socket

import pytest

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import CommandResult
from lumctl.devices.testing.faults import FaultyWay, Trouble, WayFault
from lumctl.devices.testing.shell_faults import FaultyShell, ShellFault


class Pair:
    """A way to ourselves; ``far`` is the other end."""

    def tcp(self, _default_port, _timeout_s):
        near, self.far = socket.socketpair()
        near.settimeout(5)
        self.far.settimeout(5)
        return near


@pytest.fixture
def pair():
    made = Pair()
    yield made
    made.far.close()


@pytest.fixture
def way(pair):
    return FaultyWay(pair)


@pytest.fixture
def stream(way):
    opened = way.tcp(1, 5)
    yield opened
    opened.close()


def test_a_request_is_cut_after_so_many_bytes(way, pair, stream):
    way.trouble = Trouble(WayFault.CUT_SENDING, 6)
    stream.sendall(b"abcd")
    with pytest.raises(ConnectionResetError):
        stream.sendall(b"efgh")
    assert pair.far.recv(100) + pair.far.recv(100) == b"abcdef"
    with pytest.raises(ConnectionResetError):
        stream.recv(1)
    assert way.struck == {WayFault.CUT_SENDING: 1}


@pytest.mark.parametrize("fault", [WayFault.CUT_ANSWER, WayFault.BROKEN_ANSWER, WayFault.GARBAGE])
def test_an_answer_is_spoilt_after_so_many_bytes(way, pair, stream, fault):
    way.trouble = Trouble(fault, 3)
    pair.far.sendall(b"answer")
    assert stream.recv(100) == b"ans"
    if fault is WayFault.BROKEN_ANSWER:
        with pytest.raises(ConnectionResetError):
            stream.recv(100)
    else:
        assert len(stream.recv(100)) == (64 if fault is WayFault.GARBAGE else 0)
        assert stream.recv(100) == b""
    with pytest.raises(ConnectionResetError):
        stream.sendall(b"more")


def test_what_a_silence_held_back_comes_when_it_has_passed(way, pair, stream):
    way.trouble = Trouble(WayFault.SILENT, 3, passes=True)
    pair.far.sendall(b"answer")
    assert stream.recv(100) == b"ans"
    with pytest.raises(TimeoutError):
        stream.recv(100)
    assert way.trouble is None
    assert stream.recv(100) == b"wer"


def test_a_silence_is_none_where_nothing_was_asked(way, stream):
    way.trouble = Trouble(WayFault.SILENT)
    stream.settimeout(0)
    with pytest.raises(BlockingIOError):
        stream.recv(1)
    assert way.struck == {}


def test_a_kept_connection_is_found_cut(way, stream):
    way.trouble = Trouble(WayFault.CUT_ANSWER, passes=True)
    stream.settimeout(0)
    assert stream.recv(1) == b""
    assert way.trouble is None


def test_drops_are_all_there(way, pair, stream):
    way.trouble = Trouble(WayFault.DRIPPING)
    pair.far.sendall(b"abc")
    assert [stream.recv(100) for _ in range(3)] == [b"a", b"b", b"c"]


def test_who_is_gone_is_gone_for_everybody(way, pair, stream):
    way.trouble = Trouble(WayFault.REFUSED, 3)
    pair.far.sendall(b"abc")
    stream.sendall(b"heard")
    assert stream.recv(100) == b"abc"
    for act in (lambda: stream.sendall(b"not heard"), lambda: way.tcp(1, 5)):
        with pytest.raises(ConnectionError):
            act()
    assert pair.far.recv(100) == b"heard"


class Host:
    def __init__(self):
        self.ran = []

    def run(self, command, *, timeout_s):
        del timeout_s
        self.ran.append(command)
        return CommandResult(0, "fine\n", "")


@pytest.mark.parametrize("fault", ShellFault)
def test_a_command_is_run_or_not(fault):
    host = Host()
    shell = FaultyShell(host)
    shell.set(fault, after=1, passes=True)
    said = []
    for command in ("first", "second", "third"):
        try:
            said.append(shell.run(command, timeout_s=1))
        except (DeviceUnreachableError, OutcomeUnknownError) as error:
            said.append(type(error))
    assert said[0] == said[2] == CommandResult(0, "fine\n", "")
    assert said[1] != said[0]
    assert ("second" in host.ran) is (fault not in {ShellFault.LOST_BEFORE, ShellFault.DENIED})
    assert shell.struck == {fault: 1}
