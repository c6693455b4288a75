"""A simulator on which runbooks are replayed, one after the other, each from a state and with a store of its own."""

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lumctl.change.engine import apply
from lumctl.change.guard import Guard
from lumctl.change.plan import Do, Plan, Start, Step
from lumctl.context import Context
from lumctl.devices.types import Capability
from lumctl.fabric import circuit_losses
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment, own_cells
from lumctl.jobs.hooks import never_on_sim
from lumctl.runbook.settings import seed_settings
from lumctl.sim.launch import SimProcess, launch
from lumctl.store import Lease, Store, store_at


class NoGuard(Guard):
    """In place of a revert guard where nothing outlives this process: the simulator is tied to it."""

    def __init__(self) -> None:
        """Nothing is started."""

    @property
    def has_hung_up(self) -> bool:
        """No guard is possible here."""
        return False

    def allow(self, seconds: float) -> None:
        """Nobody waits."""

    def dismiss(self) -> None:
        """Nobody is there."""

    def finish(self) -> None:
        """Nobody is there."""


def no_guard(_context: Context, _lease: Lease, _silent_s: float) -> Guard:
    """What arms no guard; only for a simulator that ends with this process."""
    return NoGuard()


class Stage:
    """A simulator of an inventory, ready to play any number of runbooks."""

    def __init__(self, inventory: Inventory, sim: SimProcess, scratch: Path) -> None:
        # A private simulator needs no approval.
        self.inventory = replace(inventory, policies=())
        self.sim = sim
        self._scratch = scratch
        self._plays = 0

    @contextmanager
    def play(self) -> Iterator[Context]:
        """A context on the simulator in its state after the start, with an empty store for each rack."""
        if self._plays:
            self.sim.renew()
        self._plays += 1
        with Context(self.inventory, "sim", endpoints=self.sim.endpoints(), store=self._made) as context:
            yield context

    def context(self) -> Context:
        """One more context on the present replay, for another thread; the caller closes it."""
        return Context(self.inventory, "sim", endpoints=self.sim.endpoints(), store=self.store)

    def store(self, rack: str) -> Store:
        """One more opened store of a rack of the present replay; the caller closes it.

        Raises:
            StoreError: nothing was written there yet, or the replay is over.
        """
        return store_at(str(self._folder(rack)), rack=rack, make=False)

    def _made(self, rack: str) -> Store:
        return store_at(str(self._folder(rack)), rack=rack)

    def _folder(self, rack: str) -> Path:
        return self._scratch / f"store-{self._plays}" / rack


@contextmanager
def staged(inventory: Inventory) -> Iterator[Stage]:
    """A simulator of its own, gone when the block ends; no hook is run on it, for it must not touch a real job.

    Raises:
        UnreachableError: it does not come up.
    """
    with (
        tempfile.TemporaryDirectory(prefix="lumctl-replay-") as scratch,
        launch(inventory, folder=Path(scratch) / "sim", tied=True) as sim,
    ):
        yield Stage(never_on_sim(inventory), sim, Path(scratch))


def seed(
    context: Context, rack: str, start: Start, steps: tuple[Step, ...] = (), *, dark: Collection[str] = ()
) -> None:
    """Bring a fresh simulator to a state in which the transmitters in ``dark`` are off.

    ``steps`` have the earlier values of single settings.
    """
    plan = _seed_plan(context, rack, start, steps, dark)
    if plan.steps:
        apply(context, plan, arm=no_guard)


def cells_of(state: Start, inventory: Inventory) -> dict[str, dict[int, str]]:
    """What each device holds in a state, by the numbers of its cells."""
    devices = [inventory.devices[device] for device in (*state.crosses, *state.joins)]
    return {device.id: state.cells(device.id, own_cells(inventory, device)) or {} for device in devices}


def _seed_plan(context: Context, rack: str, start: Start, recorded: tuple[Step, ...], dark: Collection[str]) -> Plan:
    """A plan that puts a fresh simulator where something started."""
    steps: list[Step] = []
    held = {**_held_before(recorded), **cells_of(start, context.inventory)}
    for device, states in held.items():
        cells = [[cell, None, state] for cell, state in states.items()]
        steps.append(Step(f"seed-{device}", Do.PROGRAM, f"seed {device}", {"device": device, "changes": cells}))
    timed = [device for device in held if Capability.CONFIRM_TIMER in context.devices.changing(device).capabilities]
    if timed:
        steps.append(Step("seed-keep", Do.CONFIRM, "keep the start state", {"devices": timed}))
    if start.assignment:
        before = {job: list(ranks) for job, ranks in initial_assignment(context.inventory).items()}
        placed = {job: list(ranks) for job, ranks in start.assignment.items()}
        steps.append(Step("seed-jobs", Do.ASSIGN, "seed the placement", {"assignment": placed, "before": before}))
    lit = _lit(context.inventory, start.assignment, held)
    if lit:
        steps.append(Step("seed-light", Do.VERIFY, "wait for the light of the start", {"circuits": lit, "kept": []}))
    steps += seed_settings(context, recorded)
    steps += [
        Step(f"seed-dark-{number}", Do.TRANSMIT, f"darken {lane}", {"transponder": lane, "enabled": False})
        for number, lane in enumerate(dark, start=1)
    ]
    return Plan(
        kind="seed",
        title="where it starts",
        rack=rack,
        target=context.target,
        created_at=context.now(),
        inventory_digest=context.inventory.digest,
        start=Start({}),
        steps=tuple(steps),
    ).sealed()


def _held_before(recorded: Iterable[Step]) -> dict[str, dict[int, str]]:
    """What devices held that were written whole, as far as they could be read: a start does not pin them."""
    held: dict[str, dict[int, str]] = {}
    for step in recorded:
        if step.do is Do.PROGRAM and all(before is not None for _, before, _ in step.data["changes"]):
            held.setdefault(step.data["device"], {int(cell): before for cell, before, _ in step.data["changes"]})
    return held


def _lit(
    inventory: Inventory, assignment: Mapping[str, tuple[str, ...]], held: Mapping[str, dict[int, str]]
) -> list[str]:
    """The circuits that some cells really make."""
    placed = {**initial_assignment(inventory), **assignment}
    lit: list[str] = []
    for device, states in held.items():
        here = [circuit for circuit in circuits_of(inventory, placed) if circuit.device == device]
        lit += circuit_losses(inventory.devices[device], states, here)
    return lit
