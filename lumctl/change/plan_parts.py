"""The parts of a plan: its start, circuits, PUC states, replacements, candidates, and steps with their stages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any

from lumctl.devices.types import PucState

PUC_MARKS = frozenset(str(state) for state in PucState)


@dataclass(frozen=True, slots=True)
class Start:
    """The rack when the plan was made: the assignment by job, and the states of the devices that it writes.

    For a mesh these are the PUCs in cross (the rest are bar), for a switch the egress port of each ingress port. A
    device whose states were not known is left out: the plan then writes all of its cells.
    """

    assignment: Mapping[str, tuple[str, ...]]
    crosses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    joins: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def cells(self, device: str, own: Iterable[int]) -> dict[int, str] | None:
        """The states of a device's own cells, by cell number; ``None`` if the plan does not hold them."""
        if device in self.joins:
            return dict(self.joins[device])
        if device not in self.crosses:
            return None
        crosses = set(self.crosses[device])
        return {puc: str(PucState.CROSS if puc in crosses else PucState.BAR) for puc in own}

    @classmethod
    def of(cls, assignment: Mapping[str, tuple[str, ...]], cells: Mapping[str, Mapping[int, str]]) -> "Start":
        """Make it from the states of each device, by cell number."""
        meshes = {device for device, held in cells.items() if set(held.values()) <= PUC_MARKS}
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
class PlannedCircuit:
    """A circuit of a plan with its route through the device and its loss budget. Powers in dBm, losses in dB.

    ``margin_db`` is the expected received power above what its less sensitive receiver needs.
    """

    id: str
    owner: str
    device: str
    direction: str
    ends: tuple[Mapping[str, Any], ...]
    pucs: tuple[int, ...] = ()
    loss_db: float | None = None
    expected_rx_dbm: float | None = None
    margin_db: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One cell that a plan writes: a PUC (bar or cross), or an ingress port of a switch (its state is an egress port).

    ``before`` is ``None`` if it was not known.
    """

    device: str
    puc: int
    before: str | None
    after: str

    @property
    def is_join(self) -> bool:
        """Whether it is a join of a switch."""
        return self.after not in PUC_MARKS


@dataclass(frozen=True, slots=True)
class Cut:
    """An existing light path that a plan cuts: two ports of a device, and the light on it.

    ``owner`` is the job whose circuit it is by the record. A path of no job is cut only if an operator named one of its
    ports (``agreed``). ``power_dbm`` is ``None`` if it cannot be read, or if there is no light (``dark``).
    """

    device: str
    ingress: int
    egress: int
    owner: str | None = None
    transmitter: str | None = None
    receiver: str | None = None
    power_dbm: float | None = None
    dark: bool = False
    agreed: bool = False

    @property
    def needs_word(self) -> bool:
        """Whether an operator must name it before it is cut."""
        return self.owner is None and not self.agreed

    @property
    def light(self) -> str:
        """The light on it, in words."""
        heard = f"{self.receiver} hears {self.transmitter}" if self.receiver and self.transmitter else ""
        power = f"{self.power_dbm:.1f} dBm" if self.power_dbm is not None else "no light" if self.dark else ""
        return ", ".join(filter(None, (heard, power))) or "its light cannot be read"


@dataclass(frozen=True, slots=True)
class Replacement:
    """A failed accelerator of a job and the spare that replaces it."""

    job: str
    rank: int
    failed: str
    spare: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A spare that was considered for a failed accelerator: chosen, or the reasons why not.

    ``rank`` orders the usable spares, 1 is the best. ``score`` holds the criteria in order: the first one that differs
    decides, and less is better. Both are missing for unusable spares.
    """

    failed: str
    spare: str
    chosen: bool
    reasons: tuple[str, ...]
    rank: int | None = None
    score: Mapping[str, float] = field(default_factory=dict)


def receivers(circuit: PlannedCircuit) -> tuple[tuple[str, str], ...]:
    """Pairs (receiving transponder, transponder that it must hear)."""
    a, b = (str(end["lane"]) for end in circuit.ends)
    return ((b, a), (a, b)) if circuit.direction == "duplex" else ((b, a),)


StepEvidence = Mapping[str, Any]
"""What a step found and did, as the journal keeps it: plain JSON values."""


class Do(StrEnum):
    """What a step does."""

    CHECK = "check"
    """Require that accelerators are healthy by a fresh reading; changes nothing."""
    TRANSMIT = "transmit"
    """Switch a transponder's transmitter on or off."""
    PROGRAM = "program"
    """Write PUC states or joins of one device."""
    VERIFY = "verify"
    """Require proof that each receiver of the named circuits hears its intended transmitter."""
    CONFIRM = "confirm"
    """Confirm the change on devices with their own revert timer."""
    ASSIGN = "assign"
    """Record which rank runs on which accelerator."""
    SET = "set"
    """Set one setting of one component: a port, a transponder, a machine's power."""
    JOB = "job"
    """Call a job's hook: pause before light moves, or resume afterwards."""
    RECORD = "record"
    """Record an operator's statement: an acknowledgement, maintenance, a policy. Touches no device."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``data`` is what the engine needs for it; if ``required`` is false, the run continues when it fails.

    Neighbouring steps with the same ``stage`` above 0 run at the same time.
    """

    id: str
    do: Do
    title: str
    data: Mapping[str, Any]
    precondition: str = ""
    verification: str = ""
    undo: str = ""
    required: bool = True
    expected_seconds: float = 0.0
    stage: int = 0

    @property
    def touches(self) -> str | None:
        """What it changes: a device, a transponder, another component or a job; ``None`` for one that changes none."""
        key = _TOUCHED.get(self.do)
        return None if key is None else str(self.data[key])

    @property
    def writes(self) -> str | None:
        """The device whose cells it writes."""
        return self.touches if self.do is Do.PROGRAM else None

    @property
    def has_no_undo(self) -> bool:
        """Whether it writes cells whose earlier states are not known: nothing could be put back."""
        return self.do is Do.PROGRAM and any(before is None for _, before, _ in self.data["changes"])

    @property
    def pauses_job(self) -> bool:
        """Whether it pauses a job; undoing it lets the job continue."""
        return self.do is Do.JOB and self.data["act"] == "pause"

    @property
    def resumes_job(self) -> bool:
        """Whether it lets a job continue. All light is proved by then, so its failure undoes nothing."""
        return self.do is Do.JOB and self.data["act"] == "resume"


_TOUCHED = {Do.PROGRAM: "device", Do.TRANSMIT: "transponder", Do.SET: "component", Do.JOB: "job"}
"""Where each kind of step that changes something names what it changes."""


def stages(steps: Iterable[Step]) -> tuple[tuple[Step, ...], ...]:
    """Groups of steps that run together: those of one stage, and every other step alone."""
    numbered = enumerate(steps)
    # A step without a stage forms a group of its own, keyed by its index.
    grouped = groupby(numbered, key=lambda at: (at[1].stage, 0 if at[1].stage else at[0]))
    return tuple(tuple(step for _, step in group) for _, group in grouped)
