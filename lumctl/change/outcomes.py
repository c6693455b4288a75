"""What steps did, and what of it is still to be written down: it goes to disk together with the next intents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.change.light import Proof
from lumctl.change.plan import Do, Plan, Step
from lumctl.change.steps import Evidence
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.devices.types import Receipt
from lumctl.inventory.wiring import own_cells
from lumctl.jobs import HookRefusedError
from lumctl.site import Site
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


@dataclass(frozen=True, slots=True)
class Certainty:
    """The states of a plan's devices, by the record that it starts from."""

    site: Site
    plan: Plan

    def after(self, step: Step, attempted: Iterable[Step], receipts: Mapping[str, Receipt[Any]]) -> States:
        """What a step makes certain: written cells, unless the device may yet revert them by itself."""
        armed = {device for device, receipt in receipts.items() if receipt.revert_armed}
        if step.do is Do.PROGRAM and step.data["device"] not in armed:
            return {step.data["device"]: self.cells(step, after=True)}
        if step.do is Do.CONFIRM:
            programs = [s for s in attempted if s.do is Do.PROGRAM and s.data["device"] in step.data["devices"]]
            return {s.data["device"]: self.cells(s, after=True) for s in programs}
        return {}

    def cells(self, step: Step, *, after: bool) -> dict[int, str]:
        """All states of a device, with the cells of one step as they are after it or as they were before it."""
        device = self.site.inventory.devices[step.data["device"]]
        own = own_cells(self.site.inventory, device)
        written = {int(change[0]): str(change[2 if after else 1]) for change in step.data["changes"]}
        # A join of others that was cut is no part of the record.
        return (self.plan.start.cells(device.id, own) or {}) | {cell: written[cell] for cell in own if cell in written}
