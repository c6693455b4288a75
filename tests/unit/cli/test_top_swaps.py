"""Which swaps the dashboard plans before it offers them, and how long the results hold."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from rack_states import LOST, lost_gpu

from lumctl.cli.top.swaps import AGAIN_S, SwapChecker
from lumctl.errors import RefusedError
from lumctl.store import StoreError
from lumctl.swap import restoration, suggestions
from lumctl.tui.views.records import RecordedLook

RETURNS = {"train-a": RefusedError("h01 does not answer")}
REFUSED = RefusedError("no spare can replace it")


@pytest.fixture
def planned(monkeypatch):
    """The groups for which a swap is planned; every plan is refused."""
    groups = []

    def plan(_context, _seen, failed):
        groups.append(tuple(failed))
        return REFUSED

    monkeypatch.setattr(suggestions, "swap_obstacle", plan)
    monkeypatch.setattr(restoration, "return_refusals", lambda *_: RETURNS)
    return groups


def test_a_fault_is_planned_once_until_something_changes_or_time_has_passed(planned):
    seen, now = RecordedLook(lost_gpu()), [0.0]
    check = SwapChecker(nullcontext, lambda: now[0])
    assert check(seen).swap_checks == {frozenset({LOST}): REFUSED}
    assert check(seen).swap_checks == {frozenset({LOST}): REFUSED}
    assert check(seen).return_checks == RETURNS
    assert planned == [(LOST,)]
    now[0] += AGAIN_S
    check(seen)
    assert planned == [(LOST,)] * 2
    elsewhere = replace(seen.observation, assignment={**seen.observation.assignment, "train-b": ()})
    check(replace(seen, observation=elsewhere))
    assert planned == [(LOST,)] * 3


def test_a_store_that_cannot_be_read_forbids_no_swap(planned):
    def unreadable():
        raise StoreError("the store is locked")

    assert SwapChecker(unreadable)(RecordedLook(lost_gpu())).swap_checks == {}
    assert planned == []
