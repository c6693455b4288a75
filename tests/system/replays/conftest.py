"""Does seeded random things to a simulated rack, so that their recordings can be replayed: swaps, rollbacks, whole
programmings, settings, acknowledgements; and runs that are refused or fail and are rolled back.
"""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from lumctl.change import apply
from lumctl.context import Context
from lumctl.errors import RefusedError, RunError
from lumctl.inventory.model import Inventory
from lumctl.runbook import actions
from lumctl.runbook.stage import no_guard
from lumctl.sim.launch import SimProcess
from lumctl.swap import commission, plan_fabric, plan_return, plan_rollback, plan_settings, plan_swap


class Recorder:
    """One simulated rack on which things are done, each of which leaves a run in its store."""

    def __init__(self, inventory: Inventory, sim: SimProcess, context: Context, seed: int) -> None:
        self.inventory, self.sim, self.context = inventory, sim, context
        self.rack = next(iter(inventory.racks))
        self.store = context.store(self.rack)
        self.chance = Random(seed)  # noqa: S311 - the same things in every run
        self.did: Counter[str] = Counter()
        commission(context)

    def record(self, count: int) -> None:
        """Do things until so many runs are in the store."""
        ways: list[tuple[int, Callable[[], object]]] = [
            (40, self.swap),
            (40, self.take_back),
            (6, self.program),
            (6, self.set_something),
            (6, self.say_something),
            (6, self.swap_without_light),
            (3, self.swap_with_an_ill_spare),
            (4, self.swap_of_a_lost_host),
        ]
        attempts = 0
        while len(self.store.runs.all()) < count:
            attempts += 1
            assert attempts < 20 * count, f"too little came of it: {self.did}"
            way = self.chance.choices([way for _, way in ways], [weight for weight, _ in ways])[0]
            try:
                way()
            except (RefusedError, RunError) as error:
                self.did[f"{way.__name__}: {type(error).__name__}"] += 1
            else:
                self.did[way.__name__] += 1
            finally:
                if self.faulty:
                    self.sim.clear()
                    self.faulty = False

    faulty = False

    def fault(self, component: str, kind: str) -> None:
        """Make something faulty until this thing is done."""
        self.faulty = True
        self.sim.inject(component, kind)

    def swap(self, *, lost: Callable[[str], None] | None = None, spoil: Callable[[str], None] | None = None) -> None:
        """Replace a random accelerator of a random job; then a fault, if one is to come between plan and apply."""
        jobs = self.context.assignment()
        job = self.chance.choice(sorted(jobs))
        failed = self.chance.choice(jobs[job])
        if lost is not None:
            lost(failed)
        plan = plan_swap(self.context, job, [failed], even_if_healthy=lost is None)
        if spoil is not None:
            spoil(plan.replacements[0].spare)
        apply(self.context, plan, arm=no_guard)

    def swap_without_light(self) -> None:
        """The spare's transmitter is dark: no light comes, and all is rolled back."""
        lanes = self.inventory.transponders_of
        self.swap(spoil=lambda spare: self.fault(lanes(spare)[0].id, "dark"))

    def swap_with_an_ill_spare(self) -> None:
        """The spare dies after the plan was made: the first step refuses."""
        self.swap(spoil=lambda spare: self.fault(spare, "row-remap-failed"))

    def swap_of_a_lost_host(self) -> None:
        """The host of the failed accelerator answers nobody: its transmitter cannot be darkened."""
        self.swap(lost=lambda failed: self.fault(self.inventory.accelerators[failed].host, "unreachable"))

    def take_back(self) -> None:
        """Take a swap back that still stands, or its rollback; or return a job to where the inventory has it."""
        standing = [run for run in self.store.runs.all() if run.state == "done" and run.kind in {"swap", "rollback"}]
        moved = [job for job, ranks in self.context.assignment().items() if ranks != self.inventory.jobs[job].ranks]
        if moved and self.chance.random() < 0.5:
            apply(self.context, plan_return(self.context, self.chance.choice(moved)), arm=no_guard)
        elif standing:
            apply(self.context, plan_rollback(self.context, standing[0]), arm=no_guard)

    def program(self) -> None:
        """Program everything again, with the jobs where they are or where the inventory says."""
        written = {job.name: job.ranks for job in self.inventory.jobs.values()}
        placement = written if self.chance.random() < 0.5 else None
        apply(self.context, plan_fabric(self.context, self.rack, rewrite=True, placement=placement), arm=no_guard)

    def set_something(self) -> None:
        """Set something of an idle transponder: whether it sends, or, where a chassis manages it, its frequency."""
        at_work = {accelerator for ranks in self.context.assignment().values() for accelerator in ranks}
        idle = [lane for lane in self.inventory.transponders.values() if lane.accelerator not in at_work]
        lane = self.chance.choice(idle)
        if lane.module is not None and self.chance.random() < 0.5:
            words = [f"frequency_mhz={193_100_000 + 50_000 * self.chance.randrange(1, 20)}"]
        else:
            sends = self.context.devices.transponder(lane.id).transmitting()
            words = [f"transmit={'off' if sends and self.chance.random() < 0.3 else 'on'}"]
        plan = plan_settings(self.context, lane.id, words)
        if plan.steps:
            apply(self.context, plan, arm=no_guard)

    def say_something(self) -> None:
        """Acknowledge, take that back, open a maintenance window or end it: whatever comes next."""
        component, now = self.chance.choice(sorted(self.inventory.accelerators)), self.context.now()
        known = [said.component for said in self.store.health.acknowledgements(now=now)]
        open_now = [window.component for window in self.store.health.windows(now=now)]
        if known:
            self._say("ack", actions.unacknowledge(self.rack, known[0], None))
        elif open_now:
            self._say("maintain", actions.end_window(self.rack, open_now[0]))
        elif self.chance.random() < 0.5:
            self._say("ack", actions.acknowledge(self.rack, component, None, "it is known", 3600.0))
        else:
            # A host that is in maintenance lends no spare: only what is at work already is worked on here.
            at_work = self.chance.choice(sorted(next(iter(self.context.assignment().values()))))
            self._say("maintain", actions.open_window(self.rack, at_work, "a fan", starts_in_s=0.0, for_s=3600.0))

    def _say(self, kind: str, said: actions.Said) -> None:
        actions.record(self.context, kind, [said], at=self.context.now())


@pytest.fixture
def recorder_of() -> type[Recorder]:
    """What records random runs."""
    return Recorder
