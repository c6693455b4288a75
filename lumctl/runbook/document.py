"""A runbook: a run as YAML that a person can read, comment, edit and replay. Made from the journal, never by hand.

``start`` and ``end`` say who ran where and which cells were in cross (the others are bar); ``steps`` are the plan's,
each with the outcome that the journal recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from lumctl.change.plan import Do, PlannedCircuit, Replacement, Start, Step, from_document, read_circuits
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.store import Run, Store

SCHEMA = "lumctl/runbook/v1"
NEEDS: Mapping[Do, frozenset[str]] = {
    Do.CHECK: frozenset({"healthy", "kept", "replaced"}),
    Do.TRANSMIT: frozenset({"transponder", "enabled"}),
    Do.PROGRAM: frozenset({"device", "changes"}),
    Do.VERIFY: frozenset({"circuits", "kept"}),
    Do.CONFIRM: frozenset({"devices"}),
    Do.ASSIGN: frozenset({"assignment", "before"}),
    Do.SET: frozenset({"component", "setting", "before", "after"}),
}
"""What the data of each kind of step must hold."""

_HEADER = """\
# What was done, step by step, as the journal recorded it.
# Replay it on a simulator:  lumctl runbook replay {id} --on sim
# Replay it on the rack:     lumctl runbook replay {id} --on {rack}
# It may be edited and commented; give the file's path in place of the id.
"""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step with what came of it; ``outcome`` is ``None`` where the run ended before it."""

    step: Step
    outcome: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Runbook:
    """A runbook as read: where it is from, what the rack was before and after, and its steps."""

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


def make(run: Run, store: Store, inventory: Inventory) -> dict[str, Any]:
    """The runbook of a run as a plain document."""
    plan = from_document(run.plan)
    outcomes = {e.step: dict(e.data) for e in store.entries(run.id) if e.kind == "outcome"}
    start = run.plan["start"]
    return {
        "schema": SCHEMA,
        "id": run.id,
        "title": run.title,
        "recorded": {
            "at": datetime.fromtimestamp(run.started_at, UTC).isoformat(timespec="seconds"),
            "by": run.who,
            "rack": run.rack,
            "target": run.target,
            "outcome": run.state,
            "undoes": plan.undoes,
            "lumctl": run.version,
            "inventory": {"path": str(inventory.path), "digest": run.inventory_digest},
            "plan": run.plan_digest,
        },
        "start": start,
        "replacements": run.plan["replacements"],
        "circuits": run.plan["circuits"],
        "steps": [
            {
                "id": step["id"],
                "do": step["do"],
                "title": step["title"],
                "data": step["data"],
                "required": step["required"],
                "outcome": outcomes.get(step["id"]),
            }
            for step in run.plan["steps"]
        ],
        "end": _end(start, run.plan["steps"]) if run.state in {"done", "undone"} else start,
    }


def dump(document: Mapping[str, Any]) -> str:
    """A runbook as YAML text."""
    header = _HEADER.format(id=document["id"], rack=document["recorded"]["rack"])
    return header + yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Safe YAML with lists of plain values on one line: cells and ranks are read across, not down."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - two equal lists are written out twice
        return True


def _represent_list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    plain = not any(isinstance(item, dict) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=plain)


_Dumper.add_representer(list, _represent_list)


def load(text: str, name: str) -> Runbook:
    """Read a runbook back from YAML.

    Raises:
        UsageError: it is not YAML, not a runbook, or a step of it cannot be understood.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UsageError(f"{name}{place}: {getattr(error, 'problem', None) or 'this is not YAML'}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(f"{name}: this is not a runbook: it has no `schema: {SCHEMA}`")
    return parse(document, name)


def load_file(path: Path) -> Runbook:
    """Read a runbook file.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return load(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def parse(document: Mapping[str, Any], name: str) -> Runbook:
    """A runbook document as values.

    Raises:
        UsageError: a part of it is missing or has the wrong form; it names the part.
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
            steps=tuple(_recorded_step(step) for step in document["steps"]),
            replacements=tuple(Replacement(**replacement) for replacement in document["replacements"]),
            add=read_circuits(document["circuits"]["add"]),
            remove=read_circuits(document["circuits"]["remove"]),
            keep=read_circuits(document["circuits"]["keep"]),
            undoes=recorded.get("undoes"),
            document=document,
        )
    except KeyError as error:
        raise UsageError(f"{name}: a runbook needs {error}, and this has none") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{name}: this runbook cannot be read: {error}") from error


def _recorded_step(raw: Mapping[str, Any]) -> RecordedStep:
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
    )
    outcome = raw.get("outcome")
    return RecordedStep(step, None if outcome is None else dict(outcome))


def _end(start: Mapping[str, Any], steps: list[Mapping[str, Any]]) -> dict[str, Any]:
    """What the steps leave behind if each did what it says."""
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
