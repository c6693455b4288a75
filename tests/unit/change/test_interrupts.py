"""Requests to stop at the seams of a run: between its steps and its beginning or its end nobody is left to end it."""

import os
import signal
from contextlib import contextmanager

import pytest

from lumctl.change import engine
from lumctl.change.interrupts import undisturbed
from lumctl.errors import RolledBackError

REQUESTS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def interrupted_before(monkeypatch, name, request) -> None:
    """A request to stop comes just before the engine calls something."""
    real = getattr(engine, name)

    @contextmanager
    def seam(*words, **more):
        os.kill(os.getpid(), request)
        with real(*words, **more):
            yield

    def call(*words, **more):
        os.kill(os.getpid(), request)
        return real(*words, **more)

    monkeypatch.setattr(engine, name, seam if name == "undisturbed" else call)


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("seam", ["pass_over_interrupts", "let_interrupts_in"])
def test_one_that_comes_at_a_seam_takes_the_run_back(rack, monkeypatch, request_, seam):
    plan, before = rack.plan(), dict(rack.twin.cells)
    interrupted_before(monkeypatch, seam, request_)
    with pytest.raises(RolledBackError, match="it was interrupted"):
        rack.apply(plan)
    assert rack.store.runs.all()[0].state == "rolled-back"
    assert rack.twin.cells == before
    assert rack.store.runs.unfinished(now=rack.time + 31) == ()


@pytest.mark.parametrize("request_", REQUESTS)
def test_one_that_comes_when_all_is_done_is_passed_over(rack, monkeypatch, request_):
    plan = rack.plan()
    interrupted_before(monkeypatch, "undisturbed", request_)
    assert rack.apply(plan).outcome == "done"
    assert rack.store.runs.all()[0].state == "done"


@pytest.mark.parametrize("request_", REQUESTS)
def test_so_is_one_that_comes_after_a_failure_before_its_undo(rack, monkeypatch, request_):
    plan, before = rack.plan(), dict(rack.twin.cells)
    rack.dark.add("s3-gpu0-a")
    interrupted_before(monkeypatch, "undisturbed", request_)
    with pytest.raises(RolledBackError, match="light was not verified"):
        rack.apply(plan)
    assert rack.twin.cells == before


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_second_one_while_the_first_is_on_its_way_up_changes_nothing(rack, monkeypatch, request_):
    plan, before = rack.plan(), dict(rack.twin.cells)
    interrupted_before(monkeypatch, "undisturbed", request_)
    rack.at("commit", do=lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(RolledBackError, match="it was interrupted"):
        rack.apply(plan)
    assert rack.twin.cells == before


def test_a_run_that_begins_waits_with_it_until_it_can_be_ended(rack):
    plan = rack.plan()
    rack.at("begin", do=lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(RolledBackError, match="it was interrupted"):
        rack.apply(plan)
    assert (rack.acts(), rack.store.runs.all()[0].state) == ([], "rolled-back")


def test_before_a_run_begins_it_ends_the_command_and_nothing_else(rack):
    plan, runs = rack.plan(), len(rack.store.runs.all())
    rack.at("arm", do=lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        rack.apply(plan)
    assert len(rack.store.runs.all()) == runs
    assert rack.seen("release") == [("release",)]


def test_the_handlers_from_before_are_put_back(rack):
    before = [signal.getsignal(number) for number in REQUESTS]
    rack.apply(rack.plan())
    with undisturbed():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert [signal.getsignal(number) for number in REQUESTS] == before
