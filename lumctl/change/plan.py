"""A plan is data: what a change replaces, which circuits and cells it changes, and its steps with their undo.

A plan is frozen. Its ``digest`` covers everything except itself and the id made from it, so an edited plan is refused.
``start`` holds the placement and the device states at planning time, so a plan that no longer fits the rack is refused
as stale.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lumctl.change.plan_parts import (
    Candidate,
    Cut,
    Do,
    PlannedChange,
    PlannedCircuit,
    Replacement,
    Start,
    Step,
    StepEvidence,
    receivers,
    stages,
)
from lumctl.errors import UsageError

__all__ = [
    "ADOPT",
    "SCHEMA",
    "Candidate",
    "Cut",
    "Do",
    "Plan",
    "PlannedChange",
    "PlannedCircuit",
    "Replacement",
    "Start",
    "Step",
    "StepEvidence",
    "from_document",
    "only_adopts",
    "plan_digest",
    "programmed",
    "read_circuits",
    "receivers",
    "stages",
    "to_document",
]

SCHEMA = "lumctl/plan/v1"
ADOPT = "adopt"
"""The kind of plans that record the placement that the light shows."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole change, ready to be read, saved as a file, and applied."""

    kind: str
    title: str
    rack: str
    target: str
    created_at: float
    inventory_digest: str
    start: Start
    replacements: tuple[Replacement, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    add: tuple[PlannedCircuit, ...] = ()
    remove: tuple[PlannedCircuit, ...] = ()
    keep: tuple[PlannedCircuit, ...] = ()
    changes: tuple[PlannedChange, ...] = ()
    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()
    undoes: str | None = None
    why: tuple[str, ...] = ()
    """Why these spares were chosen, in words."""
    cuts: tuple[Cut, ...] = ()
    """Existing light paths that the plan cuts, as far as devices and receivers show them."""
    measured: Mapping[str, int] = field(default_factory=dict)
    """By step, the number of earlier runs whose median is its expected time; other times come from the inventory."""
    digest: str = field(default="")

    @property
    def id(self) -> str:
        """The plan's short name, made from its digest."""
        return f"plan-{self.digest[:8]}"

    @property
    def expected_seconds(self) -> float:
        """The sum over the stages of their longest expected time; an estimate from the inventory's settling times."""
        return round(sum(max(step.expected_seconds for step in stage) for stage in stages(self.steps)), 3)

    def sealed(self) -> "Plan":
        """The same plan with its digest."""
        return replace(self, digest=plan_digest(to_document(self)))


def only_adopts(plan: Plan) -> bool:
    """Whether a plan only records where the light shows the jobs; checked by its steps, not by its claim."""
    return plan.kind == ADOPT and all(step.do in {Do.VERIFY, Do.ASSIGN} for step in plan.steps)


def to_document(plan: Plan) -> dict[str, Any]:
    """A plan as it is written to a file and printed as JSON."""
    return {
        "schema": SCHEMA,
        "id": plan.id,
        "digest": plan.digest,
        "kind": plan.kind,
        "title": plan.title,
        "rack": plan.rack,
        "target": plan.target,
        "created_at": plan.created_at,
        "inventory_digest": plan.inventory_digest,
        "undoes": plan.undoes,
        "expected_seconds": plan.expected_seconds,
        "warnings": list(plan.warnings),
        "replacements": [_fields(r) for r in plan.replacements],
        "candidates": [_considered(c) for c in plan.candidates],
        "circuits": {"add": _circuits(plan.add), "remove": _circuits(plan.remove), "keep": _circuits(plan.keep)},
        "puc_changes": [_changed(c, "puc") for c in plan.changes if not c.is_join],
        "join_changes": [_changed(c, "ingress") for c in plan.changes if c.is_join],
        "steps": [_lean(_fields(s) | {"do": s.do.value, "data": _plain(s.data)}, stage=0) for s in plan.steps],
        "start": plan.start.to_document(),
        **({"why": list(plan.why)} if plan.why else {}),
        **({"cuts": [_fields(cut) for cut in plan.cuts]} if plan.cuts else {}),
        **({"measured": dict(plan.measured)} if plan.measured else {}),
    }


def from_document(document: Any) -> Plan:
    """Read a plan back.

    Raises:
        UsageError: it is not a plan, or it was changed after it was made.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(f"this is not a plan: it has no `schema: {SCHEMA}`", hint="make one with: lumctl swap plan")
    digest = plan_digest(document)
    if document.get("digest") != digest or document.get("id") != f"plan-{digest[:8]}":
        raise UsageError(
            "this plan was changed after it was made: its content does not match its digest",
            hint="make a new plan: lumctl swap plan; to repeat a run with changes, edit its runbook: "
            "lumctl runbook export RUN",
        )
    try:
        return _read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"this plan was not made by lumctl: {type(error).__name__} at {error}") from error


def read_circuits(documents: Any) -> tuple[PlannedCircuit, ...]:
    """Circuits of a plan or a runbook, as values."""
    return tuple(PlannedCircuit(**{**c, "ends": tuple(c["ends"]), "pucs": tuple(c["pucs"])}) for c in documents)


def programmed(steps: Iterable[Step]) -> tuple[PlannedChange, ...]:
    """The cells that steps write, in their order."""
    return tuple(
        PlannedChange(step.data["device"], int(puc), before, after)
        for step in steps
        if step.do is Do.PROGRAM
        for puc, before, after in step.data["changes"]
    )


def _read(document: Mapping[str, Any]) -> Plan:
    circuits = document["circuits"]
    return Plan(
        kind=document["kind"],
        title=document["title"],
        rack=document["rack"],
        target=document["target"],
        created_at=float(document["created_at"]),
        inventory_digest=document["inventory_digest"],
        start=Start.from_document(document["start"]),
        replacements=tuple(Replacement(**r) for r in document["replacements"]),
        candidates=tuple(
            Candidate(**{**c, "reasons": tuple(c["reasons"]), "score": dict(c.get("score", {}))})
            for c in document["candidates"]
        ),
        add=read_circuits(circuits["add"]),
        remove=read_circuits(circuits["remove"]),
        keep=read_circuits(circuits["keep"]),
        changes=tuple(
            PlannedChange(c["device"], int(c[key]), c["from"], c["to"])
            for key, changes in (("puc", "puc_changes"), ("ingress", "join_changes"))
            for c in document.get(changes, ())
        ),
        steps=tuple(Step(**{**s, "do": Do(s["do"])}) for s in document["steps"]),
        warnings=tuple(document["warnings"]),
        undoes=document["undoes"],
        why=tuple(str(line) for line in document.get("why", ())),
        cuts=tuple(Cut(**cut) for cut in document.get("cuts", ())),
        measured={str(step): int(runs) for step, runs in document.get("measured", {}).items()},
        digest=document["digest"],
    )


def _circuits(circuits: tuple[PlannedCircuit, ...]) -> list[dict[str, Any]]:
    return [
        _lean(_fields(c) | {"ends": [dict(e) for e in c.ends], "pucs": list(c.pucs)}, margin_db=None) for c in circuits
    ]


def _considered(candidate: Candidate) -> dict[str, Any]:
    said = {"reasons": list(candidate.reasons), "score": dict(candidate.score)}
    return _lean(_fields(candidate) | said, rank=None, score={})


def _fields(part: Replacement | Candidate | Cut | PlannedCircuit | Step) -> dict[str, Any]:
    """By name, not copied: `dataclasses.asdict` would copy everything that they hold."""
    return {name: getattr(part, name) for name in part.__slots__}


def _lean(document: dict[str, Any], **empty: Any) -> dict[str, Any]:
    """Without fields that have their empty value."""
    return {key: value for key, value in document.items() if key not in empty or value != empty[key]}


def _changed(change: PlannedChange, key: str) -> dict[str, Any]:
    return {"device": change.device, key: change.puc, "from": change.before, "to": change.after}


def _plain(data: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(data))


def plan_digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of a plan's content: everything but its id and the digest itself."""
    content = {key: value for key, value in document.items() if key not in {"id", "digest"}}
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
