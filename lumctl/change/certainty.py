"""What is certain of the devices that a plan writes, once its steps have come to their end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lumctl.change.outcomes import States
from lumctl.change.plan import Do, Plan, Step
from lumctl.devices.types import Receipt
from lumctl.inventory.switching import own_cells
from lumctl.site import Site


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
