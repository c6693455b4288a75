"""The log of the dashboard: what the journal of a rack and the history of its health tell, a line for each."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lumctl.counts import counted

if TYPE_CHECKING:
    from lumctl.health.transitions import Transition
    from lumctl.store import Entry, Run
    from lumctl.tui.views.records import Line

HEALTH = "health"
"""Who tells of a change of state."""


def log_of(
    rack: str, entries: "Iterable[Entry]", runs: "Iterable[Run]", changes: "Iterable[Transition]" = ()
) -> "list[Line]":
    """Journal and changes of state of a rack as lines for a person, the newest first."""
    from lumctl.health.states import is_fault
    from lumctl.tui.views.records import Line

    by_id = {run.id: run for run in runs}
    lines, entries = [], tuple(entries)
    # That a step was about to act is worth a line only where nobody knows what came of it.
    known = {(entry.run, entry.step) for entry in entries if entry.kind in {"outcome", "undo-outcome"}}
    for entry in entries:
        if entry.kind in {"intent", "undo-intent"} and (entry.run, entry.step) in known:
            continue
        run = by_id.get(entry.run)
        who = str(entry.data.get("who") or entry.data.get("by") or (run.who if run else ""))
        lines.append(Line(entry.at, rack, who, _told(entry, run), grave=_is_grave(entry), run=run.id if run else None))
    lines += (
        Line(change.at, rack, HEALTH, _changed(change), grave=is_fault(change.after), component=change.component)
        for change in changes
    )
    return sorted(lines, key=lambda line: line.at)[::-1]


def _changed(change: "Transition") -> str:
    was = f", was {change.before}" if change.before else ""
    rules = f" ({', '.join(change.rules)})" if change.rules else ""
    seen = f": {change.evidence}" if change.evidence else ""
    return f"{change.component} is {change.after}{was}{rules}{seen}"


def _is_grave(entry: "Entry") -> bool:
    data = entry.data
    return "failed" in data or data.get("state") == "half-done" or data.get("event") in {"halt", "breaker-opened"}


def _told(entry: "Entry", run: "Run | None") -> str:
    data = entry.data
    match entry.kind:
        case "begin":
            told = f"{entry.run} begins: {data.get('title') or (run.title if run else '')}"
        case "end":
            took = f" in {data['seconds']:.2f} s" if "seconds" in data else ""
            failed = f": {data['failed']}" if "failed" in data else ""
            told = f"{entry.run} ends: {data.get('state', '')}{took}{failed}"
        case "intent" | "outcome" | "undo-intent" | "undo-outcome":
            told = f"{entry.run} {_step(entry, run)}"
        case "resume" | "abort":
            told = f"{entry.run} is taken over by hand: swap {entry.kind}"
        case "vouched":
            told = f"{entry.run} {data.get('stopped', 'the job')} is said to be stopped"
        case "decision":
            told = "; ".join(map(_decided, data.get("decisions", ()))) or "nothing is to be decided any more"
        case "autopilot":
            told = f"autopilot: {_plain(data, first='event')}"
        case "approval":
            told = f"approval of {data.get('id') or data.get('plan', 'a plan')}: {_plain(data, first='state')}"
        case _:
            told = f"{entry.kind}: {_plain(data)}"
    return told


def _step(entry: "Entry", run: "Run | None") -> str:
    """Which step, and what came of it."""
    titles = {str(step["id"]): str(step["title"]) for step in run.plan.get("steps", ())} if run else {}
    title, data = titles.get(entry.step, f"step {entry.step}"), entry.data
    match entry.kind:
        case "intent":
            return f"begins to {title}"
        case "undo-intent":
            return f"begins to undo: {title}"
        case "undo-outcome":
            return f"undone: {title}" if data.get("undone") else f"not undone: {title}: {data.get('failed', '')}"
        case _ if "failed" in data:
            return f"failed: {title}: {data['failed']}"
        case _:
            proved = f", {counted(len(data['proofs']), 'receivers')} proved" if data.get("proofs") else ""
            return f"done: {title}{proved}"


def _decided(decision: Mapping[str, Any]) -> str:
    policy = f" by {decision['policy']}" if decision.get("policy") else ""
    return f"{decision.get('key')}: {decision.get('act')}{policy}, {decision.get('because')}"


def _plain(data: Mapping[str, Any], first: str = "") -> str:
    """What an entry says in plain values, that of ``first`` before the others; digests are left out."""
    shown = {
        key: value for key, value in data.items() if isinstance(value, str | int | float) and value not in {"", None}
    }
    rest = [f"{key} {value}" for key, value in shown.items() if key not in {first, "who", "digest", "id"}]
    return ", ".join([str(shown[first]), *rest] if first in shown else rest)
