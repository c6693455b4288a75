import os
import select
import socket
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue

import pytest

from lumctl.fleet.ssh.connection import connect_tcp
from lumctl.fleet.ssh.event_loop import EventLoop
from lumctl.fleet.ssh.fast_client import BufferedSocket, LoopSocket, ProxySocket

PATIENCE_S = 20.0


class Watched:
    """A socket that counts its calls."""

    def __init__(self, sock):
        self._sock = sock
        self.calls = []

    def recv(self, size):
        self.calls.append(("recv", size))
        return self._sock.recv(size)

    def settimeout(self, timeout):
        self.calls.append(("settimeout", timeout))
        self._sock.settimeout(timeout)

    def __getattr__(self, name):
        return getattr(self._sock, name)


@pytest.fixture
def pair():
    near, far = socket.socketpair()
    with near, far:
        yield near, far


@pytest.fixture
def far(pair):
    return pair[1]


@pytest.fixture
def loop():
    return EventLoop("test")


@pytest.fixture(params=["channel", "socket"])
def prompt(request, pair, loop):
    """As it is over a channel, which blocks, and over a socket, which a task waits for."""
    if request.param == "channel":
        return BufferedSocket(pair[0])
    return InTask(LoopSocket(pair[0], loop))


class InTask:
    """A socket that receives in a task, as its transport does."""

    def __init__(self, sock):
        object.__setattr__(self, "_inner", sock)

    def recv(self, size):
        results = SimpleQueue()

        def receive():
            try:
                results.put((self._inner.recv(size), None))
            except OSError as error:
                results.put((None, error))

        self._inner.loop.start_task(receive)
        got, error = results.get(timeout=PATIENCE_S)
        if error:
            raise error
        return got

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __setattr__(self, name, value):
        setattr(self._inner, name, value)


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_small_pieces_come_out_of_one_read(pair):
    watched = Watched(pair[0])
    prompt = BufferedSocket(watched)
    pair[1].sendall(b"0123456789")
    assert [prompt.recv(size) for size in (1, 3, 4)] == [b"0", b"123", b"4567"]
    # Less than was asked for, and no wait for the rest.
    assert prompt.recv(100) == b"89"
    assert [call for call, _ in watched.calls] == ["recv"]
    pair[1].sendall(b"more")
    assert prompt.recv(100) == b"more"
    assert [call for call, _ in watched.calls] == ["recv", "recv"]


def test_nothing_is_lost_in_any_sizes(prompt, far):
    sent = os.urandom(30_000)
    writer = threading.Thread(target=far.sendall, args=(sent,))
    writer.start()
    got = b""
    for size in range(1, 1000):
        got += prompt.recv(size)
        if len(got) == len(sent):
            break
    writer.join()
    assert got == sent


def test_the_end_is_told_after_what_came_before_it(prompt, far):
    far.sendall(b"last")
    far.close()
    assert [prompt.recv(2), prompt.recv(9), prompt.recv(9), prompt.recv(9)] == [b"la", b"st", b"", b""]


def test_it_says_that_it_is_quiet_before_it_waits_and_only_then(prompt, far):
    quiet = []
    prompt.on_idle = lambda: quiet.append(True)
    far.sendall(b"abc")
    assert [prompt.recv(1) for _ in range(3)] == [b"a", b"b", b"c"]
    assert len(quiet) == 1
    # What it is told then may be what the far end waits for.
    prompt.on_idle = lambda: far.sendall(b"d")
    assert prompt.recv(1) == b"d"


def test_a_time_limit_holds_until_it_is_without_timeouts(pair):
    watched = Watched(pair[0])
    prompt = BufferedSocket(watched)
    prompt.settimeout(0.01)
    with pytest.raises(TimeoutError):
        prompt.recv(1)
    prompt.end_timeouts()
    assert watched.calls[-1] == ("settimeout", None)
    prompt.settimeout(0.01)
    assert watched.calls[-1] == ("settimeout", None)


def test_what_was_read_ahead_is_given_if_all_of_it_stands_there(pair):
    prompt = BufferedSocket(pair[0])
    pair[1].sendall(b"abcdef")
    assert prompt.recv(1) == b"a"
    assert prompt.take(1) is None, "paramiko may still hold what comes before it"
    prompt.end_timeouts()
    assert prompt.take(3) == b"bcd"
    assert prompt.take(3) is None
    assert prompt.take(2) == b"ef"
    assert prompt.take(1) is None


def test_a_relaxed_reader_is_woken_by_close(prompt):
    prompt.end_timeouts()
    waits, got = threading.Event(), []
    prompt.on_idle = waits.set

    def read():
        with suppress(OSError):
            got.append(prompt.recv(10))
        got.append("woken")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert waits.wait(PATIENCE_S)
    time.sleep(0.02)
    prompt.close()
    reader.join(PATIENCE_S / 2)
    assert got[-1] == "woken"


def test_its_end_is_told_once(prompt, far):
    told = []
    prompt.on_closed = lambda: told.append(prompt.closed)
    assert not prompt.closed
    prompt.close()
    prompt.close()
    assert told == [True]
    assert far.recv(10) == b""


def test_closing_what_the_far_end_has_reset(server, loop):
    client = InTask(LoopSocket(connect_tcp("127.0.0.1", server.getsockname()[1], PATIENCE_S), loop))
    told = []
    client.on_closed = lambda: told.append(True)
    other, _ = server.accept()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    other.close()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    client.close()
    assert told == [True]


def test_a_tcp_connection_sends_at_once_and_notices_a_peer_that_vanished(server, loop):
    client = InTask(LoopSocket(connect_tcp("127.0.0.1", server.getsockname()[1], PATIENCE_S), loop))
    other, _ = server.accept()
    with other:
        sock = client._sock
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, between, count = (
            sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_KEEP{word}")) for word in ("IDLE", "INTVL", "CNT")
        )
        assert idle + between * count <= 30
        assert client.getpeername() == server.getsockname()
        other.sendall(b"abc")
        assert client.recv(3) == b"abc"
        assert client.send(b"xyz") == 3
        assert other.recv(3) == b"xyz"
    client.close()


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        connect_tcp("127.0.0.1", port, PATIENCE_S)


def ended(pid):
    """Whether a process, which is not ours to wait for, ends soon."""
    with suppress(ProcessLookupError):
        watched = os.pidfd_open(pid)
        try:
            return bool(select.select([watched], [], [], PATIENCE_S)[0])
        finally:
            os.close(watched)
    return True


def proxy_in_task(command, loop):
    return InTask(ProxySocket(command, loop))


def test_a_proxy_command_and_all_that_it_started_end_with_the_socket(tmp_path, loop):
    told = tmp_path / "pid"
    sock = proxy_in_task(f"sh -c 'sleep 300 & echo $! >{told}; echo hello; exec cat'", loop)
    assert sock.recv(6) == b"hello\n"
    sock.send(b"and back\n")
    assert sock.recv(100) == b"and back\n"
    sock.close()
    assert sock.process.exit_status is not None
    assert ended(int(told.read_text()))
    sock.close()


def test_a_proxy_command_that_does_not_want_to_end(loop):
    stubborn = "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.write(1, b'1'); time.sleep(300)"
    sock = proxy_in_task(f'{sys.executable} -c "{stubborn}"', loop)
    assert sock.recv(1) == b"1"
    started = time.monotonic()
    sock.close()
    assert time.monotonic() - started < PATIENCE_S / 2
    assert sock.process.exit_status == -9
