"""Replay: the same steps through the change engine again, on a private simulator or on a rack, compared one by one."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lumctl.change.engine import Gate, Progress, RunResult, apply
from lumctl.change.plan import Do, Plan, Start, Step, programmed
from lumctl.devices import transaction
from lumctl.devices.drivers import load as load_driver
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError, RunError, UsageError
from lumctl.fabric import circuit_losses
from lumctl.inventory.model import Device, Inventory
from lumctl.inventory.switching import FREE, own_cells
from lumctl.inventory.wiring import circuits_of, initial_assignment
from lumctl.runbook.document import RecordedStep, Runbook
from lumctl.runbook.settings import require_setting, seed_settings
from lumctl.sim.launch import launch
from lumctl.site import Site
from lumctl.store import Store, store_at

VOLATILE = {"seconds", "answer", "device_revert_timer", "nothing_sent", "powers", "revert_timer", "sound", "was"}
"""Parts of an outcome that are not an effect of its step: times, a device's words, what was observed beforehand."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay first went another way. ``step`` is a step's id, or ``start`` or ``end``."""

    step: str
    what: str
    recorded: str
    replayed: str


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """A replay: identical, or where it first differed."""

    runbook: str
    on: str
    run: str
    outcome: str
    identical: bool
    first_difference: Difference | None
    seconds: float

    def to_document(self) -> dict[str, Any]:
        """As printed with ``-o json``."""
        return asdict(self)


def replay_on_simulator(
    runbook: Runbook, inventory: Inventory, *, progress: Progress, before_step: Gate
) -> ReplayResult:
    """Replay on a simulator of its own, started in the recorded start state and gone afterwards.

    Raises:
        UsageError: the runbook names something that this inventory does not have.
    """
    _require_known(runbook, inventory)
    with tempfile.TemporaryDirectory(prefix="lumctl-replay-") as scratch:
        folder = Path(scratch) / "sim"
        store = store_at(str(Path(scratch) / "store"))
        with (
            launch(inventory, folder=folder, tied=True) as sim,
            Site(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as site,
        ):
            apply(site, _seed(site, runbook))
            return _replay(site, runbook, "sim", progress, before_step, read_back=f"unix:{sim.control}")


def replay_on_rack(runbook: Runbook, site: Site, *, progress: Progress, before_step: Gate) -> ReplayResult:
    """Replay on a rack (or on the running simulator that stands for it), if it is where the recording started.

    Raises:
        UsageError: the runbook names something that this inventory does not have.
        RefusedError: the rack does not stand where the recording started; the message names the first difference.
    """
    _require_known(runbook, site.inventory)
    standing = site.assignment()
    for job, ranks in runbook.start.assignment.items():
        if standing.get(job, ()) != ranks:
            raise RefusedError(
                f"{runbook.id} does not start where the rack stands: {job} runs on "
                f"{', '.join(standing.get(job, ()))}, recorded was {', '.join(ranks)}"
            )
    return _replay(site, runbook, runbook.rack, progress, before_step, read_back=None)


def _replay(
    site: Site, runbook: Runbook, on: str, progress: Progress, before_step: Gate, *, read_back: str | None
) -> ReplayResult:
    plan = _plan(site, runbook)
    store = site.store(runbook.rack)
    result: RunResult | None = None
    failure: RunError | None = None
    try:
        result = apply(site, plan, progress=progress, before_step=before_step)
        run = result.run
    except RunError as error:
        failure, run = error, error.run
    difference = _first_difference(runbook.steps, store, run) or _end_difference(site, runbook, read_back)
    if difference is None and failure is not None and runbook.outcome == "done":
        difference = Difference("end", "outcome", runbook.outcome, failure.message)
    seconds = result.seconds if result else 0.0
    return ReplayResult(runbook.id, on, run, store.run(run).state, difference is None, difference, seconds)


def _plan(site: Site, runbook: Runbook) -> Plan:
    return Plan(
        kind="replay",
        title=f"replay of {runbook.id} ({runbook.title})",
        rack=runbook.rack,
        target=site.target,
        created_at=site.now(),
        inventory_digest=site.inventory.digest,
        start=runbook.start,
        replacements=runbook.replacements,
        add=runbook.add,
        remove=runbook.remove,
        keep=runbook.keep,
        changes=programmed(recorded.step for recorded in runbook.steps),
        steps=tuple(recorded.step for recorded in runbook.steps),
    ).sealed()


def _seed(site: Site, runbook: Runbook) -> Plan:
    """A plan that puts a fresh simulator where the recording started."""
    steps = []
    started = _cells(runbook.start, site.inventory)
    for device, held in started.items():
        cells = [[cell, None, state] for cell, state in held.items()]
        steps.append(Step(f"seed-{device}", Do.PROGRAM, f"seed {device}", {"device": device, "changes": cells}))
    before = {job: list(ranks) for job, ranks in initial_assignment(site.inventory).items()}
    placement = {"assignment": {job: list(ranks) for job, ranks in runbook.start.assignment.items()}, "before": before}
    timed = [d for d in started if Capability.CONFIRM_TIMER in site.devices.changing(d).capabilities]
    steps.append(Step("seed-keep", Do.CONFIRM, "keep the start state", {"devices": timed}))
    steps.append(Step("seed-jobs", Do.ASSIGN, "seed the placement", placement))
    lit = {"circuits": _lit_at_start(site.inventory, runbook), "kept": []}
    steps.append(Step("seed-light", Do.VERIFY, "wait for the light of the start state", lit))
    steps += seed_settings(site, [recorded.step for recorded in runbook.steps])
    return Plan(
        kind="seed",
        title=f"start state of {runbook.id}",
        rack=runbook.rack,
        target=site.target,
        created_at=site.now(),
        inventory_digest=site.inventory.digest,
        start=Start({}),
        steps=tuple(steps),
    ).sealed()


def _lit_at_start(inventory: Inventory, runbook: Runbook) -> list[str]:
    """The circuits that the recorded start state really makes."""
    assignment = {**initial_assignment(inventory), **runbook.start.assignment}
    lit: list[str] = []
    for device, states in _cells(runbook.start, inventory).items():
        here = [c for c in circuits_of(inventory, assignment) if c.device == device]
        lit += circuit_losses(inventory.devices[device], states, here)
    return lit


def _cells(state: Start, inventory: Inventory) -> dict[str, dict[int, str]]:
    """What each device holds in a recorded state, by the numbers of its cells."""
    devices = [inventory.devices[device] for device in (*state.crosses, *state.joins)]
    return {device.id: state.cells(device.id, own_cells(inventory, device)) or {} for device in devices}


def _first_difference(recorded: Sequence[RecordedStep], store: Store, run: str) -> Difference | None:
    replayed = {entry.step: entry.data for entry in store.entries(run) if entry.kind == "outcome"}
    for one in recorded:
        before, after = _steady(one.outcome), _steady(replayed.get(one.step.id))
        if before != after:
            return Difference(one.step.id, one.step.title, _short(before), _short(after))
    return None


def _end_difference(site: Site, runbook: Runbook, read_back: str | None) -> Difference | None:
    placed = site.assignment()
    for job, ranks in runbook.end.assignment.items():
        if placed.get(job, ()) != ranks:
            return Difference("end", f"where {job} runs", ", ".join(ranks), ", ".join(placed.get(job, ())))
    for device, recorded in _cells(runbook.end, site.inventory).items():
        found = _holds(site, device, read_back)
        for cell, state in recorded.items():
            if found.get(cell) != state:
                what = f"{device}/{'puc' if device in runbook.end.crosses else 'port'}/{cell}"
                return Difference("end", what, _word(state), _word(found.get(cell)))
    return None


def _word(state: str | None) -> str:
    """A cell's state as a person writes it."""
    if state is None:
        return "unknown"
    return PucState(state).word if state in set(PucState) else {FREE: "nothing"}.get(state, f"port {state}")


def _holds(site: Site, device: str, read_back: str | None) -> dict[int, str]:
    """What a device really holds, where it can be read back; else what it was last proved to hold."""
    own = own_cells(site.inventory, site.inventory.devices[device])
    if read_back is not None and site.inventory.devices[device].geometry is not None:
        geometry = site.inventory.devices[device].geometry
        context = DriverContext(
            device=device,
            address=read_back,
            puc_count=geometry.puc_count if geometry else 0,
            port_count=geometry.port_count if geometry else 0,
            now=site.now,
        )
        simulated: Any = load_driver("sim-mesh")(context)
        try:
            return transaction.read_cells(simulated, own)
        finally:
            simulated.close()
    driver = site.devices.changing(device)
    return transaction.read_cells(driver, own) if transaction.readable(driver) else site.known_cells(device)


def _steady(outcome: Any) -> Any:
    if isinstance(outcome, Mapping):
        return {key: _steady(value) for key, value in sorted(outcome.items()) if key not in VOLATILE}
    if isinstance(outcome, list | tuple):
        return sorted((_steady(item) for item in outcome), key=str)
    return outcome


def _short(outcome: Any) -> str:
    if outcome is None:
        return "not reached"
    if isinstance(outcome, Mapping) and "failed" in outcome:
        return f"failed: {outcome['failed']}"
    return "; ".join(f"{key}: {value}" for key, value in outcome.items())[:200]


def _require_known(runbook: Runbook, inventory: Inventory) -> None:
    """Every name, cell and state of a runbook, before its first step: it may have been edited."""
    circuits = {c.id for c in circuits_of(inventory, initial_assignment(inventory))}
    ranks = {job.name: len(job.ranks) for job in inventory.jobs.values()}
    for recorded in runbook.steps:
        data, step = recorded.step.data, f"runbook {runbook.id}, step {recorded.step.id}"
        for name in (n for key in ("circuits", "kept", "replaced") for n in data.get(key, ())):
            if name not in circuits:
                raise UsageError(f"{step} names circuit {name!r}, which the jobs of {inventory.path} do not need")
        for job, placed in data.get("assignment", {}).items():
            if len(placed) != ranks.get(job):
                raise UsageError(f"{step} places {len(placed)} ranks of {job}, which has {ranks.get(job, 'none')}")
        if recorded.step.do is Do.SET:
            require_setting(inventory, step, data)
        _require_cells(step, data, inventory)
    healthy = {a for recorded in runbook.steps for a in recorded.step.data.get("healthy", ())}
    placed_on = {a for r in runbook.steps for ranks_ in r.step.data.get("assignment", {}).values() for a in ranks_}
    named = {
        "rack": ({runbook.rack}, inventory.racks),
        "job": (set(runbook.start.assignment), inventory.jobs),
        "device": (
            {*runbook.start.crosses, *runbook.start.joins, *_named(runbook, "device")},
            inventory.devices,
        ),
        "accelerator": (
            {a for r in runbook.start.assignment.values() for a in r} | healthy | placed_on,
            inventory.accelerators,
        ),
        "transponder": (_named(runbook, "transponder"), inventory.transponders),
    }
    for what, (words, known) in named.items():
        for word in sorted(words):
            if word not in known:
                raise UsageError(f"runbook {runbook.id} names {what} {word!r}, which {inventory.path} does not have")


def _require_cells(step: str, data: Mapping[str, Any], inventory: Inventory) -> None:
    for change in data.get("changes", ()):
        _require_cell(step, change, inventory.devices.get(data["device"]), inventory)


def _require_cell(step: str, change: Any, device: Device | None, inventory: Inventory) -> None:
    if device is None:
        return  # said elsewhere, by name
    own = set(own_cells(inventory, device))
    if device.geometry is not None:
        allowed: set[str] = {str(state) for state in PucState}
        form = f"[0..{max(own)}, '=' or 'x', '=' or 'x']"
    else:
        allowed = {FREE, *map(str, range(device.port_count))}
        form = f"[an ingress port of ours, '{FREE}' or an egress port, '{FREE}' or an egress port]"
    match change:
        case [int(cell), (None | str()) as before, str(after)] if (
            cell in own and after in allowed and (before is None or before in allowed)
        ):
            return
        case _:
            raise UsageError(f"{step}: {change!r} is no change of a cell: {form}")


def _named(runbook: Runbook, key: str) -> set[str]:
    return {recorded.step.data[key] for recorded in runbook.steps if key in recorded.step.data}
