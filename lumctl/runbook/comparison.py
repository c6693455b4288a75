"""Comparison of a replay with its run: step outcomes, run state, placement, PUC states and settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lumctl.change.plan import Do
from lumctl.change.settings import same, settable
from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.devices.drivers import load as load_driver
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucState
from lumctl.inventory.wiring import FREE, own_cells, placed_words
from lumctl.runbook.difference_text import outcomes_apart, placed_apart, some
from lumctl.runbook.document import RecordedStep, Runbook
from lumctl.runbook.stage import cells_of
from lumctl.store import Store

VOLATILE = frozenset(
    {
        "seconds",
        "answer",
        "by",
        "device_revert_timer",
        "hook",
        "nothing_sent",
        "powers",
        "revert_timer",
        "sound",
        "transmitting",
        "was",
        "window",
    }
)
"""Parts of an outcome that are not effects of the step: times, a device's words, earlier observations."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between a replay and its run. ``step`` is a step's id, or ``start`` or ``end``."""

    step: str
    what: str
    recorded: str
    replayed: str


def first_difference(recorded: Sequence[RecordedStep], store: Store, run: str) -> Difference | None:
    """The first step whose outcome differs from the recorded one."""
    replayed = {entry.step: entry.data for entry in store.journal.of_run(run) if entry.kind == "outcome"}
    for one in recorded:
        before = steady(one.outcome)
        after = _as_told_then(before, steady(replayed.get(one.step.id)))
        if _failed(before) and _failed(after) and not one.step.required:
            continue  # Both runs continued without this step's success, so the errors may differ.
        if before != after:
            return Difference(one.step.id, one.step.title, *outcomes_apart(before, after))
    return None


def end_difference(context: Context, runbook: Runbook, read_back: str | None) -> Difference | None:
    """The first job, cell or setting that differs from the recorded end, read from the devices if they can be read."""
    placed = context.assignment()
    for job, ranks in runbook.end.assignment.items():
        if placed.get(job, ()) != ranks:
            return Difference("end", f"where {placed_words(job)}", *placed_apart(job, ranks, placed.get(job, ())))
    for device, recorded in cells_of(runbook.end, context.inventory).items():
        found = _holds(context, device, recorded, read_back)
        for cell, state in recorded.items():
            if found.get(cell) != state:
                what = f"{device}/{'puc' if device in runbook.end.crosses else 'port'}/{cell}"
                return Difference("end", what, _word(state), _word(found.get(cell)))
    # Otherwise the last value that a step set may have been undone.
    return _setting_difference(context, runbook) if runbook.outcome in {"done", "undone"} else None


def cells_difference(section: str, device: str, recorded: Mapping[int, str], found: Mapping[int, str]) -> Difference:
    """The difference between the recorded and the found cells of a device: a few cells, and the number of all."""
    apart = [cell for cell, state in recorded.items() if found.get(cell) != state]

    def told(held: Mapping[int, str]) -> str:
        return some([f"cell {cell} {_word(held.get(cell))}" for cell in apart]) + f" (of {len(recorded)} cells)"

    return Difference(section, f"the state of {device}", told(recorded), told(found))


def steady(outcome: Any) -> Any:
    """An outcome without the parts that differ from run to run."""
    if isinstance(outcome, Mapping):
        return {key: steady(value) for key, value in sorted(outcome.items()) if key not in VOLATILE}
    if isinstance(outcome, list | tuple):
        return sorted((steady(item) for item in outcome), key=str)
    return outcome


def _as_told_then(before: Any, after: Any) -> Any:
    """A replayed outcome without the fields that the recording program did not have yet."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return {key: value for key, value in after.items() if key in before or key in {"done", "failed"}}
    return after


def _setting_difference(context: Context, runbook: Runbook) -> Difference | None:
    """The first setting that does not show the last value that the run set."""
    last = {
        (str(r.step.data["component"]), str(r.step.data["setting"])): r.step.data["after"]
        for r in runbook.steps
        if r.step.do is Do.SET
    }
    for (component, name), after in last.items():
        meant = settable(context.inventory, context.devices, component, name)
        wanted, shows = meant.setting.shows(after), meant.read()
        if shows is not None and not same(shows, wanted):
            return Difference("end", f"{name} of {component}", meant.setting.shown(wanted), meant.setting.shown(shows))
    return None


def _holds(context: Context, device: str, cells: Iterable[int], read_back: str | None) -> dict[int, str]:
    """The states of a device from its read-back; if it cannot be read, its last proved states.

    ``cells`` may include foreign ones: joins of other users that a run has cut.
    """
    own = {*own_cells(context.inventory, context.inventory.devices[device]), *cells}
    geometry = context.inventory.devices[device].geometry
    if read_back is not None and geometry is not None:
        driver_context = DriverContext(
            device=device,
            address=read_back,
            puc_count=geometry.puc_count,
            port_count=geometry.port_count,
            now=context.now,
        )
        simulated: Any = load_driver("sim-mesh")(driver_context)
        try:
            return transaction.read_cells(simulated, own)
        finally:
            simulated.close()
    driver = context.devices.changing(device)
    return transaction.read_cells(driver, own) if transaction.readable(driver) else context.known_cells(device)


def _failed(outcome: Any) -> bool:
    return isinstance(outcome, Mapping) and "failed" in outcome


def _word(state: str | None) -> str:
    """A cell's state in words."""
    if state is None:
        return "unknown"
    return PucState(state).word if state in set(PucState) else {FREE: "nothing"}.get(state, f"port {state}")
