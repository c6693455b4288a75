"""The clock of the engine's machine jumps by an hour; or the engine stands still for longer than its lease."""

import os
import signal
import time
from collections import Counter

import pytest
from fates import Fates, require_free

from lumctl.change.interrupts import LEASE_TERM_S
from lumctl.change.resumption import abort
from lumctl.errors import ExitCode, RefusedError

HOUR_S = 3600.0
FEW = 2
JUMPS = pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])


@pytest.fixture(scope="module")
def moments(yard):
    return yard.moments("swap")


@JUMPS
def test_a_clock_that_jumps_in_mid_swap(yard, moments, sample, tell, jump_s) -> None:
    outcomes = Counter()
    for number in sample(range(1, len(moments) + 1), FEW):
        plan = yard.ready("swap")
        status, said = yard.run_alone(plan, lambda: {"clock": jump_s}, at=number)
        run = yard.newest()
        assert (status, run.state) in {(0, "done"), (6, "rolled-back"), (5, "refused")}, said
        assert yard.seen().differences(yard.after if run.state == "done" else yard.before) == {}
        require_free(yard, later_s=0.0)
        outcomes[run.state] += 1
    tell(f"the clock jumps by {jump_s:.0f} s: {dict(outcomes)}")


@JUMPS
def test_a_clock_that_jumps_between_runs(yard, jump_s) -> None:
    plan = yard.ready("swap")
    assert yard.run(plan, clock=jump_s).status == ExitCode.DONE
    assert yard.seen().differences(yard.after) == {}
    back = yard.ready("rollback")
    assert yard.run(back).status == ExitCode.DONE
    assert yard.seen().differences(yard.before) == {}
    assert yard.rack.store.first_break() is None


@JUMPS
def test_a_lease_that_was_given_by_a_wrong_clock_is_not_stuck(yard, moments, jump_s) -> None:
    plan = yard.ready("swap")
    run = yard.run(plan, clock=jump_s, at=moments.index("after act program") + 1, do="kill-both").run
    yard.end_guards()
    Fates(yard).require_honest()
    if jump_s > 0:
        with yard.rack.another_context() as context, pytest.raises(RefusedError, match=r"its lease ends in \d\d? s"):
            abort(context, run)
    with yard.rack.another_context(now=lambda: time.time() + LEASE_TERM_S) as later:
        abort(later, yard.rack.store.runs.get(run.id))
    assert yard.seen().differences(yard.before) == {}
    assert yard.rack.store.runs.get(run.id).state == "rolled-back"


def test_an_engine_of_another_machine_that_wakes_up_after_its_run_was_aborted_writes_nothing(yard, moments) -> None:
    """Its guard is gone, too: only the lease stands between it and who has continued."""
    plan = yard.ready("swap")

    def stand_still():
        os.kill(yard.engine, signal.SIGSTOP)
        os.kill(yard.guard(), signal.SIGKILL)
        run = yard.newest()
        with yard.rack.another_context(now=lambda: time.time() + LEASE_TERM_S) as later:
            abort(later, run)
        assert yard.seen().differences(yard.before) == {}
        os.kill(yard.engine, signal.SIGCONT)

    at = moments.index("before act program") + 1
    status, said = yard.run_alone(plan, stand_still, at=at, elsewhere=True)
    assert (status, yard.newest().state) == (ExitCode.ROLLED_BACK, "rolled-back")
    assert "took it over by swap abort" in said
    assert yard.rack.store.fabric.uncertain_since("mesh") is None
    assert yard.seen().differences(yard.before) == {}
