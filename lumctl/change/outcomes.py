"""What steps did, and what of it is still to be written down: it goes to disk together with the next intents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lumctl.change.light import Proof
from lumctl.change.plan import Step
from lumctl.change.steps import Evidence
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.jobs import HookRefusedError
from lumctl.store import Record

NOTHING_SENT = (DeviceUnreachableError, DeviceRefusedError, UnsupportedError, HookRefusedError)
"""Errors after which a device surely holds what it held, and a job does what it did."""

States = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class Did:
    """How one step went: its evidence, or why there is none; ``seconds`` without the journal."""

    step: Step
    seconds: float
    evidence: Evidence | None = None
    failure: Exception | None = None

    @property
    def remark(self) -> str:
        """Why a step was passed over; empty where it was done."""
        return "" if self.failure is None else f"passed over ({getattr(self.failure, 'message', self.failure)})"


@dataclass(slots=True)
class Due:
    """Outcomes that are not on disk yet: their entries, what is certain by them, and the steps they are of."""

    entries: list[Record] = field(default_factory=list)
    states: dict[str, Mapping[int, str]] = field(default_factory=dict)
    placed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


def proofs_in(found: Iterable[Evidence]) -> tuple[Proof, ...]:
    """The light that was proved."""
    return tuple(Proof(**proof) for evidence in found for proof in evidence.get("proofs", ()))


def silent_in(found: Iterable[Evidence]) -> tuple[str, ...]:
    """The circuits that were passed over, for a host of theirs does not answer."""
    return tuple(dict.fromkeys(name for evidence in found for name in evidence.get("silent", ())))
