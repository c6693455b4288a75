"""A simulator that replays runbooks one after the other, each from its own start state and with its own store."""

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lumctl.change.disturbance import disturbed
from lumctl.change.engine import apply
from lumctl.change.guard import Guard
from lumctl.change.plan import Do, Plan, Start, Step
from lumctl.change.settings import same, settable
from lumctl.context import Context
from lumctl.devices.types import Capability
from lumctl.fabric import circuit_losses
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment, own_cells
from lumctl.jobs.hooks import never_on_sim
from lumctl.sim.launch import SimProcess, launch
from lumctl.store import Lease, Store, store_at


class NoGuard(Guard):
    """A revert guard that does nothing: the simulator ends with this process, so there is nothing to revert."""

    def __init__(self) -> None:
        """Start nothing."""

    @property
    def has_hung_up(self) -> bool:
        """Always false: there is no guard process that could end."""
        return False

    def allow(self, seconds: float) -> None:
        """Do nothing: no guard waits."""

    def dismiss(self) -> None:
        """Do nothing: there is no guard."""

    def finish(self) -> None:
        """Do nothing: there is no guard."""


def no_guard(_context: Context, _lease: Lease, _silent_s: float) -> Guard:
    """Arm no guard; only for a simulator that ends with this process."""
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
        """Another context on the present replay, for another thread; the caller closes it."""
        return Context(self.inventory, "sim", endpoints=self.sim.endpoints(), store=self.store)

    def store(self, rack: str) -> Store:
        """Another opened store of a rack of the present replay; the caller closes it.

        Raises:
            StoreError: nothing was written there yet, or the replay has ended.
        """
        return store_at(str(self._folder(rack)), rack=rack, make=False)

    def _made(self, rack: str) -> Store:
        return store_at(str(self._folder(rack)), rack=rack)

    def _folder(self, rack: str) -> Path:
        return self._scratch / f"store-{self._plays}" / rack


@contextmanager
def staged(inventory: Inventory) -> Iterator[Stage]:
    """A private simulator that ends with the block; it runs no hooks, because a hook could touch a real job.

    Raises:
        UnreachableError: the simulator does not start.
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
    """The cells of each device in a state, by device and cell number."""
    devices = [inventory.devices[device] for device in (*state.crosses, *state.joins)]
    return {device.id: state.cells(device.id, own_cells(inventory, device)) or {} for device in devices}


def _seed_plan(context: Context, rack: str, start: Start, recorded: tuple[Step, ...], dark: Collection[str]) -> Plan:
    """A plan that brings a fresh simulator to a start state."""
    steps: list[Step] = []
    held = {**_held_before(recorded), **cells_of(start, context.inventory)}
    for device, states in held.items():
        # Without earlier states, so that every cell is written, whatever the fresh simulator holds.
        cells = [[cell, None, state] for cell, state in states.items()]
        steps.append(Step(f"seed-{device}", Do.PROGRAM, f"seed {device}", {"device": device, "changes": cells}))
    timed = [device for device in held if Capability.CONFIRM_TIMER in context.devices.changing(device).capabilities]
    if timed:
        steps.append(Step("seed-keep", Do.CONFIRM, "store the start state", {"devices": timed}))
    if start.assignment:
        before = {job: list(ranks) for job, ranks in initial_assignment(context.inventory).items()}
        placed = {job: list(ranks) for job, ranks in start.assignment.items()}
        steps.append(Step("seed-jobs", Do.ASSIGN, "seed the placement", {"assignment": placed, "before": before}))
    lit = _lit(context.inventory, start.assignment, held)
    if lit:
        steps.append(
            Step("seed-light", Do.VERIFY, "wait for the light of the start state", {"circuits": lit, "kept": []})
        )
    # Settings and dark transmitters come after the proof, which needs all light.
    steps += _settings_before(context, recorded)
    steps += [
        Step(f"seed-dark-{number}", Do.TRANSMIT, f"turn off {lane}", {"transponder": lane, "enabled": False})
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
    """The earlier cells of devices whose written cells were all known before; a start state need not contain them."""
    held: dict[str, dict[int, str]] = {}
    for step in recorded:
        if step.do is Do.PROGRAM and all(before is not None for _, before, _ in step.data["changes"]):
            held.setdefault(step.data["device"], {int(cell): before for cell, before, _ in step.data["changes"]})
    return held


def _settings_before(context: Context, recorded: Iterable[Step]) -> list[Step]:
    """Steps that set each recorded setting to its earlier value."""
    seeds: dict[tuple[str, str], Step] = {}
    for step in recorded:
        data = step.data
        key = (str(data.get("component")), str(data.get("setting")))
        if step.do is not Do.SET or key in seeds or data["before"] is None:
            continue
        setting = settable(context.inventory, context.devices, *key)
        if same(setting.read(), data["before"]):
            continue
        used = [each.name for each in disturbed(context, setting.component, key[1], data["before"])]
        seeds[key] = Step(
            f"seed-set-{len(seeds) + 1}",
            Do.SET,
            f"set {key[0]} {setting.text(data['before'])}",
            {"component": key[0], "setting": key[1], "before": None, "after": data["before"], "disturbs": used},
        )
    return list(seeds.values())


def _lit(
    inventory: Inventory, assignment: Mapping[str, tuple[str, ...]], held: Mapping[str, dict[int, str]]
) -> list[str]:
    """The circuits that the cells of the devices really form."""
    placed = {**initial_assignment(inventory), **assignment}
    return list(circuit_losses(inventory, held, circuits_of(inventory, placed)))
