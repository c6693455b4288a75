"""A loop's channel, with a channel that does what a test says."""

import re

import paramiko
import pytest

from lumctl.fleet.conversation import Conversation
from lumctl.fleet.frames import Frame, FrameMark, Greeting

GREETING = b"lumctl-loop 2 - -\n"
READ_BYTES = 1024 * 1024
SAME = Frame(FrameMark.SAME, 3, 1, 0)


class Channel:
    """Takes ``room`` bytes, and then no more until it has room again."""

    def __init__(self):
        self.room = 10**6
        self.sent = b""
        self.arrived: list[bytes] = []
        self.printed: list[bytes] = []
        self.ended = self.closed = False
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
        return bool(self.printed)

    def recv(self, _size):
        if not self.printed:
            raise TimeoutError
        return self.printed.pop(0)

    def recv_stderr_ready(self):
        return bool(self.arrived)

    def recv_stderr(self, _size):
        if not self.arrived:
            raise TimeoutError
        return self.arrived.pop(0)

    def close(self):
        self.closed = True
        if self.breaks:
            raise self.breaks


class Link:
    """Makes calls at once; ``clear``: no keys are being exchanged."""

    def __init__(self, channel):
        self.channel = channel
        self.clear = True
        self.lost = False

    def call_soon(self, call):
        call()

    def can_send(self):
        return self.clear

    def has_ended(self):
        return self.channel.ended

    def is_lost(self):
        return self.lost


class Talk:
    def __init__(self):
        self.channel = Channel()
        self.link = Link(self.channel)
        self.heard, self.reasons = [], []
        self.conversation = Conversation(self.link, self.channel, self.heard.append, self.reasons.append)
        self.conversation.begin(b"program\n")

    def arrives(self, data):
        self.channel.arrived.append(data)
        self.conversation.drain()

    def prints(self, data):
        self.channel.printed.append(data)
        self.conversation.drain()

    def token(self):
        """What the newest request gives for a token."""
        return self.channel.sent.split(b">")[-1].split()[0]


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


@pytest.mark.parametrize("arrives", [Talk.arrives, Talk.prints])
def test_a_read_that_is_just_full_is_not_followed_by_one_that_waits(talk, arrives):
    talk.arrives(GREETING)
    talk.conversation.ask(1, [5], [5])
    arrives(talk, b"= 3 1 0 2000000\n".ljust(READ_BYTES, b"x"))
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
    talk.link.clear = False
    talk.conversation.ask(1, [0])
    talk.arrives(GREETING)
    assert (talk.channel.sent, talk.heard) == (b"program\n", [])
    talk.link.clear = True
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
    assert talk.reasons == ["its shell sent an answer without a request: expected an answer, found: b'what?'"]
    assert talk.channel.closed
    talk.arrives(b"~ 3 1 0\n")
    assert talk.heard == [Greeting(None, None), SAME]


def test_the_last_words_are_heard_before_the_end(talk):
    talk.channel.ended = True
    talk.arrives(b"\nsh: out of memory\nmore")
    assert talk.reasons == ["its shell ended: sh: out of memory"]


def test_the_last_answers_are_heard_before_the_end(talk):
    talk.arrives(b"Welcome!\n" + GREETING)
    talk.conversation.ask(1, [4, 3], [4])
    talk.channel.ended = True
    talk.channel.printed.append(b"printed\n\n%s 4 1 0\nand more" % talk.token())
    talk.arrives(b"~ 3 1 0\n~ 3 ")
    assert talk.heard == [Greeting(None, None), Frame(FrameMark.WHOLE, 4, 1, 0, b"printed"), SAME]
    # What a login script said is not what a loop ends with.
    assert talk.reasons == ["its shell ended"]


def test_a_shell_that_ends_without_a_word(talk):
    talk.channel.ended = True
    talk.conversation.drain()
    talk.conversation.drain()
    assert talk.reasons == ["its shell ended"]


def test_a_channel_that_ends_with_its_connection_says_so_after_the_last_answers(talk):
    talk.arrives(GREETING)
    talk.link.lost = talk.channel.ended = True
    talk.arrives(b"~ 3 1 0\n")
    assert talk.heard == [Greeting(None, None), SAME]
    assert talk.reasons == ["the connection was lost"]


def test_it_is_over_once(talk):
    talk.conversation.end("first")
    talk.conversation.end("second")
    talk.channel.ended = True
    talk.arrives(GREETING)
    assert (talk.reasons, talk.heard) == (["first"], [])


def test_over_while_new_keys_are_agreed_on_it_is_closed_when_that_has_ended(talk):
    talk.link.clear = False
    talk.conversation.end("given up")
    assert (talk.reasons, talk.channel.closed) == (["given up"], False)
    talk.conversation.drain()
    assert not talk.channel.closed
    talk.link.clear = True
    talk.conversation.drain()
    assert (talk.reasons, talk.channel.closed) == (["given up"], True)


def test_who_hears_may_ask(talk):
    conversation = Conversation(talk.link, talk.channel, lambda _: conversation.ask(9, [1]), pytest.fail)
    talk.channel.arrived.append(GREETING)
    conversation.drain()
    assert talk.channel.sent.endswith(b"9 1\n")


def test_what_is_to_come_straight_from_a_tool_is_asked_for_with_a_token(talk):
    talk.conversation.ask(7, [0, 3, 12], {3, 12})
    token = talk.token().decode()
    assert re.fullmatch(r"[0-9a-f]{16,}", token)
    assert talk.channel.sent == f"program\n7 0 3>{token} 12>{token}\n".encode()
    assert Talk().conversation._direct.token != token


@pytest.mark.parametrize("cut", range(30))
def test_answers_straight_from_tools_and_others_are_heard_alike(talk, cut):
    talk.arrives(GREETING)
    talk.conversation.ask(1, [0, 3, 4], {0, 4})
    printed = b"zero\n\n%b 0 1 7\n\n%b 4 1 0\n" % (talk.token(), talk.token())
    talk.prints(printed[:cut])
    talk.arrives(b"~ 3 1 0\n")
    talk.prints(printed[cut:])
    direct = [Frame(FrameMark.WHOLE, 0, 1, 7, b"zero"), Frame(FrameMark.WHOLE, 4, 1, 0, b"")]
    assert [said for said in talk.heard if said in direct] == direct
    assert [said for said in talk.heard if said not in direct] == [Greeting(None, None), SAME]


def is_asked_directly(talk, request):
    sent = len(talk.channel.sent)
    talk.conversation.ask(request, [5], [5])
    return talk.channel.sent[sent:].startswith(b"%d 5>" % request)


def test_what_a_login_script_prints_is_dropped(talk):
    # Both came at once: the script's words were there first.
    talk.channel.printed.append(b"Welcome!\nno answer")
    talk.arrives(b"complaint\n" + GREETING)
    assert is_asked_directly(talk, 1)
    talk.prints(b"body\n%b 5 1 0\n" % talk.token())
    assert talk.heard == [Greeting(None, None), Frame(FrameMark.WHOLE, 5, 1, 0, b"body")]
    assert talk.reasons == []


@pytest.mark.parametrize("stray", ["behind the end", "on its own"])
def test_where_somebody_else_prints_no_tool_is_asked_to(talk, stray):
    """What was printed may as well stand in the next answer."""
    talk.arrives(GREETING)
    assert is_asked_directly(talk, 1)
    answer = b"body\n%b 5 1 0\n" % talk.token()
    if stray == "behind the end":
        talk.prints(answer + b"x")
    else:
        talk.prints(answer)
        talk.prints(b"x" * 1000)
    assert not is_asked_directly(talk, 2)
    talk.prints(b"and on\n")
    talk.arrives(b"= 5 2 0 3\nown\n")
    assert talk.heard[1:] == [Frame(FrameMark.WHOLE, 5, 1, 0, b"body"), Frame(FrameMark.WHOLE, 5, 2, 0, b"own")]
    assert talk.reasons == []


def test_who_hears_the_last_answer_may_ask_at_once(talk):
    """What stands behind an answer's end is no part of what is asked for then."""
    heard = []

    def hear(said):
        heard.append(said)
        if len(heard) < 4:
            conversation.ask(len(heard), [5], [5])

    conversation = Conversation(talk.link, talk.channel, hear, pytest.fail)
    talk.channel.arrived.append(GREETING)
    conversation.drain()
    talk.channel.printed.append(b"one\n%b 5 1 0\nstray" % talk.token())
    conversation.drain()
    assert talk.channel.sent.endswith(b"\n2 5\n")
    talk.channel.arrived.append(b"= 5 2 0 3\ntwo\n")
    conversation.drain()
    assert [said.body for said in heard[1:]] == [b"one", b"two"]


def test_a_host_may_answer_by_a_frame_all_the_same(talk):
    talk.arrives(GREETING)
    assert is_asked_directly(talk, 1)
    talk.arrives(b"~ 5 1 0\n")
    assert talk.heard[1:] == [Frame(FrameMark.SAME, 5, 1, 0)]
    # Nothing is expected any more: what is printed now is nobody's.
    talk.prints(b"noise")
    assert not is_asked_directly(talk, 2)


def test_another_lane_that_is_lost_does_not_cost_a_direct_answer(talk):
    talk.arrives(GREETING)
    assert is_asked_directly(talk, 1)
    talk.prints(b"bo")
    talk.arrives(b"! 2 0 137\n")
    talk.prints(b"dy\n%b 5 1 0\n" % talk.token())
    assert talk.heard[1:] == [Frame(FrameMark.LOST, 2, 0, 137), Frame(FrameMark.WHOLE, 5, 1, 0, b"body")]


def test_nonsense_straight_from_a_tool_ends_it(talk):
    talk.arrives(GREETING)
    assert is_asked_directly(talk, 1)
    talk.prints(b"body\n%b 5 1 zero\n" % talk.token())
    (reason,) = talk.reasons
    assert reason.startswith("its shell sent an answer without a request: expected the end of an answer, found: b'")
    assert talk.channel.closed
