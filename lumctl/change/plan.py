"""A plan is data: what a change replaces, the circuits and cells that it changes, and its steps with their undo.

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
    PlannedPhase,
    Replacement,
    SliceFacts,
    Start,
    Step,
    StepEvidence,
    counted_changes,
    permit_of,
    receivers,
    stages,
)
from lumctl.errors import UsageError
from lumctl.fabric import Segment
from lumctl.health.replaced_faults import ReplacedFault

__all__ = [
    "ADOPT",
    "PHASES",
    "SCHEMA",
    "SLICE",
    "Candidate",
    "Cut",
    "Do",
    "Plan",
    "PlannedChange",
    "PlannedCircuit",
    "PlannedPhase",
    "Replacement",
    "SliceFacts",
    "Start",
    "Step",
    "StepEvidence",
    "counted_changes",
    "from_document",
    "only_adopts",
    "permit_of",
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
SLICE = "slice"
"""The kind of plans that place or release slices."""
PHASES = "phases"
"""The kind of plans that permit a job to change the light between its phases."""


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
    """By step, the number of earlier runs in the median of its expected time; other times come from the inventory."""
    slices: SliceFacts | None = None
    """What a plan of kind ``slice`` says of the slices that it places or releases."""
    phases: tuple[PlannedPhase, ...] = ()
    """What a plan of kind ``phases`` permits: the states that the job may select while it runs."""
    even_if_healthy: bool = False
    """Whether it replaces an accelerator that read as ok, because an operator wanted it nevertheless."""
    unanswered: tuple[str, ...] = ()
    """The devices that it writes, and the hosts that its proof needs, that did not answer when it was made: until they
    do, it cannot be applied."""
    faults: tuple[ReplacedFault, ...] = ()
    """The faults because of which it replaces accelerators."""
    digest: str = field(default="")

    @property
    def id(self) -> str:
        """The plan's short name, made from its digest."""
        return f"plan-{self.digest[:8]}"

    @property
    def expected_seconds(self) -> float:
        """The sum of the longest expected time of each stage, estimated from earlier runs or the inventory."""
        return round(sum(max(step.expected_seconds for step in stage) for stage in stages(self.steps)), 3)

    @property
    def writes(self) -> dict[str, dict[int, str]]:
        """The states that its steps write, by device and cell."""
        states: dict[str, dict[int, str]] = {}
        for change in programmed(self.steps):
            states.setdefault(change.device, {})[change.puc] = str(change.after)
        return states

    @property
    def permit(self) -> str:
        """The name of what a plan of kind ``phases`` permits."""
        return permit_of(self.phases, self.created_at)

    def sealed(self) -> "Plan":
        """The same plan with its digest."""
        return replace(self, digest=plan_digest(to_document(self)))


def only_adopts(plan: Plan) -> bool:
    """Whether a plan only records the placement that the light shows; decided by its steps, not by its kind."""
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
        **({"phases": [phase.to_document() for phase in plan.phases]} if plan.phases else {}),
        **({"even_if_healthy": True} if plan.even_if_healthy else {}),
        **({"unanswered": list(plan.unanswered)} if plan.unanswered else {}),
        **({"faults": [_fields(fault) for fault in plan.faults]} if plan.faults else {}),
        **(plan.slices.to_document() if plan.slices else {}),
    }


def from_document(document: Any) -> Plan:
    """Read a plan back.

    Raises:
        UsageError: it is not a plan, or it was changed after it was made.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(f"this is not a plan: it lacks `schema: {SCHEMA}`", hint="to make a plan: lumctl swap plan")
    digest = plan_digest(document)
    if document.get("digest") != digest or document.get("id") != f"plan-{digest[:8]}":
        make = "lumctl slice plan" if document.get("kind") == SLICE else "lumctl swap plan"
        raise UsageError(
            "this plan was changed after it was made: its content does not match its digest",
            hint=f"make a new plan: {make}; to repeat a run with changes, edit its runbook: "
            "lumctl runbook export RUN --out FILE",
        )
    try:
        return _read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"this plan was not made by lumctl: {type(error).__name__} at {error}") from error


def read_circuits(documents: Any) -> tuple[PlannedCircuit, ...]:
    """Read the circuits of a plan or a runbook."""
    return tuple(
        PlannedCircuit(
            **{
                **circuit,
                "ends": tuple(circuit["ends"]),
                "segments": tuple(
                    Segment(str(part["device"]), (part["ports"][0], part["ports"][1]), tuple(part["pucs"]))
                    for part in circuit["segments"]
                ),
                "fibres": tuple(circuit.get("fibres", ())),
            }
        )
        for circuit in documents
    )


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
        slices=SliceFacts.from_document(document),
        phases=tuple(PlannedPhase.from_document(phase) for phase in document.get("phases", ())),
        even_if_healthy=bool(document.get("even_if_healthy", False)),
        unanswered=tuple(str(device) for device in document.get("unanswered", ())),
        faults=tuple(ReplacedFault(**fault) for fault in document.get("faults", ())),
        digest=document["digest"],
    )


def _circuits(circuits: tuple[PlannedCircuit, ...]) -> list[dict[str, Any]]:
    return [
        _lean(
            _fields(circuit)
            | {
                "ends": [dict(end) for end in circuit.ends],
                "segments": [
                    {"device": part.device, "ports": list(part.ports), "pucs": list(part.pucs)}
                    for part in circuit.segments
                ],
                "fibres": list(circuit.fibres),
            },
            fibres=[],
            margin_db=None,
        )
        for circuit in circuits
    ]


def _considered(candidate: Candidate) -> dict[str, Any]:
    said = {"reasons": list(candidate.reasons), "score": dict(candidate.score)}
    return _lean(_fields(candidate) | said, rank=None, score={})


def _fields(part: Replacement | Candidate | Cut | PlannedCircuit | Step | ReplacedFault) -> dict[str, Any]:
    """The fields of a part by name, without copies: `dataclasses.asdict` would copy everything that they hold."""
    return {name: getattr(part, name) for name in part.__slots__}


def _lean(document: dict[str, Any], **empty: Any) -> dict[str, Any]:
    """A document without the fields that have their default value."""
    return {key: value for key, value in document.items() if key not in empty or value != empty[key]}


def _changed(change: PlannedChange, key: str) -> dict[str, Any]:
    return {"device": change.device, key: change.puc, "from": change.before, "to": change.after}


def _plain(data: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(data))


def plan_digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of a plan's content: everything but its id and the digest itself."""
    content = {key: value for key, value in document.items() if key not in {"id", "digest"}}
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
