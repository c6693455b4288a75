"""A runbook: a run as a file to read, comment, edit and replay. It is made from the journal.

``start`` and ``end`` have the placement and the cells in state cross (the others are bar); ``steps`` are the plan's,
each with the outcome that the journal recorded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lumctl.change.plan import Do, PlannedCircuit, Replacement, Start, Step, from_document, read_circuits
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.runbook.run_states import left_behind
from lumctl.store import JournalEntry, Store, StoredRun

SCHEMA = "lumctl/runbook/v1"
NEEDS: Mapping[Do, frozenset[str]] = {
    Do.CHECK: frozenset({"healthy", "kept", "replaced"}),
    Do.TRANSMIT: frozenset({"transponder", "enabled"}),
    Do.PROGRAM: frozenset({"device", "changes"}),
    Do.VERIFY: frozenset({"circuits", "kept"}),
    Do.CONFIRM: frozenset({"devices"}),
    Do.ASSIGN: frozenset({"assignment", "before"}),
    Do.SET: frozenset({"component", "setting", "before", "after"}),
    Do.JOB: frozenset({"job", "act"}),
    Do.RECORD: frozenset({"act", "rack"}),
}
"""The required keys in the data of each kind of step."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step with its recorded outcome; ``outcome`` is ``None`` if the run ended before the step."""

    step: Step
    outcome: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Runbook:
    """A runbook as read: its origin, the states of the rack before and after, and its steps."""

    id: str
    title: str
    rack: str
    target: str
    outcome: str
    inventory_digest: str
    start: Start
    end: Start
    steps: tuple[RecordedStep, ...]
    replacements: tuple[Replacement, ...]
    add: tuple[PlannedCircuit, ...]
    remove: tuple[PlannedCircuit, ...]
    keep: tuple[PlannedCircuit, ...]
    undoes: str | None
    document: Mapping[str, Any]


def make(run: StoredRun, store: Store, inventory: Inventory) -> dict[str, Any]:
    """The runbook of a run as a plain document."""
    plan = from_document(run.plan)
    entries = store.journal.of_run(run.id)
    # A resumed run may have several intents and outcomes of a step: the last ones count.
    outcomes = {e.step: dict(e.data) for e in entries if e.kind == "outcome"}
    begun = {e.step: e.at for e in entries if e.kind == "intent"}
    took = {e.step: _seconds(e, begun.get(e.step)) for e in entries if e.kind == "outcome"}
    start = run.plan["start"]
    considered = run.plan.get("candidates") or []
    return {
        "schema": SCHEMA,
        "id": run.id,
        "title": run.title,
        "recorded": {
            "at": _moment(run.started_at),
            "by": run.who,
            "rack": run.rack,
            "target": run.target,
            "outcome": run.state,
            "kind": run.kind,
            "ended": None if run.ended_at is None else _moment(run.ended_at),
            "seconds": run.seconds,
            "undoes": plan.undoes,
            "undone_by": run.undone_by,
            "lumctl": run.version,
            "inventory": {"path": str(inventory.path), "digest": run.inventory_digest},
            "plan": run.plan_digest,
        },
        "start": start,
        "replacements": run.plan["replacements"],
        **({"candidates": considered} if considered else {}),
        **({"why": list(run.plan["why"])} if run.plan.get("why") else {}),
        "circuits": run.plan["circuits"],
        "steps": [
            {
                "id": step["id"],
                "do": step["do"],
                "title": step["title"],
                "data": step["data"],
                "required": step["required"],
                **({"stage": step["stage"]} if step.get("stage") else {}),
                **_when(begun.get(step["id"]), took.get(step["id"])),
                "outcome": outcomes.get(step["id"]),
            }
            for step in run.plan["steps"]
        ],
        **_taken_back(entries),
        "end": left_behind(run, entries),
    }


def parse(document: Mapping[str, Any], name: str) -> Runbook:
    """A runbook document as values.

    Raises:
        UsageError: a part is missing or has the wrong form; the error names the part.
    """
    try:
        recorded = document["recorded"]
        return Runbook(
            id=str(document["id"]),
            title=str(document["title"]),
            rack=str(recorded["rack"]),
            target=str(recorded["target"]),
            outcome=str(recorded["outcome"]),
            inventory_digest=str(recorded["inventory"]["digest"]),
            start=Start.from_document(document["start"]),
            end=Start.from_document(document["end"]),
            steps=_recorded_steps(document["steps"]),
            replacements=tuple(Replacement(**replacement) for replacement in document["replacements"]),
            add=read_circuits(document["circuits"]["add"]),
            remove=read_circuits(document["circuits"]["remove"]),
            keep=read_circuits(document["circuits"]["keep"]),
            undoes=recorded.get("undoes"),
            document=document,
        )
    except KeyError as error:
        raise UsageError(f"{name}: a runbook needs {error}, but this one has none") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{name}: this runbook cannot be read: {error}",
            hint="to list each problem with its line: lumctl runbook lint FILE",
        ) from error


def _recorded_steps(raw: Iterable[Mapping[str, Any]]) -> tuple[RecordedStep, ...]:
    steps = tuple(_recorded_step(step) for step in raw)
    seen: set[str] = set()
    for step in (each.step for each in steps):
        if step.id in seen:
            raise ValueError(f"two of its steps have the same id {step.id!r}")
        seen.add(step.id)
    return steps


def _recorded_step(raw: Mapping[str, Any]) -> RecordedStep:
    if raw["do"] not in set(Do):
        raise ValueError(f"step {raw['id']} has `do: {raw['do']!r}`, which is not a known step")
    do, data = Do(raw["do"]), dict(raw["data"])
    missing = sorted(NEEDS[do] - set(data))
    if missing:
        raise ValueError(f"step {raw['id']} ({do}) needs {', '.join(missing)} in its data")
    step = Step(
        id=str(raw["id"]),
        do=do,
        title=str(raw["title"]),
        data=data,
        required=bool(raw.get("required", True)),
        stage=int(raw.get("stage", 0)),
    )
    outcome = raw.get("outcome")
    return RecordedStep(step, None if outcome is None else dict(outcome))


def _when(began: float | None, seconds: float | None) -> dict[str, Any]:
    """When a step began, and how long it took (seconds)."""
    told: dict[str, Any] = {} if began is None else {"at": _moment(began)}
    if began is not None and seconds is not None:
        told["seconds"] = seconds
    return told


def _seconds(outcome: JournalEntry, began: float | None) -> float | None:
    """How long a step took, as its outcome records it; for older journals, the time until the outcome was on disk."""
    return outcome.seconds if outcome.seconds is not None or began is None else round(max(0.0, outcome.at - began), 4)


def _taken_back(entries: Iterable[JournalEntry]) -> dict[str, Any]:
    """The undos within the run itself, in order, with their outcomes."""
    undone = [
        {"step": entry.step, "at": _moment(entry.at), "outcome": dict(entry.data)}
        for entry in entries
        if entry.kind == "undo-outcome"
    ]
    return {"taken_back": undone} if undone else {}


def _moment(at: float) -> str:
    """A moment as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
