"""Runs whose engine and guard were killed with kill -9 at a boundary of the journal, continued with or undone."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from lumctl.change import apply
from lumctl.change.resumption import abort, resume
from lumctl.errors import ExitCode
from lumctl.swap import plan_rollback

CAMPAIGN = bool(os.environ.get("LUMCTL_CAMPAIGN"))
END = 6
"""The transactions of this swap: see test_guard.py."""
BOUNDARIES = [{when: number} for number in range(1, END + 1) for when in ("before", "after")][1:-1]
"""But not before the first, when there is no run, nor after the last, when it has ended."""
SAMPLE = BOUNDARIES if CAMPAIGN else BOUNDARIES[1::4]


@pytest.fixture(scope="module")
def swap(tmp_path_factory, rack_of) -> Iterator[tuple]:
    """A rack with a dead GPU, and the plan of its swap: undone whole, it can be applied again."""
    for rack in rack_of("prototype", tmp_path_factory.mktemp("finished")):
        plan = rack.lost()
        yield rack, plan, rack.cells(), rack.transmitters()


def cut(rack, plan, where) -> str:
    """Apply in a process that stops at a boundary, and kill its guard and it there."""
    with rack.engine(plan, signal=signal.SIGSTOP, **where) as engine:
        rack.await_stop(engine)
        os.kill(rack.guard, signal.SIGKILL)
        engine.kill()
    run = max(rack.store.runs.all(), key=lambda run: run.fence)
    assert run.state == "running"
    return run.id


def later(rack):
    """When the lease of a dead engine has ended."""
    return rack.another_context(now=lambda: time.time() + 60)


def is_free(rack) -> None:
    assert rack.store.first_break() is None
    with later(rack) as context:
        assert rack.store.runs.unfinished(now=context.now()) == ()
    rack.store.leases.release(rack.store.leases.acquire("prototype", "the next one", term_s=1.0, now=time.time() + 120))


@pytest.mark.parametrize("where", SAMPLE, ids=str)
def test_a_run_that_was_killed_with_its_guard_is_brought_to_its_planned_end(swap, where) -> None:
    rack, plan, before, transmitters = swap
    run = cut(rack, plan, where)
    with later(rack) as context:
        assert resume(context, rack.store.runs.get(run)).run == run
    cells = rack.cells()
    planned = {change.puc: change.after for change in plan.changes}
    assert cells == {"mesh": {puc: planned.get(puc, state) for puc, state in before["mesh"].items()}}
    assert rack.context.known_states("mesh") == cells["mesh"]
    assert rack.store.runs.get(run).state == "done"
    assert rack.context.assignment()["finetune"] == ("s0-gpu0", "s3-gpu0", "s2-gpu0")
    assert all(rack.ok_circuits("finetune"))
    is_free(rack)
    with later(rack) as context:
        apply(context, plan_rollback(context, rack.store.runs.get(run)))
    assert (rack.cells(), rack.transmitters()) == (before, transmitters)


@pytest.mark.parametrize("where", SAMPLE, ids=str)
def test_or_taken_back_to_where_it_began(swap, where) -> None:
    rack, plan, before, transmitters = swap
    run = cut(rack, plan, where)
    with later(rack) as context:
        assert abort(context, rack.store.runs.get(run)).outcome == "rolled-back"
    assert (rack.cells(), rack.transmitters()) == (before, transmitters)
    assert rack.context.known_states("mesh") == before["mesh"]
    assert rack.store.runs.get(run).state == "rolled-back"
    assert rack.context.assignment()["finetune"] == ("s0-gpu0", "s1-gpu0", "s2-gpu0")
    is_free(rack)


def test_whoever_wakes_up_late_writes_nothing_more(swap) -> None:
    rack, plan, before, _ = swap
    with rack.engine(plan, signal=signal.SIGSTOP, after=4, elsewhere=True) as engine:
        rack.await_stop(engine)
        run = max(rack.store.runs.all(), key=lambda run: run.fence)
        with later(rack) as context:
            abort(context, run)
        entries = rack.store.journal.of_run(run.id)
        engine.send_signal(signal.SIGCONT)
        said = engine.stdout.read()
    rack.await_guard()
    assert rack.store.journal.of_run(run.id) == entries
    assert engine.returncode in {ExitCode.ROLLED_BACK, ExitCode.HALF_DONE}, said
    assert rack.cells() == before
