"""The parts of a plan: circuits, cells, replacements, and the spares that were considered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.change.start import PUC_MARKS


@dataclass(frozen=True, slots=True)
class PlannedCircuit:
    """A circuit of a plan with its way through the device and its loss budget. Powers in dBm, losses in dB.

    ``margin_db`` is what is expected to arrive beyond what the less sensitive of its receivers needs.
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
        return self.after not in PUC_MARKS


@dataclass(frozen=True, slots=True)
class Cut:
    """A light path that stands now and that a plan cuts: two ports of a device, and the light on it.

    ``owner`` is the job whose circuit it is by the record. A path of no job is cut only if an operator named one of its
    ports (``agreed``). ``power_dbm`` is ``None`` where it cannot be read, or where there is no light (``dark``).
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
        """Whether an operator has yet to name it."""
        return self.owner is None and not self.agreed

    @property
    def light(self) -> str:
        """The light on it, in words."""
        heard = f"{self.receiver} hears {self.transmitter}" if self.receiver and self.transmitter else ""
        power = f"{self.power_dbm:.1f} dBm" if self.power_dbm is not None else "no light" if self.dark else ""
        return ", ".join(filter(None, (heard, power))) or "its light cannot be read"


@dataclass(frozen=True, slots=True)
class Replacement:
    """One accelerator of a job and the one that takes its place."""

    job: str
    rank: int
    failed: str
    spare: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A spare that was considered for a failed accelerator: taken, or why not.

    ``rank`` is its place among those that could be taken, 1 the best; ``score`` are the numbers that decide it, the
    first one that differs: less is better. Both are missing where it could not be taken.
    """

    failed: str
    spare: str
    chosen: bool
    reasons: tuple[str, ...]
    rank: int | None = None
    score: Mapping[str, float] = field(default_factory=dict)


def receivers(circuit: PlannedCircuit) -> tuple[tuple[str, str], ...]:
    """Pairs (receiving transponder, transponder that it is meant to hear)."""
    a, b = (str(end["lane"]) for end in circuit.ends)
    return ((b, a), (a, b)) if circuit.direction == "duplex" else ((b, a),)
