"""What a run left behind, by its journal: who runs where, and what each device holds."""

from collections.abc import Iterable, Mapping
from typing import Any

from lumctl.change.plan import Do, Start
from lumctl.store import Entry, Run


def left_behind(run: Run, entries: Iterable[Entry]) -> dict[str, Any]:
    """What the run left behind; of one that was cut or left half done without the devices that nobody is sure of.

    What later runs have written over was left alone where they were to take it back: neither is that in it.
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
            stands[entry.step] = None
        elif entry.kind == "outcome" and (entry.data.get("done") or entry.data.get("nothing_sent")):
            stands[entry.step] = bool(entry.data.get("done"))
        elif entry.kind == "undo-outcome" and entry.data.get("undone"):
            stands[entry.step] = False
        elif entry.kind == "abort":
            overtaken |= set(entry.data.get("left_alone", {}).get("steps", ()))
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
    """What some steps leave behind if each does what it says."""
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
