"""Guards that stand by: armed at once when a run comes, replaced when they are gone, dismissed when none comes."""

import os
import signal
from types import SimpleNamespace

import pytest

from lumctl.change.guard import Standby
from lumctl.errors import RefusedError


@pytest.fixture
def standby(rack):
    rack.context.endpoints = None  # nobody asks where things answer
    with Standby(rack.context) as made:
        yield made


@pytest.fixture
def lease(rack):
    return rack.store.leases.acquire("prototype", "me", term_s=30.0, now=rack.time)


def test_the_one_that_stands_by_is_armed(rack, standby, lease):
    standby.ready("prototype")
    (waiting,) = standby._guards.values()
    standby.ready("prototype")
    guard = standby.arm(rack.context, lease, 62.0)
    assert guard is waiting
    assert guard.alive
    guard.dismiss()
    guard._process.wait(10)
    assert guard._process.returncode == 0


def test_one_that_is_gone_is_replaced(rack, standby, lease):
    standby.ready("prototype")
    (waiting,) = standby._guards.values()
    os.kill(waiting._process.pid, signal.SIGKILL)
    waiting._process.wait(10)
    guard = standby.arm(rack.context, lease, 62.0)
    assert guard is not waiting
    assert guard.alive
    guard.dismiss()


def test_none_is_left_when_no_run_came(standby):
    standby.ready("prototype")
    (waiting,) = standby._guards.values()
    standby.__exit__()
    waiting._process.wait(10)
    assert waiting._process.returncode == 0


def test_one_that_cannot_be_told_under_which_lease_is_dismissed_and_that_is_a_refusal(rack, standby):
    standby.ready("prototype")
    (waiting,) = standby._guards.values()
    with pytest.raises(RefusedError, match="cannot start a revert guard"):
        standby.arm(rack.context, SimpleNamespace(rack="prototype", what=lambda: None), 62.0)  # no pickle of it
    waiting._process.wait(10)
    assert waiting._process.returncode == 0


def test_none_stands_by_that_cannot_be_told_what_to_do_and_a_run_is_refused(rack, standby, lease):
    rack.context.endpoints = lambda: None  # which cannot be recorded
    standby.ready("prototype")
    assert not standby._guards
    with pytest.raises(RefusedError, match="cannot start a revert guard"):
        standby.arm(rack.context, lease, 62.0)
