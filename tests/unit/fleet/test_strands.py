"""Many connections in one thread: who waits gives way, and nobody holds up the others."""

import socket
import subprocess
import sys
import threading
import time
from queue import SimpleQueue

import pytest

from lumctl.fleet.ssh.strands import Strands, apart, here
from lumctl.fleet.ssh.transport import _Patient
from lumctl.fleet.ssh.wire import StrandSocket

PATIENCE_S = 20.0


@pytest.fixture
def strands():
    return Strands("test-strands")


@pytest.fixture
def said():
    return SimpleQueue()


@pytest.fixture
def pairs(strands):
    """Makes a strand's socket and its far end."""
    made = []

    def make():
        near, far = socket.socketpair()
        made.append((StrandSocket(near, strands), far))
        return made[-1]

    yield make
    for near, far in made:
        near.close()
        far.close()


def thread_of(strands):
    return [thread for thread in threading.enumerate() if thread.name == strands._name]


def until(condition):
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


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


def test_many_wait_in_one_thread(strands, pairs, said):
    ends = [pairs() for _ in range(50)]
    for number, (near, _) in enumerate(ends):
        strands.begin(receiving(near, said, number))
    for number, (_, far) in reversed(list(enumerate(ends))):
        far.sendall(b"%d" % number)
    assert {heard(said) for _ in ends} == {(number, b"%d" % number) for number in range(50)}
    assert len(thread_of(strands)) == 1


def test_the_thread_ends_with_the_last_strand_and_begins_again(strands, pairs, said):
    for _ in range(3):
        near, far = pairs()
        strands.begin(receiving(near, said, "a"))
        far.close()
        assert heard(said) == ("a", "end")
        until(lambda: not thread_of(strands))


def test_a_socket_of_an_earlier_thread_can_be_closed_in_a_later_one(strands, pairs, said):
    first, far = pairs()
    strands.begin(receiving(first, said, "first"))
    far.close()
    assert heard(said) == ("first", "end")
    until(lambda: not thread_of(strands))
    second, far = pairs()
    strands.begin(receiving(second, said, "second"))
    first.close()
    far.sendall(b"on")
    assert heard(said) == ("second", b"on")


def test_a_limit_of_time_is_kept_and_the_socket_is_good_afterwards(strands, pairs, said):
    near, far = pairs()
    near.settimeout(0.05)

    def receive():
        with pytest.raises(TimeoutError):
            near.recv(10)
        said.put("late")
        near.relax()
        said.put(near.recv(10))

    strands.begin(receive)
    assert heard(said) == "late"
    far.sendall(b"there")
    assert heard(said) == b"there"


def test_closing_wakes_the_strand_that_waits(strands, pairs, said):
    near, _ = pairs()
    near.on_quiet = lambda: said.put("waits")
    strands.begin(receiving(near, said, "a"))
    assert heard(said) == "waits"
    near.close()
    assert heard(said) == ("a", "end")


def test_sending_never_waits_and_nothing_is_lost(strands, pairs, said):
    near, far = pairs()
    strands.begin(receiving(near, said, "a"))
    sent = bytes(range(256)) * 20_000
    for at in range(0, len(sent), 50_000):
        assert near.send(sent[at : at + 50_000]) == len(sent[at : at + 50_000])
    got = b""
    while len(got) < len(sent):
        got += far.recv(1 << 20)
    assert got == sent
    # The strand went on receiving meanwhile.
    far.sendall(b"x")
    assert heard(said) == ("a", b"x")


def test_what_was_not_taken_when_the_far_end_left_is_dropped(strands, pairs, said):
    strands.begin(receiving(pairs()[0], said, "other"))
    near, far = pairs()
    strands.begin(receiving(near, said, "a"))
    near.send(bytes(5_000_000))
    far.close()
    assert heard(said)[0] == "a"
    until(lambda: not near._unsent)


def test_a_call_that_waits_is_made_apart_and_the_others_go_on(strands, pairs, said):
    let_go = threading.Event()
    near, far = pairs()
    strands.begin(receiving(near, said, "other"))

    def wait():
        assert here() is None
        return let_go.wait(PATIENCE_S)

    strands.begin(lambda: said.put(("apart", apart(wait), here() is strands)))
    far.sendall(b"meanwhile")
    assert heard(said) == ("other", b"meanwhile")
    let_go.set()
    assert heard(said) == ("apart", True, True)


def test_what_is_raised_apart_is_raised_in_the_strand(strands, said):
    def fail():
        raise LookupError("lost")

    def body():
        with pytest.raises(LookupError, match="lost"):
            apart(fail)
        said.put("raised")

    strands.begin(body)
    assert heard(said) == "raised"
    # Without strands it is a call like any other.
    assert apart(lambda: 5) == 5


def test_what_arrives_while_a_strand_is_elsewhere_waits_for_it(strands, pairs, said):
    near, far = pairs()
    let_go = threading.Event()

    def body():
        said.put(near.recv(10))
        apart(lambda: let_go.wait(PATIENCE_S))
        said.put(near.recv(10))

    strands.begin(body)
    far.sendall(b"one")
    assert heard(said) == b"one"
    far.sendall(b"two")
    # Nor does the thread look for it again and again.
    spent = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - spent < 0.1
    let_go.set()
    assert heard(said) == b"two"


def test_who_has_something_to_send_while_new_keys_are_agreed_on_gives_way(strands, pairs, said):
    clear = _Patient()
    near, far = pairs()
    strands.begin(receiving(near, said, "other"))

    # As paramiko does: for a tenth of a second at a time.
    def wait():
        said.put("waits")
        while not clear.wait(0.1):
            pass
        said.put("clear")

    strands.begin(wait)
    assert heard(said) == "waits"
    far.sendall(b"meanwhile")
    assert heard(said) == ("other", b"meanwhile")
    clear.set()
    assert heard(said) == "clear"
    assert clear.wait(0.1)


def test_at_the_end_of_a_program_strands_end_where_they_are(strands, pairs, said):
    near, _ = pairs()
    near.on_quiet = lambda: said.put("waits")

    def body():
        try:
            near.recv(10)
        finally:
            said.put("ended")

    strands.begin(body)
    assert heard(said) == "waits"
    strands.end()
    assert heard(said) == "ended"
    assert not thread_of(strands)
    strands.end()


@pytest.mark.parametrize("closed", [False, True])
def test_a_program_ends_in_the_middle_of_receiving(tmp_path, closed):
    program = tmp_path / "program.py"
    program.write_text(ENDS_IN_THE_MIDDLE)
    for _ in range(5):
        ended = subprocess.run([sys.executable, program, *["close"] * closed], check=False, capture_output=True)
        assert (ended.returncode, ended.stderr) == (0, b"")


ENDS_IN_THE_MIDDLE = """
import socket, sys, threading, time
from lumctl.fleet.ssh.strands import Strands
from lumctl.fleet.ssh.wire import StrandSocket
strands, near, far = Strands("ssh"), [], []
busy = threading.Event()
def receive(sock):
    while sock.recv(10):
        busy.set()
for _ in range(50):
    one, other = socket.socketpair()
    near.append(StrandSocket(one, strands))
    far.append(other)
    strands.begin(lambda sock=near[-1]: receive(sock))
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


def test_a_strand_that_fails_is_told_and_ends_alone(strands, pairs, said, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda told: said.put(told.exc_type))
    near, far = pairs()
    strands.begin(receiving(near, said, "other"))

    def fail():
        raise LookupError

    strands.begin(fail)
    assert heard(said) is LookupError
    strands.soon(fail)
    assert heard(said) is LookupError
    far.sendall(b"on")
    assert heard(said) == ("other", b"on")


def test_calls_are_made_in_their_order_by_the_thread_or_without_one_at_once(strands, pairs, said):
    strands.soon(lambda: said.put(here()))
    assert said.get_nowait() is None
    near, _ = pairs()
    strands.begin(receiving(near, said, "other"))
    for number in range(100):
        strands.soon(lambda number=number: said.put((number, here() is strands)))
    assert [heard(said) for _ in range(100)] == [(number, True) for number in range(100)]
