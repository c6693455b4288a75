"""How a loop is begun over a connection, where the moments fall in an order that no server can be made to keep."""

from types import SimpleNamespace

import paramiko
import pytest

from lumctl.devices.errors import DeviceRefusedError
from lumctl.fleet.ssh.session import FrozenError, SshSession


class Channel:
    """A session's channel; ``exec_command`` and ``sendall`` do what a test says."""

    def __init__(self):
        self.closed = False
        self.exec_command = lambda _: None
        self.sendall = lambda _: None
        self.complaint = b""

    def settimeout(self, limit):
        pass

    def recv_ready(self):
        return False

    def recv_stderr_ready(self):
        return bool(self.complaint)

    def recv_stderr(self, _size):
        taken, self.complaint = self.complaint, b""
        return taken

    def close(self):
        self.closed = True


class Link:
    """Drains the conversation when a test says so, once it is started."""

    def __init__(self, channel):
        self.channel = channel
        self.conversation = None
        self.started = False

    def attach(self, conversation):
        self.conversation = conversation

    def start(self):
        self.started = True

    def arrive(self):
        if self.started:
            self.conversation.drain()

    def close(self):
        self.started = False

    def call_soon(self, call):
        call()

    def can_send(self):
        return True

    def has_ended(self):
        return self.channel.closed

    def is_lost(self):
        return False


class Connector:
    """Gives one connection, which is alive until it is closed."""

    def __init__(self, channel):
        self.closed = False
        self.link = Link(channel)
        transport = SimpleNamespace(
            open_session=lambda **_: channel, join=lambda _: None, is_active=lambda: not self.closed
        )
        self.connection = SimpleNamespace(
            transport=transport, link=lambda _: self.link, alive=lambda: not self.closed, close=self.close
        )

    def connect(self, _route):
        return self.connection

    def close(self):
        self.closed = True


@pytest.fixture
def channel():
    return Channel()


@pytest.fixture
def connector(channel):
    return Connector(channel)


@pytest.fixture
def reasons():
    return []


@pytest.fixture
def converse(connector, reasons):
    session = SshSession(SimpleNamespace(label="h"), connector)
    return lambda: session.converse(b"program", 1.0, pytest.fail, reasons.append)


def raises(error):
    def call(_data):
        raise error

    return call


def test_a_shell_that_ends_before_it_took_the_program(channel, converse, reasons):
    # Its end came before anybody listened, so nobody else will tell.
    def end(_data):
        channel.close()
        raise OSError("Socket is closed")

    channel.sendall, channel.complaint = end, b"sh: no\n"
    converse()
    assert reasons == ["its shell ended: sh: no"]


def test_a_connection_lost_while_the_program_is_sent(channel, converse, reasons):
    channel.sendall = raises(EOFError())
    converse()
    assert reasons == ["the connection was lost"]


def test_a_shell_that_does_not_take_the_program(channel, converse, reasons):
    channel.sendall = raises(TimeoutError())
    with pytest.raises(FrozenError):
        converse()
    assert (channel.closed, reasons) == (True, [])


def test_a_refusal_is_not_heard_as_the_end_of_a_shell(channel, connector, converse, reasons):
    def refuse(_command):
        channel.close()
        connector.link.arrive()
        raise paramiko.SSHException("Channel closed.")

    channel.exec_command = refuse
    with pytest.raises(DeviceRefusedError, match="h: the host refuses to run commands"):
        converse()
    assert reasons == []
