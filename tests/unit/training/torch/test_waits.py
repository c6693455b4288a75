"""Who waits for a collective can be let go, and what comes of it otherwise is what PyTorch gives."""

import gc
import threading
import weakref
from queue import SimpleQueue

import pytest

from lumctl.training.torch import waits as module
from lumctl.training.torch.stores import GivenUpError
from lumctl.training.torch.waits import Waits, keep

WITHIN_S = 20.0
"""For what comes at once."""


@pytest.fixture
def waits():
    return Waits()


class Forgotten:
    """An operation that ends only when the test does."""

    def __init__(self):
        self.begun, self.end = threading.Event(), threading.Event()

    def __call__(self):
        self.thread = threading.current_thread()
        self.begun.set()
        assert self.end.wait(WITHIN_S)
        return "too late"


@pytest.fixture
def forgotten():
    made = Forgotten()
    yield made
    made.end.set()


def waiting(waits, native):
    """A thread that waits, and what comes of it."""
    came = []

    def wait():
        try:
            came.append(waits.wait(native))
        except GivenUpError as error:
            came.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, came


def test_what_it_gives_and_what_it_raises_is_what_the_operation_does(waits):
    assert waits.wait(lambda: "summed up") == "summed up"

    def breaks():
        raise RuntimeError("Connection closed by peer")

    with pytest.raises(RuntimeError, match="Connection closed by peer"):
        waits.wait(breaks)


def test_one_thread_is_enough_for_waits_one_after_the_other(waits):
    assert len({waits.wait(threading.current_thread) for _ in range(50)}) == 1


def test_who_waits_for_what_is_forgotten_is_let_go_and_so_is_who_comes_later(waits, forgotten):
    thread, came = waiting(waits, forgotten)
    assert forgotten.begun.wait(WITHIN_S)
    waits.leave(0.0)
    thread.join(WITHIN_S)
    assert [type(each) for each in came] == [GivenUpError]
    with pytest.raises(GivenUpError):
        waits.wait(lambda: "never begun")
    assert Waits().wait(lambda: "another group") == "another group"


def test_who_comes_to_an_end_in_time_has_its_own(waits, forgotten):
    thread, came = waiting(waits, forgotten)
    assert forgotten.begun.wait(WITHIN_S)
    leaving = threading.Thread(target=waits.leave, args=(WITHIN_S,))
    leaving.start()
    forgotten.end.set()
    thread.join(WITHIN_S)
    leaving.join(WITHIN_S)
    assert came == ["too late"]


def test_the_thread_that_was_left_with_it_helps_again_when_it_has_ended(waits, forgotten, monkeypatch):
    free = SimpleQueue()
    monkeypatch.setattr(module, "_helpers", free)
    thread, _ = waiting(waits, forgotten)
    assert forgotten.begun.wait(WITHIN_S)
    waits.leave(0.0)
    thread.join(WITHIN_S)
    assert free.empty()
    forgotten.end.set()
    helper = free.get(timeout=WITHIN_S)
    free.put(helper)
    assert Waits().wait(threading.current_thread) is forgotten.thread


class Group:
    """What is let go of when nothing names it any more."""


def test_what_is_kept_outlives_whoever_made_it_and_no_longer_than_that():
    let_go = threading.Event()
    one, other = Group(), Group()
    kept = weakref.ref(one)
    gone = weakref.ref(other, lambda _: let_go.set())
    keep([one], WITHIN_S)
    keep([other], 0.01)
    del one, other
    gc.collect()
    assert let_go.wait(WITHIN_S)
    assert gone() is None
    assert kept() is not None
