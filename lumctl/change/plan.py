"""A plan is data: what a change replaces, which circuits and cells it touches, and its steps with their undo.

A plan is frozen. Its ``digest`` covers everything but itself and the id made from it, so a plan that was edited after
it was made is refused; ``start`` pins who ran where and what the devices held when it was made, so a plan that the
rack has moved away from is refused as stale.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from lumctl.devices.types import PucState
from lumctl.errors import UsageError

SCHEMA = "lumctl/plan/v1"
_PUC_MARKS = frozenset(str(state) for state in PucState)


class Do(StrEnum):
    """What a step does."""

    CHECK = "check"
    """An accelerator must be healthy by a fresh reading; changes nothing."""
    TRANSMIT = "transmit"
    """Switch a transponder's transmitter on or off."""
    PROGRAM = "program"
    """Write PUC states or joins of one device."""
    VERIFY = "verify"
    """Each receiver of the named circuits must be shown to hear its intended transmitter."""
    CONFIRM = "confirm"
    """Tell devices with a revert timer of their own to keep the change."""
    ASSIGN = "assign"
    """Write down who runs where."""
    SET = "set"
    """Set one setting of one component: a port, a transponder, a machine's power."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``data`` is what the engine needs for it; ``required`` false lets the run go on when it fails."""

    id: str
    do: Do
    title: str
    data: Mapping[str, Any]
    precondition: str = ""
    verification: str = ""
    undo: str = ""
    required: bool = True
    expected_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedCircuit:
    """A circuit of a plan with its way through the device and its loss budget. Powers in dBm, losses in dB."""

    id: str
    owner: str
    device: str
    direction: str
    ends: tuple[Mapping[str, Any], ...]
    pucs: tuple[int, ...] = ()
    loss_db: float | None = None
    expected_rx_dbm: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One cell that a plan writes: a PUC, or (``puc``) an ingress port of a switch, whose states are egress ports.

    ``before`` is ``None`` where it was not known.
    """

    device: str
    puc: int
    before: str | None
    after: str

    @property
    def is_join(self) -> bool:
        """Whether it is a switch's."""
        return self.after not in _PUC_MARKS


@dataclass(frozen=True, slots=True)
class Replacement:
    """One accelerator of a job and the one that takes its place."""

    job: str
    rank: int
    failed: str
    spare: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A spare that was considered for a failed accelerator: taken, or why not."""

    failed: str
    spare: str
    chosen: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """What the rack was when the plan was made: assignment by job, and what the devices held that it writes.

    Of a mesh the PUCs in cross (the rest are bar), of a switch the egress port of each ingress port. A device whose
    states were not known is left out: the plan then writes every one of its cells.
    """

    assignment: Mapping[str, tuple[str, ...]]
    crosses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    joins: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def cells(self, device: str, own: Iterable[int]) -> dict[int, str] | None:
        """What a device held, by the number of each of its own cells; ``None`` where the plan does not say."""
        if device in self.joins:
            return dict(self.joins[device])
        if device not in self.crosses:
            return None
        crosses = set(self.crosses[device])
        return {puc: str(PucState.CROSS if puc in crosses else PucState.BAR) for puc in own}

    @classmethod
    def of(cls, assignment: Mapping[str, tuple[str, ...]], cells: Mapping[str, Mapping[int, str]]) -> "Start":
        """From what each device holds, by the numbers of its cells."""
        meshes = {device for device, held in cells.items() if set(held.values()) <= _PUC_MARKS}
        return cls(
            assignment,
            {d: tuple(p for p, mark in sorted(cells[d].items()) if mark == PucState.CROSS) for d in meshes},
            {device: dict(sorted(held.items())) for device, held in cells.items() if device not in meshes},
        )

    def to_document(self) -> dict[str, Any]:
        """As plans and runbooks write it."""
        document: dict[str, Any] = {
            "assignment": {job: list(ranks) for job, ranks in self.assignment.items()},
            "crosses": {device: list(pucs) for device, pucs in self.crosses.items()},
        }
        if self.joins:
            document["joins"] = {device: [list(join) for join in joins.items()] for device, joins in self.joins.items()}
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Start":
        """Read it back."""
        joins = document.get("joins", {})
        return cls(
            {str(job): tuple(ranks) for job, ranks in document["assignment"].items()},
            {str(device): tuple(sorted(int(puc) for puc in pucs)) for device, pucs in document["crosses"].items()},
            {str(device): {int(port): str(to) for port, to in pairs} for device, pairs in joins.items()},
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole change, ready to be read, kept as a file, and applied."""

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
    digest: str = field(default="")

    @property
    def id(self) -> str:
        """The plan's short name, made from its digest."""
        return f"plan-{self.digest[:8]}"

    @property
    def expected_seconds(self) -> float:
        """The sum of the steps' expected times; an estimate from the inventory's settling times."""
        return round(sum(step.expected_seconds for step in self.steps), 3)

    def sealed(self) -> "Plan":
        """The same plan with its digest."""
        return replace(self, digest=plan_digest(to_document(self)))


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
        "replacements": [asdict(r) for r in plan.replacements],
        "candidates": [asdict(c) | {"reasons": list(c.reasons)} for c in plan.candidates],
        "circuits": {"add": _circuits(plan.add), "remove": _circuits(plan.remove), "keep": _circuits(plan.keep)},
        "puc_changes": [_changed(c, "puc") for c in plan.changes if not c.is_join],
        "join_changes": [_changed(c, "ingress") for c in plan.changes if c.is_join],
        "steps": [asdict(s) | {"do": s.do.value, "data": _plain(s.data)} for s in plan.steps],
        "start": plan.start.to_document(),
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
            hint="make a new plan; to repeat a run with changes, edit its runbook instead",
        )
    try:
        return _read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"this plan was not made by lumctl: {type(error).__name__} at {error}") from error


def read_circuits(documents: Any) -> tuple[PlannedCircuit, ...]:
    """Circuits of a plan or a runbook, as values."""
    return tuple(PlannedCircuit(**{**c, "ends": tuple(c["ends"]), "pucs": tuple(c["pucs"])}) for c in documents)


def receivers(circuit: PlannedCircuit) -> tuple[tuple[str, str], ...]:
    """Pairs (receiving transponder, transponder that it is meant to hear)."""
    a, b = (str(end["lane"]) for end in circuit.ends)
    return ((b, a), (a, b)) if circuit.direction == "duplex" else ((b, a),)


def programmed(steps: Iterable[Step]) -> tuple[PlannedChange, ...]:
    """The cells that some steps write, in their order."""
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
        candidates=tuple(Candidate(**{**c, "reasons": tuple(c["reasons"])}) for c in document["candidates"]),
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
        digest=document["digest"],
    )


def _circuits(circuits: tuple[PlannedCircuit, ...]) -> list[dict[str, Any]]:
    return [asdict(c) | {"ends": [dict(e) for e in c.ends], "pucs": list(c.pucs)} for c in circuits]


def _changed(change: PlannedChange, key: str) -> dict[str, Any]:
    return {"device": change.device, key: change.puc, "from": change.before, "to": change.after}


def _plain(data: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(data))


def plan_digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of a plan's content: everything but its id and the digest itself."""
    content = {key: value for key, value in document.items() if key not in {"id", "digest"}}
    if content.get("join_changes") == []:
        # Plans from before there were joins lack the key, and are written with it when they are run.
        del content["join_changes"]
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
