"""The driver ``sim-switch``: a simulated switch over its simulator's control socket, with every capability there is."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from lumctl.devices.base import BaseSwitch
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, InconsistentError, OutcomeUnknownError
from lumctl.devices.joins import difference, judge, plan, ports_of
from lumctl.devices.types import Alarm, Capability, JoinChange, PortReading, Progress, Receipt, Staged
from lumctl.sim.client import ask_simulator, dbm_from_json, read_progress, read_simulator


class SimSwitch(BaseSwitch):
    """One simulated switch. ``context.address`` is ``unix:`` and the path of the control socket."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.ATOMIC,
            Capability.CONFIRM_TIMER,
            Capability.READ_POWERS,
            Capability.READ_TEMPERATURE,
            Capability.READ_ALARMS,
            Capability.READ_PORTS,
            Capability.SET_PORTS,
            Capability.SET_LABELS,
            Capability.PROGRESS,
        }
    )
    proven: ClassVar[str] = "simulator"

    def identify(self) -> str:
        """The line with which the simulated switch identifies itself.

        Raises:
            InconsistentError: the size of the simulated switch differs from the inventory.
        """
        told = self._read("switch-identify")
        context = self.context
        if (told["port_count"], told["input_count"]) != (context.port_count, context.input_count):
            raise InconsistentError(
                f"{context.device} has {told['port_count']} ports, {told['input_count']} of them inputs, but the "
                f"inventory states {context.port_count}, {context.input_count} of them inputs",
                hint="restart the simulator with this inventory",
            )
        return str(told["text"])

    def stage(self, joins: Mapping[int, int | None]) -> Staged[JoinChange]:
        """Check a change against the present joins."""
        planned = plan(ports_of(self.context), self.read_circuits(), joins)
        return Staged(planned.changes, token=uuid.uuid4().hex)

    def compare(self, staged: Staged[JoinChange]) -> tuple[JoinChange, ...]:
        """The changes that a commit would make now."""
        return difference(self.read_circuits(), staged.changes)

    def commit(self, staged: Staged[JoinChange], *, revert_after_s: float | None = None) -> Receipt[JoinChange]:
        """Write a staged change; with ``revert_after_s`` the simulated device reverts it unless it is confirmed.

        Raises:
            InconsistentError: the device refused the change but made part of it.
        """
        wanted = {change.ingress: change.after for change in staged.changes}
        text, complete = self._write(wanted, staged.token, revert_after_s)
        return Receipt(staged, revert_armed=revert_after_s is not None, text=text, complete=complete)

    def confirm(self, receipt: Receipt[JoinChange]) -> None:
        """Disarm the revert timer.

        Raises:
            DeviceRefusedError: the timer had already expired, so the device has reverted the change.
        """
        if not receipt.revert_armed:
            return
        # If the answer to an earlier confirm was lost, no timer is armed any more, but the change is still there.
        if not self._ask("switch-confirm", receipt=receipt.staged.token)["disarmed"] and self.compare(receipt.staged):
            raise DeviceRefusedError(f"{self.context.device} has reverted: it was not confirmed in time")

    def roll_back(self, receipt: Receipt[JoinChange]) -> None:
        """Write the joins from before the change, which also disarms its revert timer."""
        self._write({change.ingress: change.before for change in receipt.staged.changes}, receipt.staged.token, None)

    def read_circuits(self) -> dict[int, int]:
        """The connected ports: the egress port of each ingress port."""
        return {int(ingress): int(egress) for ingress, egress in self._read("switch-read")["joins"]}

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """The power at each port's monitor, in dBm; ``-inf`` for no light."""
        dbm = self._read("switch-powers", ports=ports)["dbm"]
        return {int(port): dbm_from_json(power) for port, power in dbm.items()}

    def read_temperature(self) -> float:
        """Temperature of the switch in degrees Celsius."""
        return float(self._read("switch-temperature")["celsius"])

    def read_alarms(self) -> tuple[Alarm, ...]:
        """Its alarms, including one for each failed port."""
        return tuple(Alarm(**told) for told in self._read("switch-alarms")["alarms"])

    def read_progress(self) -> Progress | None:
        """Progress of an earlier change, if still in progress."""
        return read_progress(self.context)

    def read_ports(self) -> dict[int, PortReading]:
        """The reading of every port."""
        return {
            port: PortReading(port, bool(each["enabled"]), each["failed_since"] is not None, str(each["label"]))
            for port, each in enumerate(self._read("switch-ports")["ports"])
        }

    def set_port(self, port: int, enabled: bool) -> None:
        """Enable or disable light through a port, and read it back.

        Raises:
            InconsistentError: the port's state does not match.
        """
        self._set(port, enabled, lambda reading: reading.enabled, "switch-set-port", on=enabled)

    def set_label(self, port: int, label: str) -> None:
        """Set the label of a port, and read it back.

        Raises:
            InconsistentError: the port shows another label.
        """
        self._set(port, label, lambda reading: reading.label, "switch-set-label", label=label)

    def _set(
        self, port: int, wanted: object, shown: Callable[[PortReading], object], do: str, **arguments: object
    ) -> None:
        """Change a setting of a port, and check that it shows the new value, or after a refusal the old one."""
        ports_of(self.context).require((port,))
        before = shown(self.read_ports()[port])
        said: DeviceRefusedError | None = None
        try:
            self._ask(do, port=port, **arguments)
        except DeviceRefusedError as refusal:
            said = refusal
        try:
            after = shown(self.read_ports()[port])
        except DeviceUnreachableError as error:
            raise OutcomeUnknownError(f"{error.message}; port {port} was set just before") from error
        if said is not None and after == before:
            raise said
        if said is not None or after != wanted:
            words = f"was refused ({said.message}) but is {after}" if said else f"was set but is {after}"
            raise InconsistentError(f"{self.context.device}: port {port} {words}")

    def _write(self, wanted: Mapping[int, int | None], token: str, revert_after_s: float | None) -> tuple[str, bool]:
        """Write a change; return the text of the simulator's answer, and whether the change is complete."""
        ports, before = ports_of(self.context), self.read_circuits()
        planned = plan(ports, before, wanted)
        joins = list(wanted.items())
        said = text = ""
        try:
            answer = self._ask("switch-write", joins=joins, receipt=token, revert_after_s=revert_after_s)
            text = str(answer["text"])
            # While the device works, what it shows is not final and must not be judged.
            if answer["progress"] is not None:
                return text, False
        except DeviceRefusedError as refusal:
            said = refusal.message
        try:
            after = self.read_circuits()
        except DeviceUnreachableError as error:
            raise OutcomeUnknownError(f"{error.message}; a write was sent to it just before") from error
        judge(ports, planned.changes, before, after, said)
        if said and revert_after_s is not None:
            raise InconsistentError(
                f"{ports.device} refused the change ({said}) but made it, and may not revert it by itself",
                hint="read its state before you write anything else to it",
            )
        return text, True

    def _read(self, do: str, **arguments: Any) -> dict[str, Any]:
        return read_simulator(self.context, do, **arguments)

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        return ask_simulator(self.context, do, **arguments)
