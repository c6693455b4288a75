"""The driver over NETCONF: joins, labels, ports, powers and alarms of one switch.

Switches differ in their datastores: the driver uses the candidate if there is one, and otherwise edits the running
configuration. So it declares neither a revert timer nor atomic changes.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, TypeVar
from xml.etree.ElementTree import Element

from lumctl.devices.base import BaseSwitch
from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.joins import difference, judge, plan, ports_of
from lumctl.devices.netconf import NetconfClient
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Alarm, Capability, JoinChange, PortReading, Receipt, Staged
from lumctl_polatis import model

T = TypeVar("T")


class PolatisNetconf(BaseSwitch):
    """One switch behind its NETCONF port. Port 0 in lumctl is port 1 of the device."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.READ_POWERS,
            Capability.READ_ALARMS,
            Capability.READ_PORTS,
            Capability.SET_PORTS,
            Capability.SET_LABELS,
        }
    )
    proven: ClassVar[str] = "netconfd 2.13 (joins, labels), twin; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        super().__init__(context)
        self._ports = ports_of(context)
        self._client = NetconfClient(context)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def identify(self) -> str:
        """Maker, model, serial number and version; the size is compared with the inventory.

        Raises:
            InconsistentError: the switch has another size.
        """
        with self._client.one_call():
            product = self._read(model.PRODUCT, model.read_product)
            count = max(self._read(model.PORTS, model.read_ports), default=-1) + 1
        inputs = model.inputs_of(product.get("model-name", ""))
        ports = self._ports
        if count != ports.port_count or inputs not in {None, ports.input_count}:
            of_them = "" if inputs is None else f", {inputs} of them inputs"
            raise InconsistentError(
                f"{ports.device} has {count} ports{of_them}, but the inventory states {ports.port_count}, "
                f"{ports.input_count} of them inputs",
                hint="correct port_count and input_count of the device: lumctl-inventory(5)",
            )
        told = [product.get(leaf, "") for leaf in ("manufacturer", "model-name", "serial-number", "software-version")]
        return f"{' '.join(text for text in told if text) or 'optical switch'}, {count} ports"

    def stage(self, joins: Mapping[int, int | None]) -> Staged[JoinChange]:
        """Check a change against the present joins of the switch."""
        return Staged(plan(self._ports, self.read_circuits(), joins).changes, token=self._ports.device)

    def compare(self, staged: Staged[JoinChange]) -> tuple[JoinChange, ...]:
        """The changes that a commit would make now."""
        return difference(self.read_circuits(), staged.changes)

    def commit(self, staged: Staged[JoinChange], *, revert_after_s: float | None = None) -> Receipt[JoinChange]:
        """Write the differences under a lock, and read them back.

        Raises:
            UnsupportedError: a revert timer was requested, which not every switch has; nothing was sent.
            DeviceBusyError: another client has locked the switch; nothing changed.
            DeviceRefusedError: the change was staged for another device, another client has joined an egress port since
                then, or the switch refused; nothing changed.
            InconsistentError: the switch made part of the change, or shows other joins.
            DeviceUnreachableError: nothing was written.
            OutcomeUnknownError: the change was written, and the result could not be read.
        """
        if revert_after_s is not None:
            raise UnsupportedError(f"{self._ports.device}: this driver cannot arm a revert timer")
        if staged.token != self._ports.device:
            raise DeviceRefusedError(f"{self._ports.device}: the change was staged for {staged.token or 'no device'}")
        self._write({change.ingress: change.after for change in staged.changes})
        return Receipt(staged, revert_armed=False)

    def confirm(self, receipt: Receipt[JoinChange]) -> None:
        """Do nothing: no timer is ever armed."""

    def roll_back(self, receipt: Receipt[JoinChange]) -> None:
        """Restore the joins from before the change; later joins of others stay."""
        self._write({change.ingress: change.before for change in receipt.staged.changes})

    def read_circuits(self) -> dict[int, int]:
        """All joins."""
        held = self._read(model.JOINS, model.read_joins)
        strange = max((port for pair in held.items() for port in pair), default=0)
        if strange >= self._ports.port_count:
            raise InconsistentError(
                f"{self._ports.device} connects its port {strange}; the inventory states {self._ports.port_count} ports"
            )
        return held

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """The power that the monitor of each port shows, in dBm.

        Raises:
            UnsupportedError: this model has no power monitor at one of the ports.
        """
        self._ports.require(ports)
        powers = self._read(model.POWERS, model.read_powers) if ports else {}
        blind = ", ".join(str(port) for port in ports if port not in powers)
        if blind:
            raise UnsupportedError(f"{self._ports.device} has no power monitor at port {blind}")
        return {port: powers[port] for port in ports}

    def read_alarms(self) -> tuple[Alarm, ...]:
        """The alarms that the switch reports as active."""
        return self._read(model.ALARMS, model.read_alarms)

    def read_ports(self) -> dict[int, PortReading]:
        """All ports: label, whether the port is enabled, and whether it has failed."""
        told = self._read(model.PORTS, model.read_ports)
        return {port: told.get(port, PortReading(port)) for port in range(self._ports.port_count)}

    def set_port(self, port: int, enabled: bool) -> None:
        """Enable or disable a port, and read it back.

        Raises:
            UnsupportedError: this model's ports cannot be switched; nothing was written.
            DeviceRefusedError: there is no such port, or the switch refused; nothing changed.
            InconsistentError: the port did not change.
            OutcomeUnknownError: the change was written, and the result could not be read.
        """
        self._ports.require((port,))
        with self._client.one_call():
            before = self.read_ports()[port]
            # A failed port does not say whether it is enabled, and yet can be switched.
            if before.enabled is None and not before.failed:
                raise UnsupportedError(f"{self._ports.device}: port {port} of this model cannot be switched")
            if before.enabled is enabled:
                return
            said = self._refusal(lambda: self._client.call(model.set_state(port, enabled=enabled)))
            after = self._after_writing(self.read_ports)[port]
        if after.enabled is enabled:
            return
        if said is not None and after == before:
            raise said
        raise InconsistentError(f"{self._ports.device}: port {port} did not change when told to")

    def set_label(self, port: int, label: str) -> None:
        """Name a port, and read it back.

        Raises:
            DeviceRefusedError: there is no such port, or the label is invalid; nothing changed.
            InconsistentError: the switch shows another label.
            OutcomeUnknownError: the label was written, and the result could not be read.
        """
        self._ports.require((port,))
        if not model.LABEL.fullmatch(label):
            self._ports.refuse("takes labels of up to 128 printable ASCII characters, with no space at either end")
        with self._client.one_call():
            before = self.read_ports()[port].label
            if before == label:
                return
            with self._client.locked(*self._locks()):
                said = self._refusal(lambda: self._edit(model.edit_label(port, label)))
            shown = self._after_writing(self.read_ports)[port].label
        if shown == label:
            return
        if said is not None and shown == before:
            raise said
        raise InconsistentError(f"{self._ports.device}: port {port} was labelled {label!r} but shows {shown!r}")

    def _write(self, wanted: Mapping[int, int | None]) -> None:
        with self._client.one_call(), self._client.locked(*self._locks()):
            before = self.read_circuits()
            planned = plan(self._ports, before, wanted)
            if not planned.remove and not planned.add:
                return
            said = self._refusal(lambda: self._edit(model.edit_joins(planned.remove, planned.add)))
            complaint = said.message if said else ""
            judge(self._ports, planned.changes, before, self._after_writing(self.read_circuits), complaint)

    def _refusal(self, write: Callable[[], object]) -> DeviceRefusedError | None:
        """The switch's refusal of a write, or ``None``. A switch that refuses may have made part of the change."""
        try:
            write()
        # Busy is a refusal too, but one that always means that nothing changed.
        except DeviceBusyError:
            raise
        except DeviceRefusedError as refusal:
            return refusal
        return None

    def _locks(self) -> tuple[str, ...]:
        # Running too, so that no other client changes joins between our reading and the commit.
        return ("running", "candidate") if self._client.offers("candidate") else ("running",)

    def _edit(self, config: str) -> None:
        if self._client.offers("candidate"):
            self._client.edit_config(config, target="candidate")
            self._client.commit()
        else:
            self._client.edit_config(config, target="running")

    def _read(self, subtree: str, understood: Callable[[Element], T]) -> T:
        try:
            return understood(self._client.get(subtree))
        except ValueError as error:
            raise DeviceUnreachableError(
                f"{self._ports.device} at {self.context.address}: its data cannot be interpreted: {error}",
                hint="check the address: it may be another kind of device",
            ) from None

    def _after_writing(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except (DeviceUnreachableError, DeviceRefusedError, UnsupportedError) as error:
            raise OutcomeUnknownError(
                f"{error.message}; a write was sent to it just before", hint=error.hint
            ) from error
