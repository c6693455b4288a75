"""Many connections in one thread: who waits gives way, and nobody holds up the others."""

import socket
import subprocess
import sys
import threading
import time
from queue import SimpleQueue

import pytest
from waiting import until

from lumctl.fleet.ssh.event_loop import EventLoop, current_loop, run_apart
from lumctl.fleet.ssh.fast_client import LoopSocket
from lumctl.fleet.ssh.paramiko_internals import _YieldingEvent

PATIENCE_S = 20.0


@pytest.fixture
def loop():
    return EventLoop("test-loop")


@pytest.fixture
def said():
    return SimpleQueue()


@pytest.fixture
def pairs(loop):
    """Makes a task's socket and its far end."""
    made = []

    def make():
        near, far = socket.socketpair()
        made.append((LoopSocket(near, loop), far))
        return made[-1]

    yield make
    for near, far in made:
        near.close()
        far.close()


def thread_of(loop):
    return [thread for thread in threading.enumerate() if thread.name == loop._name]


def heard(said):
    return said.get(timeout=PATIENCE_S)


def receiving(near, said, name):
    def receive():
        try:
            while data := near.recv(1000):
                said.put((name, data))
            said.put((name, "end"))
        except OSError as error:
            said.put((name, type(error)))

    return receive


def test_many_wait_in_one_thread(loop, pairs, said):
    ends = [pairs() for _ in range(50)]
    for number, (near, _) in enumerate(ends):
        loop.start_task(receiving(near, said, number))
    for number, (_, far) in reversed(list(enumerate(ends))):
        far.sendall(b"%d" % number)
    assert {heard(said) for _ in ends} == {(number, b"%d" % number) for number in range(50)}
    assert len(thread_of(loop)) == 1


def test_the_thread_ends_with_the_last_task_and_begins_again(loop, pairs, said):
    for _ in range(3):
        near, far = pairs()
        loop.start_task(receiving(near, said, "a"))
        far.close()
        assert heard(said) == ("a", "end")
        until(lambda: not thread_of(loop))


def test_a_socket_of_an_earlier_thread_can_be_closed_in_a_later_one(loop, pairs, said):
    first, far = pairs()
    loop.start_task(receiving(first, said, "first"))
    far.close()
    assert heard(said) == ("first", "end")
    until(lambda: not thread_of(loop))
    second, far = pairs()
    loop.start_task(receiving(second, said, "second"))
    first.close()
    far.sendall(b"on")
    assert heard(said) == ("second", b"on")


def test_a_limit_of_time_is_kept_and_the_socket_is_good_afterwards(loop, pairs, said):
    near, far = pairs()
    near.settimeout(0.05)

    def receive():
        with pytest.raises(TimeoutError):
            near.recv(10)
        said.put("late")
        near.end_timeouts()
        said.put(near.recv(10))

    loop.start_task(receive)
    assert heard(said) == "late"
    far.sendall(b"there")
    assert heard(said) == b"there"


def test_closing_wakes_the_task_that_waits(loop, pairs, said):
    near, _ = pairs()
    near.on_idle = lambda: said.put("waits")
    loop.start_task(receiving(near, said, "a"))
    assert heard(said) == "waits"
    near.close()
    assert heard(said) == ("a", "end")


def test_sending_never_waits_and_nothing_is_lost(loop, pairs, said):
    near, far = pairs()
    loop.start_task(receiving(near, said, "a"))
    sent = bytes(range(256)) * 20_000
    for at in range(0, len(sent), 50_000):
        assert near.send(sent[at : at + 50_000]) == len(sent[at : at + 50_000])
    got = b""
    while len(got) < len(sent):
        got += far.recv(1 << 20)
    assert got == sent
    # The task continued receiving meanwhile.
    far.sendall(b"x")
    assert heard(said) == ("a", b"x")


def test_what_was_not_taken_when_the_far_end_left_is_dropped(loop, pairs, said):
    loop.start_task(receiving(pairs()[0], said, "other"))
    near, far = pairs()
    loop.start_task(receiving(near, said, "a"))
    near.send(bytes(5_000_000))
    far.close()
    assert heard(said)[0] == "a"
    until(lambda: not near._unsent)


def test_a_call_that_waits_is_made_apart_and_the_others_go_on(loop, pairs, said):
    let_go = threading.Event()
    near, far = pairs()
    loop.start_task(receiving(near, said, "other"))

    def wait():
        assert current_loop() is None
        return let_go.wait(PATIENCE_S)

    loop.start_task(lambda: said.put(("apart", run_apart(wait), current_loop() is loop)))
    far.sendall(b"meanwhile")
    assert heard(said) == ("other", b"meanwhile")
    let_go.set()
    assert heard(said) == ("apart", True, True)


def test_what_is_raised_apart_is_raised_in_the_task(loop, said):
    def fail():
        raise LookupError("lost")

    def body():
        with pytest.raises(LookupError, match="lost"):
            run_apart(fail)
        said.put("raised")

    loop.start_task(body)
    assert heard(said) == "raised"
    # Without loop it is a call like any other.
    assert run_apart(lambda: 5) == 5


def test_what_arrives_while_a_task_is_elsewhere_waits_for_it(loop, pairs, said):
    near, far = pairs()
    let_go = threading.Event()

    def body():
        said.put(near.recv(10))
        run_apart(lambda: let_go.wait(PATIENCE_S))
        said.put(near.recv(10))

    loop.start_task(body)
    far.sendall(b"one")
    assert heard(said) == b"one"
    far.sendall(b"two")
    # Nor does the thread look for it again and again.
    spent = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - spent < 0.1
    let_go.set()
    assert heard(said) == b"two"


def test_who_has_something_to_send_while_new_keys_are_agreed_on_gives_way(loop, pairs, said):
    clear = _YieldingEvent()
    near, far = pairs()
    loop.start_task(receiving(near, said, "other"))

    # As paramiko does: for a tenth of a second at a time.
    def wait():
        said.put("waits")
        while not clear.wait(0.1):
            pass
        said.put("clear")

    loop.start_task(wait)
    assert heard(said) == "waits"
    far.sendall(b"meanwhile")
    assert heard(said) == ("other", b"meanwhile")
    clear.set()
    assert heard(said) == "clear"
    assert clear.wait(0.1)


def test_at_the_end_of_a_program_tasks_end_where_they_are(loop, pairs, said):
    near, _ = pairs()
    near.on_idle = lambda: said.put("waits")

    def body():
        try:
            near.recv(10)
        finally:
            said.put("ended")

    loop.start_task(body)
    assert heard(said) == "waits"
    loop.end()
    assert heard(said) == "ended"
    assert not thread_of(loop)
    loop.end()


@pytest.mark.parametrize("closed", [False, True])
def test_a_program_ends_in_the_middle_of_receiving(tmp_path, closed):
    program = tmp_path / "program.py"
    program.write_text(ENDS_IN_THE_MIDDLE)
    for _ in range(5):
        ended = subprocess.run([sys.executable, program, *["close"] * closed], check=False, capture_output=True)
        assert (ended.returncode, ended.stderr) == (0, b"")


ENDS_IN_THE_MIDDLE = """
import socket, sys, threading, time
from lumctl.fleet.ssh.event_loop import EventLoop
from lumctl.fleet.ssh.fast_client import LoopSocket
loop, near, far = EventLoop("ssh"), [], []
busy = threading.Event()
def receive(sock):
    while sock.recv(10):
        busy.set()
for _ in range(50):
    one, other = socket.socketpair()
    near.append(LoopSocket(one, loop))
    far.append(other)
    loop.start_task(lambda sock=near[-1]: receive(sock))
def talk():
    while True:
        for sock in far:
            try:
                sock.send(b"x")
            except OSError:
                pass
threading.Thread(target=talk, daemon=True).start()
busy.wait()
if sys.argv[1:]:
    for sock in near:
        sock.close()
"""


def test_a_task_that_fails_is_told_and_ends_alone(loop, pairs, said, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda told: said.put(told.exc_type))
    near, far = pairs()
    loop.start_task(receiving(near, said, "other"))

    def fail():
        raise LookupError

    loop.start_task(fail)
    assert heard(said) is LookupError
    loop.call_soon(fail)
    assert heard(said) is LookupError
    far.sendall(b"on")
    assert heard(said) == ("other", b"on")


def test_calls_are_made_in_their_order_by_the_thread_or_without_one_at_once(loop, pairs, said):
    loop.call_soon(lambda: said.put(current_loop()))
    assert said.get_nowait() is None
    near, _ = pairs()
    loop.start_task(receiving(near, said, "other"))
    for number in range(100):
        loop.call_soon(lambda number=number: said.put((number, current_loop() is loop)))
    assert [heard(said) for _ in range(100)] == [(number, True) for number in range(100)]
