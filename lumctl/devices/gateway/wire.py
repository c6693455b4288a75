"""The protocol between a program and the gateway of a rack: after a greeting, one JSON line each way per request.

An incomplete line is ignored: a sender who could not send the whole line knows that nothing was done. Both sides
use the same rules here: what a request is about, how their inventories are compared, and how an error is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lumctl.devices import errors
from lumctl.devices.errors import DeviceError, OutcomeUnknownError
from lumctl.devices.recorded_calls import WRITES
from lumctl.devices.recorded_values import encode_error
from lumctl.errors import LumctlError, UsageError
from lumctl.inventory.model import Device, Inventory

SCHEMA = "lumctl/daemon/gateway/v1"
FENCED = WRITES - {"announce"}
"""The calls that need a lease. A host may always announce itself: that changes no light path."""


@dataclass(frozen=True, slots=True)
class GatewaySubject:
    """One driver: its kind, the id of the device or transponder, and for a power controller the machine."""

    kind: str
    id: str
    component: str = ""

    @property
    def name(self) -> str:
        """The name of the subject in messages."""
        return f"{self.id}/{self.component}" if self.component else self.id


def rack_of(inventory: Inventory, subject: GatewaySubject) -> str:
    """The rack under whose lease a subject is written.

    Raises:
        UsageError: the inventory has no subject of that name.
    """
    if subject.kind == "transponder":
        lane = inventory.transponders.get(subject.id)
        if lane is not None:
            return inventory.hosts[lane.host].rack
    elif (device := inventory.devices.get(subject.id)) is not None:
        return device.rack
    raise UsageError(f"the inventory of the gateway has no {subject.kind} {subject.id!r}")


def written(inventory: Inventory, subject: GatewaySubject) -> str:
    """The part of an inventory that decides which device is driven for a subject, and how, as text."""
    if subject.kind != "transponder":
        return _device(inventory.devices[subject.id])
    lane = inventory.transponders[subject.id]
    managed = f" {_device(inventory.devices[lane.module.device])} {lane.module.component}" if lane.module else ""
    return f"{lane.driver} {lane.host} {inventory.hosts[lane.host].address} {lane.interface}{managed}"


def _device(device: Device) -> str:
    pucs = device.geometry.puc_count if device.geometry else 0
    return f"{device.driver} {device.address} {device.via} {pucs} {device.port_count} {device.input_count}"


def error_said(error: Exception) -> dict[str, Any]:
    """An error as a JSON value for the wire."""
    return {"error": encode_error(error)}


def error_heard(said: Mapping[str, Any], *, wrote: bool) -> LumctlError:
    """The error in an answer, of the class that it had at the gateway.

    An error that no driver may raise does not show the state of the device: after a write, the outcome is unknown.
    """
    kind, message = str(said["kind"]), str(said["message"])
    hint = None if said.get("hint") is None else str(said["hint"])
    # From this module only: a name that comes over the wire must not choose any other class.
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, DeviceError):
        return found(message, hint=hint)
    if kind == UsageError.__name__:
        return UsageError(message, hint=hint)
    unexpected = f"the driver behind the gateway failed with {kind}: {message}"
    return OutcomeUnknownError(unexpected, hint=hint) if wrote else DeviceError(unexpected, hint=hint)
