"""Check that the inventory still has everything that a runbook names; it may have been edited since."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lumctl.change.plan import Do, Step
from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.inventory.model import Device, Inventory
from lumctl.inventory.problems import nearest
from lumctl.inventory.wiring import FREE, PREFIX, circuits_of, initial_assignment, is_order, misfit, own_cells
from lumctl.runbook.document import Runbook
from lumctl.runbook.settings import require_setting
from lumctl.store import actions

Path = tuple[Any, ...]
"""The keys and indices that lead to a value within a step's data."""


class Odd(NamedTuple):
    """Something in a step that this inventory does not have or cannot hold."""

    path: Path
    message: str
    hint: str | None = None


def require_known(runbook: Runbook, inventory: Inventory) -> None:
    """Require every name, cell and state of a runbook, before its first step.

    Raises:
        UsageError: one is not known; it and its step are named.
    """
    document = runbook.document
    for what, odd in (*odd_in_states(document, inventory), *odd_in_circuits(document, inventory)):
        raise UsageError(f"runbook {runbook.id}, {what}: {odd.message}", hint=odd.hint)
    if runbook.rack not in inventory.racks:
        raise UsageError(f"runbook {runbook.id} names rack {runbook.rack!r}, which {inventory.path} does not have")
    circuits = circuit_names(inventory)
    for recorded in runbook.steps:
        for odd in odd_in_step(recorded.step, inventory, circuits):
            raise UsageError(f"runbook {runbook.id}, step {recorded.step.id} {odd.message}", hint=odd.hint)


def odd_in_states(document: Mapping[str, Any], inventory: Inventory) -> Iterator[tuple[str, Odd]]:
    """What ``start`` and ``end`` name and the inventory does not have."""
    for section in ("start", "end"):
        state = document.get(section) or {}
        for job, ranks in (state.get("assignment") or {}).items():
            if is_order(str(job)):
                yield from ((section, odd) for odd in _odd_order("assignment", str(job), ranks, inventory))
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
            if circuit.get("device") not in inventory.devices:
                yield (
                    "circuits",
                    _unknown((kind, at, "device"), "device", str(circuit.get("device")), inventory.devices, inventory),
                )
            for end, said in enumerate(_listed(circuit.get("ends"))):
                if said.get("lane") not in inventory.transponders:
                    path, lanes = (kind, at, "ends", end, "lane"), inventory.transponders
                    yield "circuits", _unknown(path, "transponder", str(said.get("lane")), lanes, inventory)


def circuit_names(inventory: Inventory) -> frozenset[str]:
    """The circuits that the jobs need, wherever they run."""
    return frozenset(circuit.id for circuit in circuits_of(inventory, initial_assignment(inventory)))


def odd_in_step(step: Step, inventory: Inventory, circuits: frozenset[str]) -> Iterator[Odd]:
    """What one step names and the inventory does not have; ``circuits`` are those that it has."""
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
    if step.do is Do.JOB and data.get("job") not in inventory.jobs:
        yield _unknown(("job",), "job", str(data.get("job")), inventory.jobs, inventory)
    if step.do is Do.RECORD:
        yield from _odd_act(data, inventory)
    if step.do is Do.SET:
        try:
            require_setting(inventory, "it", data)
        except UsageError as error:
            yield Odd(("component",), error.message.removeprefix("it: "), error.hint)


def _odd_names(data: Mapping[str, Any], inventory: Inventory) -> Iterator[Odd]:
    """Names of single components and lists of them, wherever a step has them."""
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
            yield Odd(("changes", at), f"has {change!r}, which is no change of a cell: {form}")


def _odd_placement(key: str, placed: Any, inventory: Inventory) -> Iterator[Odd]:
    for job, ranks in (placed or {}).items():
        if is_order(str(job)):
            yield from _odd_order(key, str(job), ranks, inventory)
            continue
        if job not in inventory.jobs:
            yield _unknown((key, job), "job", job, inventory.jobs, inventory)
            continue
        wanted = len(inventory.jobs[job].ranks)
        if len(ranks) != wanted:
            yield Odd((key, job), f"places {len(ranks)} ranks of {job}, which has {wanted}")
        for rank, accelerator in enumerate(ranks):
            if accelerator not in inventory.accelerators:
                yield _unknown((key, job, rank), "accelerator", accelerator, inventory.accelerators, inventory)


def _odd_order(key: str, name: str, lanes: Any, inventory: Inventory) -> Iterator[Odd]:
    """What is wrong with an order of an accelerator's lanes; without lanes it is as the inventory writes them."""
    why = misfit(inventory, name.removeprefix(PREFIX), tuple(lanes)) if lanes else None
    if why is not None:
        yield Odd((key, name), f"orders lanes as {inventory.path} does not have them: {why}")


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
        form = f"[an ingress port of ours, '{FREE}' or an egress port, '{FREE}' or an egress port]"
    match change:
        case [int(cell), (None | str()) as before, str(after)] if (
            (cell in own or (device.input_count > cell >= 0 and FREE in {before, after}))  # of others, and cut
            and after in allowed
            and (before is None or before in allowed)
        ):
            return None
    return form


def _unknown(path: Path, what: str, word: str, known: Mapping[str, Any], inventory: Inventory) -> Odd:
    return Odd(path, f"names {what} {word!r}, which {inventory.path} does not have", _near(word, known))


def _listed(value: Any) -> Any:
    """A list; empty if the value is not a list, which another check reports."""
    return value if isinstance(value, list | tuple) else ()


def _near(word: Any, known: Any) -> str | None:
    near = nearest(str(word), known)
    return f"did you mean {near!r}?" if near else None
