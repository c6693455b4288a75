"""Whom a request to a gateway is about, and how the two inventories are seen to mean the same device."""

from dataclasses import dataclass

from lumctl.errors import UsageError
from lumctl.inventory.model import Device, Inventory


@dataclass(frozen=True, slots=True)
class GatewaySubject:
    """One driver: its kind, the id of the device or transponder, and which machine of a power controller is meant."""

    kind: str
    id: str
    component: str = ""

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.id}/{self.component}" if self.component else self.id


def rack_of(inventory: Inventory, subject: GatewaySubject) -> str:
    """The rack under whose lease a subject is written.

    Raises:
        UsageError: the inventory has none of that name.
    """
    if subject.kind == "transponder":
        lane = inventory.transponders.get(subject.id)
        if lane is not None:
            return inventory.hosts[lane.host].rack
    elif (device := inventory.devices.get(subject.id)) is not None:
        return device.rack
    raise UsageError(f"the inventory of the gateway has no {subject.kind} {subject.id!r}")


def written(inventory: Inventory, subject: GatewaySubject) -> str:
    """What an inventory says of a subject that decides which device is driven, and how."""
    if subject.kind != "transponder":
        return _device(inventory.devices[subject.id])
    lane = inventory.transponders[subject.id]
    managed = f" {_device(inventory.devices[lane.module.device])} {lane.module.component}" if lane.module else ""
    return f"{lane.driver} {lane.host} {inventory.hosts[lane.host].address} {lane.interface}{managed}"


def _device(device: Device) -> str:
    pucs = device.geometry.puc_count if device.geometry else 0
    return f"{device.driver} {device.address} {device.via} {pucs} {device.port_count} {device.input_count}"
