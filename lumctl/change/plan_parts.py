"""The parts of a plan: its start, circuits, PUC states, replacements, candidates, and steps with their stages."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any

from lumctl.devices.types import PucState
from lumctl.fabric import Segment
from lumctl.printable import counted

PUC_MARKS = frozenset(str(state) for state in PucState)


@dataclass(frozen=True, slots=True)
class Start:
    """The rack when the plan was made: the assignment by job, and the states of the devices it writes or passes.

    For a mesh these are the PUCs in cross (the rest are bar), for a switch the egress port of each ingress port. A
    device whose states were unknown is omitted: if the plan writes it, it writes all of its cells.
    """

    assignment: Mapping[str, tuple[str, ...]]
    crosses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    joins: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def cells(self, device: str, own: Iterable[int]) -> dict[int, str] | None:
        """The states of a device's own cells, by cell number; ``None`` if the plan does not contain them."""
        if device in self.joins:
            return dict(self.joins[device])
        if device not in self.crosses:
            return None
        crosses = set(self.crosses[device])
        return {puc: str(PucState.CROSS if puc in crosses else PucState.BAR) for puc in own}

    @classmethod
    def of(cls, assignment: Mapping[str, tuple[str, ...]], cells: Mapping[str, Mapping[int, str]]) -> "Start":
        """Make a start from an assignment and the states of each device, by cell number."""
        meshes = {device for device, held in cells.items() if set(held.values()) <= PUC_MARKS}
        return cls(
            assignment,
            {d: tuple(p for p, mark in sorted(cells[d].items()) if mark == PucState.CROSS) for d in meshes},
            {device: dict(sorted(held.items())) for device, held in cells.items() if device not in meshes},
        )

    def to_document(self) -> dict[str, Any]:
        """The start as plans and runbooks write it."""
        document: dict[str, Any] = {
            "assignment": {job: list(ranks) for job, ranks in self.assignment.items()},
            "crosses": {device: list(pucs) for device, pucs in self.crosses.items()},
        }
        if self.joins:
            document["joins"] = {device: [list(join) for join in joins.items()] for device, joins in self.joins.items()}
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Start":
        """Read the start of a plan or a runbook."""
        joins = document.get("joins", {})
        return cls(
            {str(job): tuple(ranks) for job, ranks in document["assignment"].items()},
            {str(device): tuple(sorted(int(puc) for puc in pucs)) for device, pucs in document["crosses"].items()},
            {str(device): {int(port): str(to) for port, to in pairs} for device, pairs in joins.items()},
        )


@dataclass(frozen=True, slots=True)
class PlannedCircuit:
    """A circuit of a plan with its path and its loss budget. Powers in dBm, losses in dB.

    Each end is a lane, a device and its port (``lane``, ``device``, ``port``). ``segments`` is the path from the first
    end to the second, device by device, empty if unknown; ``fibres[i]`` lies between two segments.
    ``margin_db`` is the expected received power above what its less sensitive receiver needs.
    """

    id: str
    owner: str
    direction: str
    ends: tuple[Mapping[str, Any], ...]
    segments: tuple[Segment, ...] = ()
    fibres: tuple[str, ...] = ()
    loss_db: float | None = None
    expected_rx_dbm: float | None = None
    margin_db: float | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices on its path, each once; those of its ends if the path is unknown."""
        on_path = [segment.device for segment in self.segments] or [str(end["device"]) for end in self.ends]
        return tuple(dict.fromkeys(on_path))

    @property
    def pucs(self) -> tuple[tuple[str, int], ...]:
        """The PUCs that it passes, in order, each with its device."""
        return tuple((segment.device, puc) for segment in self.segments for puc in segment.pucs)

    @property
    def device_ports(self) -> frozenset[tuple[str, frozenset[int]]]:
        """The device and the two ports of each segment; without a path, those of the ends if both are on one device."""
        if self.segments:
            return frozenset((segment.device, frozenset(segment.ports)) for segment in self.segments)
        ends = frozenset(int(end["port"]) for end in self.ends)
        return frozenset({(self.devices[0], ends)}) if len(self.devices) == 1 else frozenset()


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One cell that a plan writes: a PUC (bar or cross), or an ingress port of a switch (its state is an egress port).

    ``before`` is ``None`` if it was unknown.
    """

    device: str
    puc: int
    before: str | None
    after: str

    @property
    def is_join(self) -> bool:
        """Whether it is a port of a switch, and not a PUC."""
        return self.after not in PUC_MARKS


def counted_changes(changes: Iterable[PlannedChange]) -> list[str]:
    """How many cells of each kind are written: ``9 PUCs``, ``2 ingress ports``; none of a kind is left out."""
    joins = [change.is_join for change in changes]
    counts = {"PUCs": joins.count(False), "ingress ports": joins.count(True)}
    return [counted(count, many) for many, count in counts.items() if count]


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """What a plan says of the slices that it places or releases, as documents.

    ``slices``: by slice its ``job``, ``shape``, whether it is ``contiguous`` and whether its fullest edge is proven to
    be the ``optimal`` one, ``fibres_used``, ``worst_loss_db``. ``placement``: ``job``, ``rank``, ``accelerator``,
    ``host``. ``fullest_edge``: ``fibre``, ``capacity``, and the circuits ``before`` and ``after``; empty if the rack
    has no edges. ``bandwidth``: by slice and dimension the ports of each rank and what they carry, also
    if ports of other dimensions were redirected to it. ``largest_left``: the shape of the largest slice that is still
    possible.
    """

    slices: tuple[Mapping[str, Any], ...] = ()
    placement: tuple[Mapping[str, Any], ...] = ()
    fullest_edge: Mapping[str, Any] = field(default_factory=dict)
    bandwidth: tuple[Mapping[str, Any], ...] = ()
    largest_left: str | None = None

    def to_document(self) -> dict[str, Any]:
        """The fields as a plan writes them."""
        return {
            "slices": [dict(each) for each in self.slices],
            "placement": [dict(each) for each in self.placement],
            "fullest_edge": dict(self.fullest_edge),
            "bandwidth": [dict(each) for each in self.bandwidth],
            "largest_left": self.largest_left,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "SliceFacts | None":
        """Read the fields of a plan back; ``None`` if it places and releases no slice."""
        if "placement" not in document:
            return None
        return cls(
            slices=tuple(document["slices"]),
            placement=tuple(document["placement"]),
            fullest_edge=document["fullest_edge"],
            bandwidth=tuple(document["bandwidth"]),
            largest_left=document["largest_left"],
        )


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """A phase of a job's training step: the state of each cell that the phases of the job change, by device.

    All phases of a plan name the same cells. A state is that of a PUC, or the egress port of an ingress port.
    """

    name: str
    cells: Mapping[str, Mapping[int, str]]

    def to_document(self) -> dict[str, Any]:
        """The phase as a plan writes it."""
        return {"name": self.name, "cells": {device: [*cells.items()] for device, cells in self.cells.items()}}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "PlannedPhase":
        """Read the phase of a plan back."""
        cells = {str(d): {int(cell): str(state) for cell, state in of_d} for d, of_d in document["cells"].items()}
        return cls(str(document["name"]), cells)


def permit_of(phases: Iterable[PlannedPhase], made_at: float) -> str:
    """The name of what a plan of kind ``phases`` permits, made from its phases and time: the plan can record it.

    A later plan has another name, also for the same phases: what knows only the earlier one must not change light.
    """
    said = json.dumps([made_at, [phase.to_document() for phase in phases]], sort_keys=True)
    return f"permit-{hashlib.sha256(said.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Cut:
    """An existing light path that a plan cuts: two ports of a device, and the light on it.

    ``owner`` is the job that owns the path according to the record. A path that belongs to no job is cut only if an
    operator listed one of its ports (``agreed``). ``power_dbm`` is ``None`` if it cannot be read, or if there is no
    light (``dark``).
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
        """Whether an operator must list its port before it is cut."""
        return self.owner is None and not self.agreed

    @property
    def light(self) -> str:
        """Its light power, in words."""
        heard = f"{self.receiver} hears {self.transmitter}" if self.receiver and self.transmitter else ""
        power = f"{self.power_dbm:.1f} dBm" if self.power_dbm is not None else "no light" if self.dark else ""
        return ", ".join(filter(None, (heard, power))) or "its light power cannot be read"


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
"""What a step found and did, as recorded in the journal: plain JSON values."""


class Do(StrEnum):
    """What a step does."""

    CHECK = "check"
    """Require that accelerators are healthy according to a fresh reading; changes nothing."""
    TRANSMIT = "transmit"
    """Switch a transponder's transmitter on or off."""
    PROGRAM = "program"
    """Write PUC states of a mesh or connections of a switch."""
    VERIFY = "verify"
    """Require proof that each receiver of the named circuits hears its intended transmitter."""
    CONFIRM = "confirm"
    """Confirm the change on devices with their own revert timer."""
    ASSIGN = "assign"
    """Record which rank runs on which accelerator."""
    SET = "set"
    """Set one setting of one component: a port, a transponder, a machine's power."""
    JOB = "job"
    """Call a job's hook: pause before light paths change, or resume afterwards."""
    RECORD = "record"
    """Record an operator's statement: an acknowledgement, maintenance, a policy. Changes no device."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``data`` is what the engine needs for it. If ``required`` is false, its failure does not stop the run.

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
        """What the step changes: a device, transponder, other component or job; ``None`` if it changes nothing."""
        key = _TOUCHED.get(self.do)
        return None if key is None else str(self.data[key])

    @property
    def writes(self) -> str | None:
        """The device whose cells it writes."""
        return self.touches if self.do is Do.PROGRAM else None

    @property
    def has_no_undo(self) -> bool:
        """Whether it writes cells whose earlier states are unknown, so that it cannot be undone."""
        return self.do is Do.PROGRAM and any(before is None for _, before, _ in self.data["changes"])

    @property
    def pauses_job(self) -> bool:
        """Whether it pauses a job; undoing it lets the job continue."""
        return self.do is Do.JOB and self.data["act"] == "pause"

    @property
    def resumes_job(self) -> bool:
        """Whether it lets a job continue. All light is proved by then, so a failure of this step undoes nothing."""
        return self.do is Do.JOB and self.data["act"] == "resume"


_TOUCHED = {Do.PROGRAM: "device", Do.TRANSMIT: "transponder", Do.SET: "component", Do.JOB: "job"}
"""By kind of step that changes something, the key of its data that names what it changes."""


def stages(steps: Iterable[Step]) -> tuple[tuple[Step, ...], ...]:
    """Groups of steps that run together: the steps of one stage form a group, and so does every other step alone."""
    numbered = enumerate(steps)
    # A step without a stage forms a group of its own, keyed by its index.
    grouped = groupby(numbered, key=lambda at: (at[1].stage, 0 if at[1].stage else at[0]))
    return tuple(tuple(step for _, step in group) for _, group in grouped)
