"""A group that is given up: its sockets are at their end for us, and nobody else finds them broken."""

import contextlib
import os
import socket

import pytest

from lumctl.training.torch.sockets import between, calling, deafen, shut, sockets


@pytest.fixture
def pair():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        before = sockets()
        near = socket.create_connection(listener.getsockname(), timeout=5)
        made = sockets() - before
        far, _ = listener.accept()
        far.settimeout(5)
        with near, far:
            yield near, far, made


def test_who_reads_finds_the_end_after_what_has_come_and_the_peer_can_still_write(pair):
    near, far, made = pair
    far.sendall(b"sent before")
    kept = list(deafen(made, frozenset()))
    assert near.recv(64) == b"sent before"
    assert near.recv(64) == b""
    near.close()  # as gloo does then
    far.sendall(b"x" * 1000)
    far.sendall(b"x" * 1000)  # a connection that is closed at the other end breaks the second time
    for each in kept:
        each.close()
    with pytest.raises(ConnectionResetError):
        far.recv(64)


def test_own_servers_ports_listeners_and_other_sockets_stay(pair):
    near, far, made = pair
    assert list(deafen(made, frozenset({near.getsockname()[1]}))) == []
    shut(made, frozenset({near.getsockname()[1]}))
    before = sockets()
    left, right = socket.socketpair()
    with left, right, socket.create_server(("127.0.0.1", 0)) as listener:
        assert list(deafen(sockets() - before, frozenset())) == []
        right.sendall(b"still here")
        assert left.recv(64) == b"still here"
        socket.create_connection(listener.getsockname(), timeout=5).close()
    far.sendall(b"heard")
    assert near.recv(64) == b"heard"


def test_a_number_that_was_taken_by_another_socket_meanwhile_is_left_alone(pair):
    held, made = next(iter(pair[2])), pair[2]
    left, right = socket.socketpair()
    with left, right:
        os.dup2(left.fileno(), held.descriptor)
        assert held.again() is None
        assert list(deafen(made, frozenset())) == []
        right.sendall(b"still here")
        assert left.recv(64) == b"still here"


def test_those_at_own_ports_and_those_that_lead_to_peers_are_told_from_others(pair):
    near, far, made = pair
    left, right = socket.socketpair()
    with left, right, socket.create_server(("127.0.0.1", 0)) as other:
        near_port, far_port, other_port = (one.getsockname()[1] for one in (near, far, other))
        each = {held.descriptor: held for held in sockets()}
        assert between(sockets(), set(), {far_port}) == made
        assert between(sockets(), {far_port}, set()) >= {each[far.fileno()]}
        assert not between(sockets(), {far_port}, set()) & made
        assert between(sockets(), {other_port}, {near_port}) == {each[other.fileno()], each[far.fileno()]}
        assert between(sockets(), set(), {other_port}) == frozenset()


def test_one_that_nobody_has_answered_is_found_and_can_be_woken(pair):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf, contextlib.ExitStack() as open_sockets:
        before = sockets()
        for _ in range(3):  # the first fill its queue
            caller = open_sockets.enter_context(socket.socket())
            caller.settimeout(0)
            caller.connect_ex(deaf.getsockname())
        waiting = calling(sockets())
        assert waiting
        assert waiting <= sockets() - before
        assert calling(pair[2]) == frozenset()
        shut(waiting, frozenset())
        assert calling(sockets()) == frozenset()
