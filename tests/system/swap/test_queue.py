"""Jobs that wait for spares: in turn, whole groups only, and through kill -9, on a ring of eight."""

import os
import signal
import time

import pytest
from campaigning import campaign
from waiting import until

from lumctl.change import apply
from lumctl.change.resumption import abort, resume
from lumctl.errors import RefusedError
from lumctl.spares.fitness import unfit_reasons
from lumctl.store import SERVED, WAITING
from lumctl.swap import plan_return, plan_rollback, plan_swap
from lumctl.swap.demand_queue import queue_demands, queue_entries
from lumctl.swap.explanations import NoSpareError

RACK, JOB = "ring8", "train"
PAIR, LONE = ("h2-gpu0", "h2-gpu1"), "h3-gpu0"


@pytest.fixture
def rack(rack_of, tmp_path):
    made = rack_of(RACK, tmp_path, loses=(JOB, "h1-gpu0"))
    yield next(made)
    next(made, None)


def queue(rack, *failed):
    """Queue what no spare can serve now, as ``swap plan --queue`` does."""
    with pytest.raises(NoSpareError) as refused:
        plan_swap(rack.context, JOB, list(failed))
    seen = rack.context.observe()
    (demand,) = queue_demands(rack.store, seen, RACK, failed, why=refused.value.message, who="ann@console")
    return demand


def entries(rack):
    return queue_entries(rack.store.demands.waiting(), rack.context.observe(), RACK)[0]


def one_spare_is_taken(rack):
    """Lose a rank and replace it, so that one spare is left; then lose a pair that needs two."""
    apply(rack.context, rack.lost())
    for name in (*PAIR, LONE):
        rack.sim.inject(name, "gpu-lost")


def return_it(rack):
    rack.sim.clear("h1-gpu0")
    # Its host starts again, which cuts the connection.
    until(lambda: not any(unfit_reasons(rack.context.observe(), "h1-gpu0")))
    apply(rack.context, plan_return(rack.context, JOB))


def test_a_group_waits_whole_takes_its_turn_and_is_served_by_its_run(rack):
    one_spare_is_taken(rack)
    demand = queue(rack, *PAIR)
    (entry,) = entries(rack)
    assert entry.given == ()
    assert "needs 2 at once" in entry.reasons[0]
    # One spare is no use to the pair, so it is not kept for it.
    assert plan_swap(rack.context, JOB, [LONE]).replacements[0].spare in {"h5-gpu0", "h5-gpu1"}

    return_it(rack)
    (entry,) = entries(rack)
    assert set(entry.given) == {"h5-gpu0", "h5-gpu1"}
    with pytest.raises(NoSpareError, match=r"is kept for train, which asked for it .* \(demand-0001") as refused:
        plan_swap(rack.context, JOB, [LONE])
    assert "lumctl spare queue" in refused.value.hint
    named = plan_swap(rack.context, JOB, [LONE], ["h5-gpu0"])
    assert named.replacements[0].spare == "h5-gpu0"

    run = apply(rack.context, plan_swap(rack.context, JOB, list(PAIR))).run
    (ended,) = rack.store.demands.all()
    assert (ended.id, ended.state, ended.run) == (demand.id, SERVED, run)
    assert entries(rack) == []
    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(run)))
    assert [each.state for each in rack.store.demands.all()] == [SERVED]  # who rolls back may ask again
    assert rack.store.first_break() is None


def test_of_two_demands_of_the_same_moment_the_one_that_the_queue_names_is_served(rack):
    one_spare_is_taken(rack)
    apply(rack.context, plan_swap(rack.context, JOB, [LONE]))
    seen = rack.context.observe()
    for name in PAIR:  # one after the other, as of two jobs that one command queues
        rack.store.demands.ask(RACK, {JOB: (name,)}, why="", who="ann@console", at=seen.at)
    return_it(rack)
    rack.sim.clear(LONE)
    first, second = entries(rack)
    assert (bool(first.given), bool(second.given)) == (True, False) or first.given != second.given
    for entry in (first, second):
        failed = list(entry.demand.accelerators)
        if entry.given:
            assert plan_swap(rack.context, JOB, failed).replacements[0].failed == failed[0]
        else:
            with pytest.raises(NoSpareError):
                plan_swap(rack.context, JOB, failed)


def test_spares_that_are_free_but_that_no_plan_can_use_are_not_waited_for(rack):
    rack.sim.inject(LONE, "gpu-lost")
    seen = rack.context.observe()
    with pytest.raises(RefusedError, match=r"would wait in vain: h5-gpu\d is free, but no plan can use it"):
        queue_demands(rack.store, seen, RACK, [LONE], why="no route", who="ann@console")
    with pytest.raises(RefusedError, match="h1-gpu0 can work"):
        queue_demands(rack.store, seen, RACK, ["h1-gpu0"], why="", who="ann@console")
    assert rack.store.demands.all() == ()


def test_a_demand_whose_accelerators_work_again_is_needless(rack):
    one_spare_is_taken(rack)
    queue(rack, *PAIR)
    for name in PAIR:
        rack.sim.clear(name)
    (entry,) = entries(rack)
    assert entry.needless == "h2-gpu0, h2-gpu1 are ok again"
    # A needless demand keeps nothing from others.
    assert plan_swap(rack.context, JOB, [LONE]).replacements


def test_what_the_pool_can_never_serve_is_refused_and_queues_nothing(rack):
    one_spare_is_taken(rack)
    with pytest.raises(RefusedError, match=r"would wait in vain: rack ring8 has 2 spares .* it needs 3"):
        queue_demands(rack.store, rack.context.observe(), RACK, [*PAIR, LONE], why="", who="ann@console")
    assert rack.store.demands.all() == ()


def require_agreement(rack):
    """The demand is served if and only if its job runs elsewhere."""
    (demand,) = rack.store.demands.all()
    placed = set(rack.context.assignment()[JOB])
    assert (demand.state == WAITING) == bool(placed & set(PAIR))


@pytest.mark.parametrize("finish", [resume, abort])
@pytest.mark.parametrize("write", [2, "last", *(pytest.param(n, marks=campaign) for n in range(3, 9))])
def test_after_kill_9_the_demand_has_ended_only_if_its_job_was_placed(rack, write, finish):
    one_spare_is_taken(rack)
    queue(rack, *PAIR)
    return_it(rack)
    plan = plan_swap(rack.context, JOB, list(PAIR))
    last = {"stands_after": str(len(plan.steps) - 1)}
    how = last if write == "last" else {"before": write, "signal": signal.SIGSTOP}
    with rack.engine(plan, **how) as engine:
        rack.await_stop(engine)
        os.kill(rack.guard, signal.SIGKILL)
        engine.kill()
    require_agreement(rack)
    run = rack.store.runs.all()[0]
    with rack.another_context(now=lambda: time.time() + 60) as context:
        finish(context, context.store(RACK).runs.get(run.id))
    (ended,) = rack.store.demands.all()
    assert (ended.state, ended.run) == ((SERVED, run.id) if finish is resume else (WAITING, ""))
    require_agreement(rack)
