"""Whatever breaks in the healer's thread is told to whoever asked it to look, and it looks again when asked again."""

from contextlib import nullcontext
from queue import SimpleQueue
from types import SimpleNamespace

import pytest

from lumctl.errors import UnreachableError
from lumctl.health.states import State
from lumctl.training import healer as room
from lumctl.training.healer import Healer

WITHIN_S = 10.0


class Told:
    """What a healer tells, in order."""

    def __init__(self):
        self.all = SimpleQueue()

    def __call__(self, event, *what):
        self.all.put((event.__name__, *what))

    def next(self):
        return self.all.get(timeout=WITHIN_S)


class Sites:
    """Opens sites on which all is well; ``broken`` says what happens instead, one for each, to the first ones."""

    def __init__(self, *broken):
        self.broken = list(broken)
        self.opened = 0

    def __call__(self):
        self.opened += 1
        if self.broken and (error := self.broken.pop(0)) is not None:
            raise error
        return nullcontext(SimpleNamespace(observe=self.observe))

    def observe(self):
        well = SimpleNamespace(state=State.OK, findings=[])
        return SimpleNamespace(report=SimpleNamespace(accelerators={"h1-a": well}, circuits={}), remedies=())


@pytest.fixture
def healing(monkeypatch):
    """A healer at work on sites, and what it tells."""
    begun = []

    def begin(sites):
        told = Told()
        healer = Healer(sites, "train", "r", "me", told)
        begun.append(healer)
        healer.begin()
        return healer, told

    monkeypatch.setattr(room, "IDLE_S", 0.0)
    yield begin
    for healer in begun:
        healer.close()


def well(told):
    return [told.next(), told.next()] == [("examined", {}), ("repaired", None)]


def test_a_site_that_cannot_be_opened_is_told_and_opened_again(healing):
    gone = UnreachableError("the store at db:5432 does not answer")
    sites = Sites(gone, gone, None)
    healer, told = healing(sites)
    healer.examine(["h1-a"], failed_only=False)
    assert told.next() == ("not_repaired", gone)
    healer.examine(["h1-a"], failed_only=False)
    assert well(told)
    assert sites.opened == 3


def test_what_is_put_off_cannot_end_it(healing, monkeypatch):
    tried = SimpleQueue()

    class Full:
        def __init__(self, context):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def ready(self, rack):
            tried.put(rack)
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(room, "Standby", Full)
    sites = Sites()
    healer, told = healing(sites)
    assert tried.get(timeout=WITHIN_S) == "r"
    healer.examine(["h1-a"], failed_only=False)
    assert well(told)
    assert sites.opened == 1, "a heal does not wait for sessions that were opened before"


def test_a_site_that_breaks_in_a_heal_is_opened_again(healing):
    sites = Sites()
    healer, told = healing(sites)
    healer.examine(["h1-a"], failed_only=False)
    assert well(told)
    healer.examine(["nobody"], failed_only=False)
    name, error = told.next()
    assert (name, error.message) == ("not_repaired", "KeyError: 'nobody'")
    healer.examine(["h1-a"], failed_only=False)
    assert well(told)
    assert sites.opened == 2


def test_what_is_refused_needs_no_other_site(healing, monkeypatch):
    sites = Sites()
    healer, told = healing(sites)
    for _ in range(2):
        with monkeypatch.context() as patched:
            refused = room.RefusedError("no one has agreed to it")
            patched.setattr(room, "not_well", lambda *_, error=refused: (_ for _ in ()).throw(error))
            healer.examine(["h1-a"], failed_only=False)
            assert told.next() == ("not_repaired", refused)
    assert sites.opened == 1
