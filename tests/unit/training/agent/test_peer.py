"""Connections of an agent: whatever comes in whatever pieces, and a peer that does not read."""

import os
import socket
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.training.agent.connections import CHUNK_BYTES, MOST_UNSENT_BYTES, AgentPeer
from lumctl.training.protocol import MOST_BYTES, BrokenLineError, MessageLine, encoded

SMALL = 4096


@pytest.fixture
def ends():
    """A peer, and the other end of its connection."""
    ours, theirs = socket.socketpair()
    peer = AgentPeer(ours)
    with theirs:
        yield peer, theirs
    peer.close()


def test_the_kernel_says_who_it_is(ends):
    peer, _ = ends
    assert (peer.pid, peer.uid) == (os.getpid(), os.getuid())


@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9)), max_size=6),
    st.lists(st.floats(0, 1), max_size=8),
)
def test_messages_come_whole_and_in_order_however_they_are_cut(messages, cuts):
    sent, got = b"".join(map(encoded, messages)), []
    places = sorted(round(cut * len(sent)) for cut in cuts)
    ours, theirs = socket.socketpair()
    with closing(AgentPeer(ours)) as peer, theirs:
        for start, end in zip([0, *places], [*places, len(sent)], strict=True):
            theirs.sendall(sent[start:end])
            while peer.read():
                got += peer.messages()
    assert got == messages


def test_what_came_before_what_is_no_message_counts(ends):
    peer, theirs = ends
    theirs.sendall(b'{"say": "beat"}\nnonsense\n{"say": "beat"}\n')
    assert peer.read()
    messages = peer.messages()
    assert next(messages) == {"say": "beat"}
    with pytest.raises(BrokenLineError, match="nonsense"):
        next(messages)


def test_nothing_counts_once_it_is_closed(ends):
    peer, theirs = ends
    theirs.sendall(b"{}\n{}\n")
    assert peer.read()
    for _ in peer.messages():
        peer.close()
    assert peer.closed
    assert list(peer.messages()) == []


def test_the_other_end_hangs_up(ends):
    peer, theirs = ends
    assert not peer.read()
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionResetError):
        peer.read()


def test_a_line_without_end_is_given_up(ends):
    peer, theirs = ends

    def endless():
        for _ in range(2 * MOST_BYTES // CHUNK_BYTES):
            theirs.sendall(b"x" * CHUNK_BYTES)
            assert peer.read()
            assert list(peer.messages()) == []

    with pytest.raises(BrokenLineError, match="without an end"):
        endless()


def test_a_peer_that_does_not_read_is_not_waited_for_and_gets_all_when_it_does(ends):
    peer, theirs = ends
    told = [{"number": number, "long": "x" * SMALL} for number in range(100)]
    for message in told:
        peer.send(message)
    assert peer.unsent
    line = MessageLine(theirs)
    for message in told:
        peer.flush()
        assert line.receive() == message
    assert not peer.unsent


def test_a_peer_that_never_reads_is_given_up(ends):
    peer, _ = ends
    waiting = {"long": "x" * 2 * MOST_UNSENT_BYTES}
    with pytest.raises(TimeoutError):
        peer.send(waiting)
