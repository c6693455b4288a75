"""Check that the inventory still has everything that a runbook names; it may have been edited since."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lumctl.change.plan import Do, Step
from lumctl.change.settings import Setting, same, setting_of, shown
from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.inventory.components import find_component
from lumctl.inventory.model import Device, Inventory
from lumctl.inventory.phase_records import PHASE, is_phase
from lumctl.inventory.problems import nearest
from lumctl.inventory.slice_records import is_job, is_shape, with_slices
from lumctl.inventory.wiring import FREE, circuits_of, initial_assignment, job_circuits, own_cells, record_misfit
from lumctl.runbook.document import Runbook
from lumctl.store import actions

Path = tuple[Any, ...]
"""The keys and indices that lead to a value within a step's data."""


class Odd(NamedTuple):
    """Something in a step that this inventory does not have or cannot hold."""

    path: Path
    message: str
    hint: str | None = None


def require_known(runbook: Runbook, inventory: Inventory) -> None:
    """Require that every name, cell and state of a runbook is known, before its first step.

    Raises:
        UsageError: a name, cell or state is unknown; the error names it and its step.
    """
    document = runbook.document
    inventory = with_slices_of(document, inventory)
    for what, odd in (*odd_in_states(document, inventory), *odd_in_circuits(document, inventory)):
        raise UsageError(f"runbook {runbook.id}, {what}: {odd.message}", hint=odd.hint)
    if runbook.rack not in inventory.racks:
        raise UsageError(f"runbook {runbook.id} names rack {runbook.rack!r}, which is not in {inventory.path}")
    circuits = circuit_names(inventory)
    for recorded in runbook.steps:
        for odd in odd_in_step(recorded.step, inventory, circuits):
            raise UsageError(f"runbook {runbook.id}, step {recorded.step.id} {odd.message}", hint=odd.hint)


def with_slices_of(document: Mapping[str, Any], inventory: Inventory) -> Inventory:
    """The inventory with the slices that a runbook places or finds placed among its jobs."""
    states = [document.get(section) for section in ("start", "end")]
    states += [step.get("data") for step in _listed(document.get("steps")) if isinstance(step, Mapping)]
    records: dict[str, tuple[str, ...]] = {}
    for state in states:
        for key in ("assignment", "before"):
            placed = state.get(key) if isinstance(state, Mapping) else None
            for name, record in placed.items() if isinstance(placed, Mapping) else ():
                if record and isinstance(record, list | tuple):
                    records[str(name)] = tuple(map(str, record))
    return with_slices(inventory, records)


def odd_in_states(document: Mapping[str, Any], inventory: Inventory) -> Iterator[tuple[str, Odd]]:
    """Names in ``start`` and ``end`` that the inventory does not have."""
    for section in ("start", "end"):
        state = document.get(section) or {}
        for job, ranks in (state.get("assignment") or {}).items():
            if not is_job(str(job)):
                yield from ((section, odd) for odd in _odd_record("assignment", str(job), ranks, inventory))
                continue
            if job not in inventory.jobs:
                yield section, _unknown(("assignment", job), "job", job, inventory.jobs, inventory)
            for rank, accelerator in enumerate(ranks):
                if accelerator not in inventory.accelerators:
                    path = ("assignment", job, rank)
                    yield section, _unknown(path, "accelerator", accelerator, inventory.accelerators, inventory)
        for key in ("crosses", "joins"):
            for device in state.get(key) or {}:
                if device not in inventory.devices:
                    yield section, _unknown((key, device), "device", device, inventory.devices, inventory)


def odd_in_circuits(document: Mapping[str, Any], inventory: Inventory) -> Iterator[tuple[str, Odd]]:
    """Devices and transponders of the planned circuits that the inventory does not have."""
    for kind, circuits in (document.get("circuits") or {}).items():
        for at, circuit in enumerate(_listed(circuits)):
            for key in ("ends", "segments"):
                for part, said in enumerate(_listed(circuit.get(key))):
                    if said.get("device") not in inventory.devices:
                        path, devices = (kind, at, key, part, "device"), inventory.devices
                        yield "circuits", _unknown(path, "device", str(said.get("device")), devices, inventory)
            for part, fibre in enumerate(circuit.get("fibres") or ()):
                if fibre not in inventory.fibres:
                    yield (
                        "circuits",
                        _unknown((kind, at, "fibres", part), "fibre", str(fibre), inventory.fibres, inventory),
                    )
            for end, said in enumerate(_listed(circuit.get("ends"))):
                if said.get("lane") not in inventory.transponders:
                    path, lanes = (kind, at, "ends", end, "lane"), inventory.transponders
                    yield "circuits", _unknown(path, "transponder", str(said.get("lane")), lanes, inventory)


def circuit_names(inventory: Inventory) -> frozenset[str]:
    """The circuits that the jobs need, wherever they run."""
    lit = circuits_of(inventory, initial_assignment(inventory))
    phased = (each for job in inventory.jobs.values() if job.phases for each in job.in_phases())
    others = (circuit for job in phased for circuit in job_circuits(inventory, job, job.ranks))
    return frozenset(circuit.id for circuit in (*lit, *others))


def odd_in_step(step: Step, inventory: Inventory, circuits: frozenset[str]) -> Iterator[Odd]:
    """Names in one step that the inventory does not have; ``circuits`` are the circuits that it has."""
    data = step.data
    for key in ("circuits", "kept", "replaced"):
        for at, name in enumerate(_listed(data.get(key))):
            if name not in circuits:
                why = f"names circuit {name!r}, which the jobs of {inventory.path} do not need"
                yield Odd((key, at), why, _near(name, circuits))
    yield from _odd_names(data, inventory)
    yield from _odd_cells(data, inventory)
    if step.do is Do.ASSIGN:
        for key in ("assignment", "before"):
            yield from _odd_placement(key, data.get(key), inventory)
    if step.do is Do.JOB and data.get("job") not in inventory.controlled:
        yield _unknown(("job",), "job", str(data.get("job")), inventory.controlled, inventory)
    if step.do is Do.RECORD:
        yield from _odd_act(data, inventory)
    if step.do is Do.SET:
        yield from _odd_setting(data, inventory)


def _odd_names(data: Mapping[str, Any], inventory: Inventory) -> Iterator[Odd]:
    """Unknown names of components in a step's data, in single values and in lists."""
    devices, lanes = inventory.devices, inventory.transponders
    for at, name in enumerate(_listed(data.get("healthy"))):
        if name not in inventory.accelerators:
            yield _unknown(("healthy", at), "accelerator", name, inventory.accelerators, inventory)
    for at, name in enumerate(_listed(data.get("devices"))):
        if name not in devices:
            yield _unknown(("devices", at), "device", name, devices, inventory)
    if "device" in data and data["device"] not in devices:
        yield _unknown(("device",), "device", data["device"], devices, inventory)
    if "transponder" in data and data["transponder"] not in lanes:
        yield _unknown(("transponder",), "transponder", data["transponder"], lanes, inventory)


def _odd_cells(data: Mapping[str, Any], inventory: Inventory) -> Iterator[Odd]:
    for at, change in enumerate(_listed(data.get("changes"))):
        device = inventory.devices.get(str(data.get("device")))
        form = None if device is None else _form_unless_cell(change, device, inventory)
        if form is not None:
            yield Odd(("changes", at), f"has {change!r}, which is not a change of a cell: {form}")


def _odd_placement(key: str, placed: Any, inventory: Inventory) -> Iterator[Odd]:
    for job, ranks in (placed or {}).items():
        if not is_job(str(job)):
            yield from _odd_record(key, str(job), ranks, inventory)
            continue
        if job not in inventory.jobs:
            yield _unknown((key, job), "job", job, inventory.jobs, inventory)
            continue
        wanted = len(inventory.jobs[job].ranks)
        is_none = inventory.jobs[job].is_slice and not ranks  # before it is placed, and after its release
        if len(ranks) != wanted and not is_none:
            yield Odd((key, job), f"places {len(ranks)} ranks of {job}, which has {wanted}")
        for rank, accelerator in enumerate(ranks):
            if accelerator not in inventory.accelerators:
                yield _unknown((key, job, rank), "accelerator", accelerator, inventory.accelerators, inventory)


def _odd_record(key: str, name: str, record: Any, inventory: Inventory) -> Iterator[Odd]:
    """What is wrong with the order of an accelerator's lanes, the shape of a slice, or the phase of a job."""
    why = record_misfit(inventory, name, tuple(map(str, record)))
    if why is not None and is_phase(name):
        yield Odd(
            (key, name), f"lights a phase of {name.removeprefix(PHASE)} that {inventory.path} does not have: {why}"
        )
    elif why is not None:
        does = "places a slice that does not fit" if is_shape(name) else "orders lanes as"
        rest = "" if is_shape(name) else " does not have them"
        yield Odd((key, name), f"{does} {inventory.path}{rest}: {why}")


def _odd_setting(data: Mapping[str, Any], inventory: Inventory) -> Iterator[Odd]:
    """An unknown component or setting, or a value that the setting cannot have."""
    try:
        setting = setting_of(inventory, find_component(inventory, str(data["component"])), str(data["setting"]))
        given = [data[key] for key in ("after", "before") if key == "after" or data[key] is not None]
        odd = [value for value in given if not _has_kind(setting, value)]
    except UsageError as error:
        yield Odd(("component",), error.message, error.hint)
        return
    if odd:
        yield Odd(("component",), f"{odd[0]!r} is not a value of {setting.name}", f"such as {setting.form}")


def _has_kind(setting: Setting, value: Any) -> bool:
    """Whether a value has the type of its setting: a number, or true or false for a switch."""
    meant = setting.parse(shown(value))
    return same(meant, value) and isinstance(meant, bool) is isinstance(value, bool)


def _odd_act(data: Mapping[str, Any], inventory: Inventory) -> Iterator[Odd]:
    try:
        actions.understood(data)
    except UsageError as error:
        yield Odd(("act",), error.message, error.hint)
    if data.get("rack") not in inventory.racks:
        yield _unknown(("rack",), "rack", str(data.get("rack")), inventory.racks, inventory)


def _form_unless_cell(change: Any, device: Device, inventory: Inventory) -> str | None:
    """``None`` for a change of a cell that the device has; otherwise the expected form."""
    own = set(own_cells(inventory, device))
    if device.geometry is not None:
        allowed: set[str] = {str(state) for state in PucState}
        form = f"[0..{max(own)}, '=' or 'x', '=' or 'x']"
    else:
        allowed = {FREE, *map(str, range(device.port_count))}
        form = f"[one of our ingress ports, '{FREE}' or an egress port, '{FREE}' or an egress port]"
    match change:
        case [int(cell), (None | str()) as before, str(after)] if (
            (cell in own or (device.input_count > cell >= 0 and FREE in {before, after}))  # cut join of another user
            and after in allowed
            and (before is None or before in allowed)
        ):
            return None
    return form


def _unknown(path: Path, what: str, word: str, known: Mapping[str, Any], inventory: Inventory) -> Odd:
    return Odd(path, f"names {what} {word!r}, which is not in {inventory.path}", _near(word, known))


def _listed(value: Any) -> Any:
    """A list; empty if the value is not a list, which another check reports."""
    return value if isinstance(value, list | tuple) else ()


def _near(word: Any, known: Any) -> str | None:
    near = nearest(str(word), known)
    return f"did you mean {near!r}?" if near else None
