"""A loop's channel, with a channel that does what a test says."""

import threading

import paramiko
import pytest

from lumctl.fleet.conversation import Conversation
from lumctl.fleet.frames import Frame, Greeting, Mark

GREETING = b"lumctl-loop 1 - -\n"
SAME = Frame(Mark.SAME, 3, 1, 0)


class Channel:
    """Takes ``room`` bytes, and then no more until it has room again."""

    def __init__(self):
        self.room = 10**6
        self.sent = b""
        self.arrived: list[bytes] = []
        self.complaint = b""
        self.ended = self.closed = self.eof_received = False
        self.breaks: Exception | None = None
        self.limits = []

    def settimeout(self, limit):
        self.limits.append(limit)

    def send(self, data):
        if self.breaks:
            raise self.breaks
        if not self.room:
            raise TimeoutError
        taken = data[: self.room]
        self.room -= len(taken)
        self.sent += taken
        return len(taken)

    def sendall(self, data):
        while data:
            data = data[self.send(data) :]

    def recv_ready(self):
        return bool(self.arrived)

    def recv(self, _size):
        return self.arrived.pop(0)

    def exit_status_ready(self):
        return self.ended

    def recv_stderr_ready(self):
        return bool(self.complaint)

    def recv_stderr(self, _size):
        return self.complaint

    def close(self):
        self.closed = True
        if self.breaks:
            raise self.breaks


class Transport:
    def __init__(self):
        self.clear_to_send = threading.Event()
        self.clear_to_send.set()


class Talk:
    def __init__(self):
        self.channel, self.transport = Channel(), Transport()
        self.heard, self.reasons = [], []
        self.conversation = Conversation(self.transport, self.channel, self.heard.append, self.reasons.append)
        self.conversation.begin(b"program\n")

    def arrives(self, data):
        self.channel.arrived.append(data)
        self.conversation.drain()


@pytest.fixture
def talk():
    return Talk()


def test_from_the_program_on_nothing_waits(talk):
    assert talk.channel.sent == b"program\n"
    assert talk.channel.limits == [0.0]


def test_what_arrives_is_handed_on_as_it_comes(talk):
    talk.arrives(GREETING + b"~ 3 ")
    assert talk.heard == [Greeting(None, None)]
    talk.arrives(b"1 0\n~ 3 1 0\n")
    assert talk.heard[1:] == [SAME, SAME]
    assert talk.reasons == []


def test_a_request_is_one_line(talk):
    talk.conversation.ask(7, [0, 3, 12])
    talk.conversation.ask(8, iter([1]))
    assert talk.channel.sent == b"program\n7 0 3 12\n8 1\n"


@pytest.mark.parametrize("room", range(12))
def test_a_host_that_takes_no_more_is_sent_the_rest_when_it_does(talk, room):
    talk.channel.room = room
    talk.conversation.ask(1, [0])
    talk.conversation.ask(2, [3, 4])
    assert talk.channel.sent == b"program\n" + b"1 0\n2 3 4\n"[:room]
    talk.channel.room = 100
    talk.conversation.drain()
    assert talk.channel.sent == b"program\n1 0\n2 3 4\n"
    assert talk.reasons == []


def test_while_new_keys_are_agreed_on_nothing_is_sent_or_taken(talk):
    talk.transport.clear_to_send.clear()
    talk.conversation.ask(1, [0])
    talk.arrives(GREETING)
    assert (talk.channel.sent, talk.heard) == (b"program\n", [])
    talk.transport.clear_to_send.set()
    talk.conversation.drain()
    assert (talk.channel.sent, talk.heard) == (b"program\n1 0\n", [Greeting(None, None)])


@pytest.mark.parametrize("error", [EOFError(), OSError("Socket is closed"), paramiko.SSHException("gone")], ids=repr)
def test_a_connection_that_is_found_lost_is_told_and_not_raised(talk, error):
    # Hanging up on a lost connection fails as well.
    talk.channel.breaks = error
    talk.conversation.ask(1, [0])
    talk.conversation.ask(2, [0])
    assert talk.reasons == ["the connection was lost"]
    assert talk.channel.closed


def test_nonsense_ends_it_after_what_came_before(talk):
    talk.arrives(GREETING + b"~ 3 1 0\nwhat?\n~ 3 1 0\n")
    assert talk.heard == [Greeting(None, None), SAME]
    assert talk.reasons == ["its shell answers what nobody asked: not an answer: b'what?'"]
    assert talk.channel.closed
    talk.arrives(b"~ 3 1 0\n")
    assert talk.heard == [Greeting(None, None), SAME]


@pytest.mark.parametrize("sign", ["ended", "eof_received"])
def test_the_last_words_are_heard_before_the_end(talk, sign):
    setattr(talk.channel, sign, True)
    talk.channel.complaint = b"\nsh: out of memory\nmore\n"
    talk.arrives(GREETING + b"~ 3 1 0\n")
    assert talk.heard == [Greeting(None, None), SAME]
    assert talk.reasons == ["its shell ended: sh: out of memory"]


def test_a_shell_that_ends_without_a_word(talk):
    talk.channel.ended = True
    talk.conversation.drain()
    talk.conversation.drain()
    assert talk.reasons == ["its shell ended"]


def test_it_is_over_once(talk):
    talk.conversation.end("first")
    talk.conversation.end("second")
    talk.channel.ended = True
    talk.arrives(GREETING)
    assert (talk.reasons, talk.heard) == (["first"], [])


def test_who_hears_may_ask(talk):
    conversation = Conversation(talk.transport, talk.channel, lambda _: conversation.ask(9, [1]), pytest.fail)
    talk.channel.arrived.append(GREETING)
    conversation.drain()
    assert talk.channel.sent.endswith(b"9 1\n")
