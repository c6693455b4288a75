"""Random sequences of what happens to slices: no circuit of another slice changes, and every fibre is counted."""

import os
from collections import Counter
from random import Random

import pytest
from tenants import paths, planned
from waiting import until

from lumctl.change import apply
from lumctl.change.resumption import abort, resume
from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates
from lumctl.health.states import State
from lumctl.inventory.slice_records import shape_of
from lumctl.inventory.wiring import circuits_of
from lumctl.slices.moves import plan_moves
from lumctl.slices.release import plan_release
from lumctl.swap import plan_swap

SEQUENCES, EVENTS = 500, 6
SAMPLE = (3, 8)
SHAPES = ("2x1x1", "2x2x1", "2x2x2", "4x2x1", "4x2x2", "3x2x1", "4x4x1", "6", "1")


class Story:
    """One sequence of events on a rack."""

    def __init__(self, rack, seed):
        self.rack, self.rng, self.made = rack, Random(seed), 0  # noqa: S311 - a seed repeats a story
        self.warned = set[str]()
        """The circuits of which a plan has warned that their light arrives with little margin."""

    @property
    def slices(self):
        return [name for name in self.rack.context.assignment() if shape_of(name) in self.rack.context.assignment()]

    def event(self):
        """Something happens to one slice; its name, or none if nothing could be done."""
        kinds = ["place", "place", *(["release", "lose", "move"] if self.slices else [])]
        return getattr(self, self.rng.choice(kinds))()

    def place(self):
        self.made += 1
        job = f"t{self.made}"
        try:
            plan = planned(self.rack, self.rng.choice(SHAPES), job, redirect=self.rng.random() < 0.3)
        except RefusedError:
            return None
        return self.done(plan, job)

    def release(self):
        job = self.rng.choice(self.slices)
        return self.done(plan_release(self.rack.context, job), job)

    def lose(self):
        job = self.rng.choice(self.slices)
        lost = self.rng.choice(self.rack.context.assignment()[job])
        self.rack.sim.inject(lost, "gpu-lost")
        try:
            plan = plan_swap(self.rack.context, job, [lost])
        except RefusedError:  # no spare is left
            return None
        finally:
            self.rack.sim.clear(lost)
        return self.done(plan, job)

    def move(self):
        found = plan_moves(self.rack.context, "torus64", most=1)
        return self.done(found.plans[0], found.plans[0].slices.slices[0]["job"]) if found.plans else None

    def done(self, plan, job):
        """Apply a plan; in every third case its engine is killed on the way, and the run is finished or undone."""
        self.warned |= {circuit.id for circuit in plan.add if any(circuit.id in words for words in plan.warnings)}
        if self.rng.random() > 1 / 3 or not plan.changes:  # without a write there is no guard to kill
            assert apply(self.rack.context, plan, stopped_by="tests").outcome == "done"
            return job
        last = self.rng.choice(plan.steps[:-1]).id
        # A short lease, and a wait for its end: with a clock that jumps, marks of later proofs would look older.
        run = self.rack.kill_engine(plan, self.rack.await_stop, stands_after=last, term_s=2.0)
        finish = self.rng.choice([resume, abort])
        until(lambda: self.finished(finish, run))
        return job

    def finished(self, finish, run):
        """Whether a run could be finished or undone; not before the lease of its engine has ended."""
        try:
            finish(self.rack.context, self.rack.store.runs.get(run.id))
        except RefusedError as error:
            if "its lease ends in" not in error.message:
                raise
            return False
        return True


def fibres(rack, cells):
    """How many circuits each fibre carries, by what the meshes hold."""
    states, inventory = FabricStates(rack.inventory, cells), rack.context.inventory
    found = [states.path_of(circuit) for circuit in circuits_of(inventory, rack.context.assignment())]
    assert None not in found
    return Counter(fibre for path in found for fibre in path.fibres)


def ill(story):
    """The circuits that are not ok, with the reason; degraded ones of which a plan has warned do not count."""
    found = story.rack.context.observe().report.circuits.values()
    fine = {c.id for c in found if c.state is State.OK or (c.state is State.DEGRADED and c.id in story.warned)}
    return {c.id: (c.state, [f.evidence for f in c.findings]) for c in found if c.id not in fine}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(SEQUENCES) if "LUMCTL_CAMPAIGN" in os.environ else SAMPLE)
def test_whatever_happens_to_a_slice_the_others_keep_their_light(rack, seed):
    story = Story(rack, seed)
    for _ in range(EVENTS):
        before = paths(rack)
        touched = story.event()
        after = paths(rack)
        stay = {name: path for name, path in before.items() if name.partition("/")[0] != touched}
        assert {name: after[name] for name in stay} == stay
        recorded = fibres(rack, rack.context.known_fabric("torus64"))
        assert recorded == fibres(rack, rack.cells())
        assert all(count <= rack.inventory.fibres[fibre].capacity for fibre, count in recorded.items())
        until(lambda: not ill(story), says=lambda: ill(story))
