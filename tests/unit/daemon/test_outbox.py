"""Delivery in a thread of its own: in order, again and again for a while, and never more than there is room for."""

import threading
from types import SimpleNamespace

import pytest

from lumctl.daemon.notifications.http_receivers import DeliveryError
from lumctl.daemon.notifications.receivers import DeliveryOutcome, Outbox
from lumctl.daemon.process import ErrorLog

WAIT_S = 20


class Receiver:
    """Does as it is told: each ``answers`` entry is an error to raise; afterwards all is well."""

    def __init__(self):
        self.answers = []
        self.got = []
        self.ended = []
        self.open = threading.Event()
        self.open.set()
        self.done = threading.Event()
        self.wanted = 1

    def __call__(self, notification):
        assert self.open.wait(WAIT_S)
        self.got.append(notification.name)
        if self.answers:
            raise self.answers.pop(0)

    def settled(self, notification, outcome):
        self.ended.append((notification.name, outcome.value))
        if outcome is not DeliveryOutcome.SENT:
            return
        self.wanted -= 1
        if self.wanted == 0:
            self.done.set()


def note(name):
    return SimpleNamespace(name=name)


@pytest.fixture
def receiver():
    return Receiver()


@pytest.fixture
def outbox_of(receiver, said):
    made = []

    def make(**options):
        options = {"first_pause_s": 0.001, "chance": lambda: 1.0, **options}
        made.append(Outbox(receiver, receiver.settled, ErrorLog(said.append), **options))
        return made[-1]

    yield make
    receiver.open.set()
    for outbox in made:
        outbox.close()


def later(error="down"):
    return DeliveryError(error, again=True)


def test_what_fails_is_tried_again_and_stays_first(receiver, outbox_of, said):
    receiver.answers = [later(), later(), later()]
    receiver.wanted = 2
    outbox = outbox_of()
    outbox.put(note("a"))
    outbox.put(note("b"))
    assert receiver.done.wait(WAIT_S)
    assert receiver.got == ["a", "a", "a", "a", "b"]
    assert outbox.counts() == {"sent": 2, "retried": 3, "failed": 0, "dropped": 0}
    assert said == ["notifications: down", "notifications: ok again after 3 failures"]


def test_what_will_never_be_taken_is_given_up_at_once(receiver, outbox_of):
    receiver.answers = [DeliveryError("answered 404", again=False), ValueError("a bug")]
    outbox = outbox_of()
    for name in "abc":
        outbox.put(note(name))
    assert receiver.done.wait(WAIT_S)
    assert receiver.got == ["a", "b", "c"]
    assert outbox.counts() == {"sent": 1, "retried": 0, "failed": 2, "dropped": 0}


def test_what_is_too_old_is_given_up(receiver, outbox_of, clock):
    outbox = outbox_of(monotonic=clock, give_up_after_s=60)
    receiver.open.clear()
    outbox.put(note("a"))
    clock.at += 60
    outbox.put(note("b"))
    receiver.answers = [later()]
    receiver.open.set()
    assert receiver.done.wait(WAIT_S)
    assert receiver.got == ["a", "b"]
    assert outbox.counts()["failed"] == 1


def test_a_receiver_that_hangs_holds_up_nobody_and_the_oldest_are_dropped(receiver, outbox_of):
    receiver.open.clear()
    outbox = outbox_of(most=3)
    for number in range(100):
        outbox.put(note(number))
    assert outbox.waiting == 3
    receiver.wanted = 3
    receiver.open.set()
    assert receiver.done.wait(WAIT_S)
    assert receiver.got[-3:] == [97, 98, 99]
    assert outbox.counts()["dropped"] >= 97 - 1


def test_the_end_does_not_wait_for_a_pause(receiver, outbox_of):
    receiver.answers = [later()] * 100
    outbox = outbox_of(first_pause_s=3600)
    outbox.put(note("a"))
    while not receiver.got:
        receiver.done.wait(0.001)
    outbox.close()
    assert not outbox._thread.is_alive()
    assert receiver.got == ["a"]


@pytest.mark.parametrize(
    ("failures", "chance", "asked", "pause"),
    [(0, 1.0, 0, 1.0), (0, 0.0, 0, 0.5), (3, 1.0, 0, 8.0), (50, 1.0, 0, 60.0), (50, 0.0, 0, 30.0), (0, 1.0, 120, 120)],
)
def test_pauses_grow_vary_are_bounded_and_heed_the_receiver(outbox_of, failures, chance, asked, pause):
    outbox = outbox_of(first_pause_s=1.0, chance=lambda: chance)
    assert outbox._pause_s(failures, asked) == pause


def test_whoever_asked_is_told_what_became_of_each(outbox_of, receiver):
    receiver.open.clear()
    receiver.answers = [DeliveryError("no", again=False)]
    outbox = outbox_of(most=2)
    for name in "abc":
        outbox.put(note(name))
    receiver.open.set()
    assert receiver.done.wait(WAIT_S)
    outbox.close()
    ended = dict(receiver.ended)
    assert len(receiver.ended) >= 3
    assert ended["c"] == "sent"
    assert {"dropped", "failed"} >= {outcome for name, outcome in receiver.ended if name == "a"}
