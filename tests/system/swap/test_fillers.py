"""Filler jobs run on spares, give them up to a job that needs one, and run again when their spares are free."""

import json
import os
import signal
import time

import pytest
from waiting import until

from lumctl.change import apply
from lumctl.change.plan import Do
from lumctl.change.resumption import abort
from lumctl.errors import RefusedError, RolledBackError
from lumctl.runbook import document, yaml_text
from lumctl.runbook.replay import replay_on_simulator
from lumctl.spares.fitness import spares_by_pool
from lumctl.spares.ledger import SpareState
from lumctl.swap import plan_return, plan_rollback, plan_swap
from lumctl.swap.explanations import NoSpareError
from lumctl.swap.fillers import filler_documents
from lumctl.swap.spare_pool import pool_ledgers

FILLER, JOB = "batch", "train"
LOST, IDLE, FILLED = "h1-gpu0", "h5-gpu0", "h5-gpu1"
STOPPED = {f"stopped filler {FILLER}": (FILLED,)}


class Hook:
    """The hook of a filler job: it keeps the job's state and everything that it was asked in files."""

    def __init__(self, folder):
        self.state, self.asked, self.broken = folder / "state", folder / "asked", folder / "broken"
        self.state.write_text("running\n")
        self.asked.touch()

    def entry(self) -> str:
        command = {
            act: f"echo {act} $LUMCTL_RANKS failed=$LUMCTL_FAILED >> {self.asked}; test ! -e {self.broken} && "
            f"echo {state} > {self.state}"
            for act, state in (("pause", "paused"), ("resume", "running"))
        }
        acts = {act: ["sh", "-c", text] for act, text in command.items()} | {"status": ["cat", str(self.state)]}
        return json.dumps({**acts, "on_sim": True})

    @property
    def runs(self) -> bool:
        return self.state.read_text().strip() == "running"

    def acts(self) -> list[str]:
        return [line.split()[0] for line in self.asked.read_text().splitlines()]


@pytest.fixture
def hook(tmp_path):
    return Hook(tmp_path)


@pytest.fixture
def rack_with(rack_of, tmp_path, hook):
    made = []

    def make(sharing: str = "{}", ranks: str = FILLED):
        more = f"fillers:\n  - {{name: {FILLER}, ranks: '{ranks}', hook: {hook.entry()}}}\nsharing: {sharing}\n"
        made.append(rack_of("ring8", tmp_path, edited=lambda text: text + more))
        rack = next(made[-1])
        (name,) = rack.inventory.jobs
        assert rack.context.assignment() == {name: rack.inventory.jobs[name].ranks}
        return rack

    yield make
    for each in made:
        next(each, None)


def lost(rack, accelerator=LOST):
    rack.sim.inject(accelerator, "gpu-lost")
    return accelerator


def records(rack):
    """What the assignment says of filler jobs."""
    return {name: ranks for name, ranks in rack.context.assignment().items() if name.startswith("stopped") and ranks}


def entry(rack, accelerator):
    (pool,) = pool_ledgers(rack.context, rack.context.observe(), racks=["ring8"])
    return next(each for each in pool.entries if each.accelerator.id == accelerator)


def test_an_idle_spare_is_taken_before_one_with_a_filler_job_which_then_gives_its_own_up(rack_with, hook):
    rack = rack_with()
    found = entry(rack, FILLED)
    assert (found.state, found.filler, found.place) == (SpareState.FREE, FILLER, None)
    (pool,) = spares_by_pool(rack.context.observe()).values()
    assert pool.free == (IDLE, FILLED)  # a swap can take both

    first = plan_swap(rack.context, None, [lost(rack)])
    assert [each.spare for each in first.replacements] == [IDLE]
    behind = next(each for each in first.candidates if each.spare == FILLED)
    assert any("a filler job runs on it" in reason for reason in behind.reasons)
    apply(rack.context, first)
    assert (hook.acts(), records(rack)) == ([], {})

    second = plan_swap(rack.context, None, [lost(rack, "h2-gpu0")])
    assert any(f"filler job {FILLER} gives up {FILLED}" in line for line in second.why)
    swap = apply(rack.context, second).run
    assert (hook.acts(), hook.runs, records(rack)) == (["pause"], False, STOPPED)
    assert "failed=\n" in hook.asked.read_text()  # none of its own ranks failed
    assert entry(rack, FILLED).state is SpareState.TAKEN

    rack.sim.clear("h2-gpu0")
    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(swap)))
    assert (hook.acts(), hook.runs, records(rack)) == (["pause", "resume"], True, {})
    assert entry(rack, FILLED).filler == FILLER


def test_it_runs_again_by_the_plan_that_frees_its_spare_and_a_rollback_of_that_takes_it_again(rack_with, hook):
    rack = rack_with()
    (job,) = rack.inventory.jobs
    apply(rack.context, plan_swap(rack.context, None, [lost(rack)], [FILLED]))
    assert (hook.runs, records(rack)) == (False, STOPPED)
    rack.sim.clear(LOST)

    back = plan_return(rack.context, job)
    assert any(f"filler job {FILLER} runs again on {FILLED}" in line for line in back.why)
    run = apply(rack.context, back).run
    assert (hook.acts(), hook.runs, records(rack)) == (["pause", "resume"], True, {})
    assert rack.context.assignment()[job] == rack.inventory.jobs[job].ranks
    recorded = document.make(rack.store.runs.get(run), rack.store, rack.inventory)
    book = yaml_text.load(yaml_text.dump(recorded), "it")
    replayed = replay_on_simulator(book, rack.inventory, progress=print, before_step=lambda _step: None)
    assert replayed.identical, replayed.first_difference
    assert hook.acts() == ["pause", "resume"]  # a rehearsal leaves the real job alone

    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(run)))
    assert (hook.acts(), hook.runs, records(rack)) == (["pause", "resume", "pause"], False, STOPPED)
    assert FILLED in rack.context.assignment()[job]


def test_it_is_started_again_by_its_own_name_only_if_its_spares_are_free(rack_with, hook):
    rack = rack_with()
    (job,) = rack.inventory.jobs
    with pytest.raises(RefusedError, match="has not given up its spares"):
        plan_return(rack.context, FILLER)
    apply(rack.context, plan_swap(rack.context, None, [lost(rack)], [FILLED]))
    with pytest.raises(RefusedError, match=rf"{FILLED} runs rank 0 of {job}") as refused:
        plan_return(rack.context, FILLER)
    assert refused.value.hint.endswith(f"lumctl swap plan {job} --back")
    rack.sim.clear(LOST)
    rack.sim.inject(FILLED, "row-remap-failed")  # its spare is free after the return, but is not fit for it yet
    apply(rack.context, plan_return(rack.context, job))
    assert (hook.acts(), records(rack)) == (["pause"], STOPPED)
    with pytest.raises(RefusedError, match=f"{FILLED} is failed") as refused:
        plan_return(rack.context, FILLER)
    assert refused.value.hint == "see: lumctl spare list"
    rack.sim.clear(FILLED)

    def command():
        (listed,) = filler_documents(rack.context.observe(), ["ring8"])
        return listed["command"]

    until(lambda: command() == f"lumctl swap plan {FILLER} --back", says=command)
    apply(rack.context, plan_return(rack.context, FILLER))
    assert (hook.acts(), hook.runs, records(rack)) == (["pause", "resume"], True, {})


def test_if_it_cannot_be_paused_nothing_is_changed(rack_with, hook):
    rack = rack_with()
    before = rack.cells(), rack.context.assignment()
    plan = plan_swap(rack.context, None, [lost(rack)], [FILLED])
    hook.broken.touch()
    with pytest.raises((RefusedError, RolledBackError), match=FILLER):
        apply(rack.context, plan)
    assert (rack.cells(), rack.context.assignment(), hook.runs) == (*before, True)


def test_a_filler_job_keeps_its_spare_if_the_inventory_says_never(rack_with, hook):
    rack = rack_with("{preemption: never}")
    assert entry(rack, FILLED).state is SpareState.TAKEN
    (pool,) = spares_by_pool(rack.context.observe()).values()
    assert pool.free == (IDLE,)
    apply(rack.context, plan_swap(rack.context, None, [lost(rack)]))
    with pytest.raises(NoSpareError, match=f"{FILLED}: runs filler job {FILLER}, which keeps it"):
        plan_swap(rack.context, None, [lost(rack, "h2-gpu0")])
    apply(rack.context, plan_swap(rack.context, None, ["h2-gpu0"], [FILLED]))  # an operator may insist
    assert (hook.runs, records(rack)) == (False, STOPPED)


def test_a_plan_is_stale_once_the_filler_job_has_given_its_spares_up_to_another(rack_with, hook):
    rack = rack_with(ranks="h5-gpu[0-1]")
    plans = [plan_swap(rack.context, None, [lost(rack, name)], [spare]) for name, spare in ((LOST, IDLE),)]
    plans.append(plan_swap(rack.context, None, [lost(rack, "h2-gpu0")], [FILLED]))
    apply(rack.context, plans[0])
    assert (hook.acts(), records(rack)) == (["pause"], {f"stopped filler {FILLER}": (IDLE, FILLED)})
    with pytest.raises(RefusedError, match="stale"):
        apply(rack.context, plans[1])
    apply(rack.context, plan_swap(rack.context, None, ["h2-gpu0"]))  # the other spare is idle by now
    assert hook.acts() == ["pause"]


def test_after_kill_9_an_abort_lets_it_go_on(rack_with, hook):
    rack = rack_with()
    plan = plan_swap(rack.context, None, [lost(rack)], [FILLED])
    pause = next(step.id for step in plan.steps if step.do is Do.JOB)
    with rack.engine(plan, stands_after=pause) as engine:
        rack.await_stop(engine)
        os.kill(rack.guard, signal.SIGKILL)
        engine.kill()
    assert (hook.acts(), hook.runs) == (["pause"], False)
    run = next(each for each in rack.store.runs.all() if each.state == "running")
    with rack.another_context(now=lambda: time.time() + 60) as later:
        abort(later, run)
    assert (hook.acts(), hook.runs, records(rack)) == (["pause", "resume"], True, {})


def test_a_return_that_costs_more_than_the_inventory_allows_is_refused_unless_an_operator_insists(rack_with):
    rack = rack_with("{return_cost_s: 0.01}")
    (job,) = rack.inventory.jobs
    apply(rack.context, plan_swap(rack.context, None, [lost(rack)], [IDLE]))
    rack.sim.clear(LOST)
    with pytest.raises(RefusedError, match=r"8 accelerators to move back: .* more than the 0.01") as refused:
        plan_return(rack.context, job)
    assert refused.value.hint.endswith(f"lumctl swap plan {job} --back --even-if-costly")
    apply(rack.context, plan_return(rack.context, job, even_if_costly=True))
    assert rack.context.assignment()[job] == rack.inventory.jobs[job].ranks
