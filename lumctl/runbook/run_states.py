"""The state of a rack before and after a run: where each job runs, and the state of each device."""

from collections.abc import Iterable, Mapping
from typing import Any

from lumctl.change.plan import Do
from lumctl.change.plan_parts import Start
from lumctl.context import Context
from lumctl.inventory.model import Inventory
from lumctl.inventory.slice_records import is_job
from lumctl.inventory.wiring import record_misfit
from lumctl.store import JournalEntry, StoredRun


def stood(context: Context, run: StoredRun) -> dict[str, Start]:
    """The state of each rack when a run began, as far as the stores have it and the inventory still fits.

    A run records the earlier states of everything that it will change. Everything else is unchanged since, unless a
    later run changed it. States that were unknown before the run wrote them are omitted.
    """
    placed = context.assignment(sound=False)
    return {rack: _stood(context, rack, run, placed) for rack in context.inventory.racks}


def _stood(context: Context, rack: str, run: StoredRun, placed: Mapping[str, tuple[str, ...]]) -> Start:
    inventory, store = context.inventory, context.store(rack)
    jobs = {job.name for job in inventory.jobs.values() if job.rack == rack}
    here = [device.id for device in inventory.devices.values() if device.rack == rack and device.kind.carries_light]
    found = Start.of(
        {name: ranks for name, ranks in placed.items() if name in jobs or name in store.fabric.assignment()},
        {device: held for device in here if (held := context.known_cells(device))},
    )
    # Apply later runs newest first, so that the earliest one overrides the others: it began nearest to this run.
    for later in sorted(store.runs.all(), key=lambda each: -each.started_at):
        if later.started_at >= run.started_at and (later.rack, later.id) != (run.rack, run.id):
            found = _over(found, _known(Start.from_document(later.plan["start"]), inventory))
    if rack != run.rack:
        return found
    start = Start.from_document(run.plan["start"])
    written = {str(step["data"]["device"]) for step in run.plan["steps"] if "changes" in step["data"]}
    return _over(_without(found, written), start)


def _over(below: Start, above: Start) -> Start:
    return Start(
        {**below.assignment, **above.assignment}, {**below.crosses, **above.crosses}, {**below.joins, **above.joins}
    )


def _without(start: Start, devices: Iterable[str]) -> Start:
    out = set(devices)
    return Start(
        start.assignment,
        {device: held for device, held in start.crosses.items() if device not in out},
        {device: held for device, held in start.joins.items() if device not in out},
    )


def _known(start: Start, inventory: Inventory) -> Start:
    """The part of a start state that the inventory still has; the inventory may have been changed since."""
    return Start(
        {name: ranks for name, ranks in start.assignment.items() if _fits(name, ranks, inventory)},
        {device: held for device, held in start.crosses.items() if device in inventory.devices},
        {device: held for device, held in start.joins.items() if device in inventory.devices},
    )


def _fits(name: str, ranks: tuple[str, ...], inventory: Inventory) -> bool:
    if not is_job(name):
        return record_misfit(inventory, name, ranks) is None
    job = inventory.jobs.get(name)
    return job is not None and len(job.ranks) == len(ranks) and all(rank in inventory.accelerators for rank in ranks)


def left_behind(run: StoredRun, entries: Iterable[JournalEntry]) -> dict[str, Any]:
    """The states after the run; for an interrupted or half-done run, without the uncertain devices.

    States that later runs have written are also omitted.
    """
    start, steps = run.plan["start"], run.plan["steps"]
    if run.state in {"rolled-back", "refused"}:
        return dict(start)
    if run.state in {"done", "undone"}:
        return after(start, steps)
    stands: dict[str, bool | None] = {}
    overtaken: set[str] = set()
    for entry in entries:
        if entry.kind in {"intent", "undo-intent"}:
            # Unknown until an outcome says otherwise; a failed step may have acted in part, so it stays unknown.
            stands[entry.step] = None
        elif entry.kind == "outcome" and (entry.data.get("done") or entry.data.get("nothing_sent")):
            stands[entry.step] = bool(entry.data.get("done"))
        elif entry.kind == "undo-outcome" and entry.data.get("undone"):
            stands[entry.step] = False
        elif entry.kind == "abort":
            overtaken |= set(entry.data.get("left_alone", {}).get("steps", ()))
    # A step that never began is certain: it did nothing.
    unsure = {step["id"] for step in steps if step["id"] in overtaken or stands.get(step["id"], False) is None}
    placings = [step["data"]["assignment"] for step in steps if step["do"] == Do.ASSIGN and step["id"] in overtaken]
    jobs = {job for placed in placings for job in placed}
    devices = {str(step["data"]["device"]) for step in steps if step["do"] == Do.PROGRAM and step["id"] in unsure}
    left = after(start, [step for step in steps if stands.get(step["id"])])
    return {
        key: {name: held for name, held in value.items() if name not in (jobs if key == "assignment" else devices)}
        for key, value in left.items()
    }


def after(start: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The states after some steps, if each succeeds."""
    assignment = dict(start["assignment"])
    crosses = {device: set(pucs) for device, pucs in start["crosses"].items()}
    joins = {device: {int(port): str(to) for port, to in pairs} for device, pairs in start.get("joins", {}).items()}
    for step in steps:
        if step["do"] == Do.ASSIGN:
            assignment |= step["data"]["assignment"]
        if step["do"] == Do.PROGRAM:
            device = step["data"]["device"]
            for cell, _, after in step["data"]["changes"]:
                if after in {"=", "x"}:
                    cells = crosses.setdefault(device, set())
                    (cells.add if after == "x" else cells.discard)(cell)
                else:
                    joins.setdefault(device, {})[cell] = after
    return Start(
        {job: tuple(ranks) for job, ranks in assignment.items()},
        {device: tuple(sorted(pucs)) for device, pucs in crosses.items()},
        joins,
    ).to_document()
