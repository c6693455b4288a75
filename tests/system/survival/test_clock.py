"""The clock of the engine's machine jumps by an hour; or the engine stands still for longer than its lease."""

import os
import signal
import time
from collections import Counter

import pytest
from crash_assertions import CrashAssertions, require_free

from lumctl.change.interrupts import LEASE_TERM_S
from lumctl.change.resumption import abort
from lumctl.errors import ExitCode, RefusedError

HOUR_S = 3600.0
FEW = 2
JUMPS = pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])


@pytest.fixture(scope="module")
def moments(crash_rack):
    return crash_rack.moments("swap")


@JUMPS
def test_a_clock_that_jumps_in_mid_swap(crash_rack, moments, sample, tell, jump_s) -> None:
    outcomes = Counter()
    for number in sample(range(1, len(moments) + 1), FEW):
        plan = crash_rack.ready("swap")
        status, said = crash_rack.run_alone(plan, lambda: {"clock": jump_s}, at=number)
        run = crash_rack.newest()
        assert (status, run.state) in {(0, "done"), (6, "rolled-back"), (5, "refused")}, said
        assert crash_rack.seen().differences(crash_rack.after if run.state == "done" else crash_rack.before) == {}
        require_free(crash_rack, later_s=0.0)
        outcomes[run.state] += 1
    tell(f"the clock jumps by {jump_s:.0f} s: {dict(outcomes)}")


@JUMPS
def test_a_clock_that_jumps_between_runs(crash_rack, jump_s) -> None:
    plan = crash_rack.ready("swap")
    assert crash_rack.run(plan, clock=jump_s).status == ExitCode.DONE
    assert crash_rack.seen().differences(crash_rack.after) == {}
    back = crash_rack.ready("rollback")
    assert crash_rack.run(back).status == ExitCode.DONE
    assert crash_rack.seen().differences(crash_rack.before) == {}
    assert crash_rack.rack.store.first_break() is None


@JUMPS
def test_a_lease_that_was_given_by_a_wrong_clock_is_not_stuck(crash_rack, moments, jump_s) -> None:
    plan = crash_rack.ready("swap")
    run = crash_rack.run(plan, clock=jump_s, at=moments.index("after act program") + 1, do="kill-both").run
    crash_rack.end_guards()
    CrashAssertions(crash_rack).require_honest()
    if jump_s > 0:
        with (
            crash_rack.rack.another_context() as context,
            pytest.raises(RefusedError, match=r"its lease ends in \d\d? s"),
        ):
            abort(context, run)
    with crash_rack.rack.another_context(now=lambda: time.time() + LEASE_TERM_S) as later:
        abort(later, crash_rack.rack.store.runs.get(run.id))
    assert crash_rack.seen().differences(crash_rack.before) == {}
    assert crash_rack.rack.store.runs.get(run.id).state == "rolled-back"


def test_an_engine_of_another_machine_that_wakes_up_after_its_run_was_aborted_writes_nothing(
    crash_rack, moments
) -> None:
    """Its guard is gone, too: only the lease stands between it and who has continued."""
    plan = crash_rack.ready("swap")

    def stand_still():
        os.kill(crash_rack.engine, signal.SIGSTOP)
        os.kill(crash_rack.guard(), signal.SIGKILL)
        run = crash_rack.newest()
        with crash_rack.rack.another_context(now=lambda: time.time() + LEASE_TERM_S) as later:
            abort(later, run)
        assert crash_rack.seen().differences(crash_rack.before) == {}
        os.kill(crash_rack.engine, signal.SIGCONT)

    at = moments.index("before act program") + 1
    status, said = crash_rack.run_alone(plan, stand_still, at=at, elsewhere=True)
    assert (status, crash_rack.newest().state) == (ExitCode.ROLLED_BACK, "rolled-back")
    assert "took over the run with swap abort" in said
    assert crash_rack.rack.store.fabric.uncertain_since("mesh") is None
    assert crash_rack.seen().differences(crash_rack.before) == {}
