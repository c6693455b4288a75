"""Lint of recorded steps: form, names, whether the engine accepts the steps, and the resulting states."""

from collections.abc import Iterator, Mapping
from typing import Any

from lumctl.change.plan import Do, Step
from lumctl.devices.drivers import load
from lumctl.devices.types import Capability
from lumctl.errors import LumctlError
from lumctl.inventory.model import Inventory
from lumctl.inventory.positions import MarkedDict, MarkedList, found
from lumctl.inventory.problems import Mark, Problems
from lumctl.inventory.wiring import FREE, own_cells, placed_words
from lumctl.runbook.difference_text import placed_apart, some
from lumctl.runbook.document import NEEDS
from lumctl.runbook.inventory_check import (
    Path,
    circuit_names,
    odd_in_circuits,
    odd_in_states,
    odd_in_step,
    with_slices_of,
)
from lumctl.runbook.playback import TO_THE_END
from lumctl.runbook.run_states import after

STEP_KEYS = ("id", "do", "title", "data", "required", "stage", "at", "seconds", "outcome")
_KINDS = {"required": (bool, "true or false"), "stage": (int, "a whole number")}
_TOP = ("id", "title", "recorded", "start", "replacements", "circuits", "steps", "end")
_RECORDED = ("rack", "target", "outcome", "inventory")
FORMS: Mapping[Do, Mapping[str, str]] = {
    Do.CHECK: {"healthy": "names", "kept": "names", "replaced": "names"},
    Do.TRANSMIT: {"transponder": "name", "enabled": "flag"},
    Do.PROGRAM: {"device": "name", "changes": "list"},
    Do.VERIFY: {"circuits": "names", "kept": "names"},
    Do.CONFIRM: {"devices": "names"},
    Do.ASSIGN: {"assignment": "placement", "before": "placement"},
    Do.SET: {"component": "name", "setting": "name", "before": "any", "after": "any", "disturbs": "names"},
}
"""The keys of each step's data with the form of their values; kinds of steps not listed here may have any keys."""
_EXPECTED = {
    "name": "a name",
    "names": "a list of names",
    "flag": "true or false",
    "list": "a list",
    "placement": "a mapping from jobs to lists of accelerators",
}


def check(document: MarkedDict, inventory: Inventory, problems: Problems) -> None:
    """Note everything that is wrong with a runbook of recorded steps."""
    inventory = with_slices_of(document, inventory)
    _head(document, inventory, problems)
    _states(document, inventory, problems)
    steps = document.get("steps")
    if not isinstance(steps, MarkedList):
        if "steps" in document:
            problems.add(document.value_marks["steps"], f"found {found(steps)}, expected a list of steps")
        return
    read = ((raw, _step(raw, mark, problems)) for raw, mark in zip(steps, steps.item_marks, strict=True))
    sound = [(raw, step) for raw, step in read if step is not None]
    _unique(sound, problems)
    circuits = circuit_names(inventory)
    for raw, step in sound:
        for odd in odd_in_step(step, inventory, circuits):
            problems.add(mark_in(raw["data"], odd.path), f"step {step.id} {odd.message}", odd.hint)
    _safe(sound, document, inventory, problems)
    # Without a malformed step the others lead to another end, which would be reported as a second problem.
    if len(sound) == len(steps):
        check_end(document, [step for _, step in sound], problems)


def _head(document: MarkedDict, inventory: Inventory, problems: Problems) -> None:
    for key in _TOP:
        if key not in document:
            problems.add(document.at, f"key {key!r} is missing")
    recorded = document.get("recorded")
    if isinstance(recorded, MarkedDict):
        for key in _RECORDED:
            if key not in recorded:
                problems.add(recorded.at, f"key {key!r} is missing here")
        rack = recorded.get("rack")
        if rack is not None and rack not in inventory.racks:
            problems.unknown(recorded.value_marks["rack"], "rack", str(rack), inventory.racks)


def mark_in(data: Any, path: Path) -> Mark:
    """The line and column of a value within a step's data, or of the innermost existing part of the path to it."""
    mark: Mark = data.at
    for key in path:
        if isinstance(data, MarkedDict) and key in data:
            mark = data.value_marks[key]
        elif isinstance(data, MarkedList) and isinstance(key, int) and key < len(data):
            mark = data.item_marks[key]
        else:
            return mark
        data = data[key]
    return mark


def _states(document: MarkedDict, inventory: Inventory, problems: Problems) -> None:
    for section in ("start", "end"):
        state = document.get(section)
        if section not in document:
            continue
        if not isinstance(state, MarkedDict):
            problems.add(document.value_marks[section], f"found {found(state)}, expected a mapping")
            return
        for key in ("assignment", "crosses"):
            if not isinstance(state.get(key), MarkedDict):
                problems.add(state.value_marks.get(key, state.at), f"`{section}:` needs a mapping {key!r}")
                return
    for section, odd in (*odd_in_states(document, inventory), *odd_in_circuits(document, inventory)):
        problems.add(mark_in(document[section], odd.path), f"{section} {odd.message}", odd.hint)


def _step(raw: Any, mark: Mark, problems: Problems) -> Step | None:
    """A well-formed step; problems of another step are noted."""
    if not isinstance(raw, MarkedDict):
        problems.add(mark, f"found {found(raw)}, expected a step: {', '.join(STEP_KEYS)}")
        return None
    for key in raw:
        if key not in STEP_KEYS:
            problems.unknown(raw.key_marks[key], "key", str(key), STEP_KEYS, listed=True)
    missing = [key for key in ("id", "do", "title", "data") if key not in raw]
    for key in missing:
        problems.add(raw.at, f"key {key!r} is missing here")
    if missing:
        return None
    if raw["do"] not in set(Do):
        problems.unknown(raw.value_marks["do"], "step", str(raw["do"]), [each.value for each in Do], listed=True)
        return None
    odd = [(key, said) for key, (kind, said) in _KINDS.items() if key in raw and not isinstance(raw[key], kind)]
    for key, expected in odd:
        problems.add(raw.value_marks[key], f"found {found(raw[key])}, expected {expected}")
    data, do = raw["data"], Do(raw["do"])
    if not isinstance(data, MarkedDict):
        problems.add(raw.value_marks["data"], f"found {found(data)}, expected a mapping")
        return None
    if not _data(do, data, problems) or odd:
        return None
    return Step(str(raw["id"]), do, str(raw["title"]), data, required=bool(raw.get("required", True)))


def _data(do: Do, data: MarkedDict, problems: Problems) -> bool:
    sound = True
    for key in sorted(NEEDS.get(do, frozenset()) - set(data)):
        problems.add(data.at, f"a {do} step needs {key!r} in its data")
        sound = False
    forms = FORMS.get(do)
    for key, value in data.items():
        if forms is not None and key not in forms:
            problems.unknown(data.key_marks[key], "key", str(key), list(forms), listed=True)
        elif forms is not None and (expected := form_of(forms[key], value)) is not None:
            problems.add(data.value_marks[key], f"found {found(value)}, expected {expected}")
            sound = False
    return sound


def _unique(steps: list[tuple[Any, Step]], problems: Problems) -> None:
    seen: dict[str, Mark] = {}
    for raw, step in steps:
        mark = raw.value_marks["id"]
        if step.id in seen:
            problems.add(mark, f"id {step.id!r} occurs twice, first in line {seen[step.id].line}")
        seen.setdefault(step.id, mark)


def _safe(steps: list[tuple[Any, Step]], document: MarkedDict, inventory: Inventory, problems: Problems) -> None:
    """Note writes that no later step verifies or confirms, and steps whose preconditions cannot hold."""
    held = _at_start(document)
    for at, (raw, step) in enumerate(steps):
        if step.do is not Do.PROGRAM or step.data["device"] not in inventory.devices:
            continue
        device, later = step.data["device"], [each for _, each in steps[at + 1 :]]
        mark = raw.value_marks["do"]
        if not any(each.do is Do.VERIFY for each in later):
            what = f"step {step.id} writes {device}, but no later step verifies the light"
            problems.add(mark, what, "add a verify step")
        confirmed = any(each.do is Do.CONFIRM and device in each.data["devices"] for each in later)
        if not confirmed and _goes_back(inventory.devices[device].driver):
            what = f"step {step.id} writes {device}, which reverts by itself, but no later step confirms it"
            problems.add(mark, what, "add a confirm step that lists it, after the last verify step")
        for path, message in _cannot_hold(step, held, inventory) if held is not None else ():
            problems.add(mark_in(raw["data"], path), f"step {step.id} {message}")


def _goes_back(driver: str) -> bool:
    """Whether a device reverts a change that is not confirmed."""
    try:
        return Capability.CONFIRM_TIMER in load(driver).capabilities
    except LumctlError:
        return False  # The driver is not installed here: a replay reports that.


def _at_start(document: MarkedDict) -> dict[str, dict[int, str] | set[int]] | None:
    """The states of each device in ``start``: the joins of a switch, the PUCs in cross of a mesh."""
    start = document.get("start")
    if not isinstance(start, MarkedDict) or not isinstance(start.get("crosses"), dict):
        return None
    try:
        meshes: dict[str, dict[int, str] | set[int]] = {d: set(cells) for d, cells in start["crosses"].items()}
        return meshes | {d: {int(p): str(to) for p, to in j} for d, j in (start.get("joins") or {}).items()}
    except (TypeError, ValueError):
        return None


def _cannot_hold(step: Step, held: dict[str, Any], inventory: Inventory) -> Iterator[tuple[Path, str]]:
    """Cells that have another state than the step expects; the step's changes are then applied to ``held``."""
    device = inventory.devices[step.data["device"]]
    own = set(own_cells(inventory, device))
    cells = [(at, *change) for at, change in enumerate(step.data["changes"]) if _is_cell(change)]
    if device.id not in held:
        if {cell for _, cell, _, _ in cells} != own:
            yield ("changes",), f"writes some cells of {device.id}, but `start` lacks the states of the others"
        held[device.id] = set() if device.geometry else {}
    else:
        for at, cell, before, _ in cells:
            is_now = _state(held[device.id], cell)
            if cell in own and before is not None and is_now is not None and before != is_now:
                what = f"expects cell {cell} of {device.id} to be {before!r}, but at that step it is {is_now!r}"
                yield ("changes", at), what
    for _, cell, _, state in cells:
        _move(held[device.id], cell, state)


def _is_cell(change: Any) -> bool:
    return isinstance(change, list) and len(change) == 3 and isinstance(change[0], int)  # noqa: PLR2004


def _state(held: dict[int, str] | set[int], cell: int) -> str | None:
    if isinstance(held, set):
        return "x" if cell in held else "="
    return held.get(cell)


def _move(held: dict[int, str] | set[int], cell: int, after: Any) -> None:
    if isinstance(held, dict):
        held[cell] = str(after)
    elif after == "x":
        held.add(cell)
    else:
        held.discard(cell)


def form_of(form: str, value: Any) -> str | None:
    """The expected form if a value does not have it; ``None`` if it does."""
    return None if _has(form, value) else _EXPECTED[form]


def _has(form: str, value: Any) -> bool:
    match form:
        case "name":
            return isinstance(value, str)
        case "names":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "flag":
            return isinstance(value, bool)
        case "list":
            return isinstance(value, list)
        case "placement":
            return isinstance(value, dict) and all(_has("names", ranks) for ranks in value.values())
    return True


def check_end(document: MarkedDict, steps: list[Step], problems: Problems) -> None:
    """Note where a replay would differ from ``end``; the end of a run that did not finish is unknown."""
    recorded, start, end = (document.get(key) for key in ("recorded", "start", "end"))
    if not (isinstance(recorded, MarkedDict) and isinstance(start, MarkedDict) and isinstance(end, MarkedDict)):
        return
    if recorded.get("outcome") not in TO_THE_END:
        return
    try:
        left = after(start, [{"do": step.do, "data": step.data} for step in steps])
    except (LumctlError, TypeError, ValueError, KeyError, AttributeError):
        return  # Another check reports that its form is wrong.
    for mark, message in (*_placements(end, left), *_cells(end, left), *_joins(end, left)):
        problems.add(mark, message, "a replay is compared with `end`: change it together with the steps")


def _placements(end: MarkedDict, left: dict[str, Any]) -> Iterator[tuple[Mark, str]]:
    placed = end.get("assignment")
    if not isinstance(placed, MarkedDict):
        return
    for job, ranks in placed.items():
        leads = left["assignment"].get(job, ())
        if isinstance(ranks, list) and list(ranks) != list(leads):
            said, found = placed_apart(str(job), [str(rank) for rank in ranks], leads)
            what = f"`end` states that {placed_words(str(job))} {said}; the steps lead to {found}"
            yield placed.value_marks[job], what


def _cells(end: MarkedDict, left: dict[str, Any]) -> Iterator[tuple[Mark, str]]:
    crosses = end.get("crosses")
    if not isinstance(crosses, MarkedDict):
        return
    for device, cells in crosses.items():
        leads = set(left["crosses"].get(device, ()))
        if not isinstance(cells, list) or {*cells} == leads:
            continue
        apart = [str(cell) for cell in sorted({*cells} ^ leads)]
        of = f"PUC{'' if len(apart) == 1 else 's'} {some(apart)} of {device}"
        yield crosses.value_marks[device], f"the steps do not leave {of} as `end` states"


def _joins(end: MarkedDict, left: dict[str, Any]) -> Iterator[tuple[Mark, str]]:
    joins = end.get("joins")
    if not isinstance(joins, MarkedDict):
        return
    for device, pairs in joins.items():
        leads = dict(left.get("joins", {}).get(device, ()))
        try:
            says = {int(port): str(to) for port, to in pairs}
        except (TypeError, ValueError):
            continue
        # An omitted port is not connected.
        ports = [port for port in sorted({*says, *leads}) if says.get(port, FREE) != leads.get(port, FREE)]
        if ports:
            of = f"port{'' if len(ports) == 1 else 's'} {some([str(port) for port in ports])} of {device}"
            yield joins.value_marks[device], f"the steps do not leave {of} as `end` states"
