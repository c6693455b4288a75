"""The driver over SCPI: joins, ports and powers of one switch.

It has no labels, since no public document shows a SCPI command for them. It has no alarms either: the error queue only
holds the errors of commands, and a client that reads it removes its entries for all other clients.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from lumctl.devices.base import BaseSwitch
from lumctl.devices.errors import DeviceRefusedError, InconsistentError, UnsupportedError
from lumctl.devices.joins import JoinPlan, Joins, difference, judge, plan, ports_of
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, JoinChange, PortReading, Receipt, Staged
from lumctl_polatis import words
from lumctl_polatis.line import ScpiClient, Turn

_MOST_STATES = 256


class PolatisScpi(BaseSwitch):
    """One switch behind its SCPI port. Port 0 in lumctl is port 1 of the device."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.READ_POWERS, Capability.READ_PORTS, Capability.SET_PORTS}
    )
    proven: ClassVar[str] = "twin, which PyVISA-py drives too; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        super().__init__(context)
        self._ports = ports_of(context)
        self._client = ScpiClient(context)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def identify(self) -> str:
        """Maker, model, serial number and firmware; the size is compared with the inventory.

        Raises:
            InconsistentError: the switch has another size.
        """
        with self._client.turn() as turn:
            text = turn.ask("*idn?", words.read_identity)
            count, inputs = turn.ask(":oxc:swit:size?", words.read_size)
        ports = self._ports
        if (count, inputs) != (ports.port_count, ports.input_count):
            raise InconsistentError(
                f"{ports.device} has {count} ports, {inputs} of them inputs, but the inventory states "
                f"{ports.port_count}, {ports.input_count} of them inputs",
                hint="correct port_count and input_count of the device: lumctl-inventory(5)",
            )
        return f"{text}, {count} ports"

    def stage(self, joins: Mapping[int, int | None]) -> Staged[JoinChange]:
        """Check a change against the present joins of the switch."""
        with self._client.turn() as turn:
            return Staged(self._plan(self._held(turn), joins).changes, token=self._ports.device)

    def compare(self, staged: Staged[JoinChange]) -> tuple[JoinChange, ...]:
        """The changes that a commit would make now."""
        with self._client.turn() as turn:
            return difference(self._held(turn), staged.changes)

    def commit(self, staged: Staged[JoinChange], *, revert_after_s: float | None = None) -> Receipt[JoinChange]:
        """Remove the joins that conflict, add the missing ones, and read back; if nothing differs, nothing is sent.

        Raises:
            UnsupportedError: a revert timer was requested; the switch has none.
            DeviceRefusedError: the change was staged for another device, another client has joined an egress port since
                then, or the switch refused; nothing changed.
            InconsistentError: the switch made part of the change, or shows other joins.
            DeviceUnreachableError: nothing was written.
            OutcomeUnknownError: the change was written, and the result could not be read.
        """
        if revert_after_s is not None:
            raise UnsupportedError(f"{self._ports.device}: the switch has no revert timer")
        if staged.token != self._ports.device:
            raise DeviceRefusedError(f"{self._ports.device}: the change was staged for {staged.token or 'no device'}")
        text = self._write({change.ingress: change.after for change in staged.changes})
        return Receipt(staged, revert_armed=False, text=text)

    def confirm(self, receipt: Receipt[JoinChange]) -> None:
        """Do nothing: no timer is ever armed."""

    def roll_back(self, receipt: Receipt[JoinChange]) -> None:
        """Restore the joins from before the change; later joins of others stay."""
        self._write({change.ingress: change.before for change in receipt.staged.changes})

    def read_circuits(self) -> dict[int, int]:
        """All joins."""
        with self._client.turn() as turn:
            return self._held(turn)

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """The power that the monitor of each port shows, in dBm.

        Raises:
            UnsupportedError: this model has no power monitor, or none at some of these ports.
        """
        self._ports.require(ports)
        powers: dict[int, float] = {}
        with self._client.turn() as turn:
            for some in _batches(ports, words.MOST_POWERS):
                query = f":pmon:pow? {words.port_list(some)}"
                found = turn.ask_if_known(query, words.read_powers(len(some)))
                if found is None:
                    raise UnsupportedError(
                        f"{self._ports.device} returns no powers: this model has no power monitor at some of these "
                        "ports"
                    )
                powers |= zip(some, found, strict=True)
        return powers

    def read_ports(self) -> dict[int, PortReading]:
        """All ports: whether each is enabled, and whether it has failed.

        Raises:
            UnsupportedError: this model does not report its ports.
        """
        every = range(self._ports.port_count)
        with self._client.turn() as turn:
            states = self._states(turn, every)
        return {
            # A failed port does not say whether it is enabled.
            port: PortReading(port, enabled=None if state == "F" else state == "E", failed=state == "F")
            for port, state in zip(every, states, strict=True)
        }

    def set_port(self, port: int, enabled: bool) -> None:
        """Enable or disable a port, and read it back.

        Raises:
            UnsupportedError: this model's ports cannot be switched; nothing was written.
            DeviceRefusedError: there is no such port, or the switch refused; nothing changed.
            InconsistentError: the port did not change.
            OutcomeUnknownError: the change was written, and the result could not be read.
        """
        self._ports.require((port,))
        wanted, verb = ("E", "enab") if enabled else ("D", "dis")
        with self._client.turn() as turn:
            before = self._states(turn, [port])
            if before == [wanted]:
                return
            said = turn.write(f":oxc:swit:port:{verb} {words.port_list([port])}")
            after = turn.ask(f":oxc:swit:port:stat? {words.port_list([port])}", words.read_states(1))
        if after == [wanted]:
            return
        if said and after == before:
            self._ports.refuse(f"refused to switch port {port}: {said}; nothing changed")
        raise InconsistentError(f"{self._ports.device}: port {port} did not change when told to: it is {after[0]}")

    def _write(self, wanted: Mapping[int, int | None]) -> str:
        with self._client.turn() as turn:
            before = self._held(turn)
            planned = self._plan(before, wanted)
            # Remove first: the switch does not join a port that has a join already.
            verbs = (("sub", planned.remove), ("add", planned.add))
            commands = [f":oxc:swit:conn:{verb} {words.pair_lists(pairs)}" for verb, pairs in verbs if pairs]
            if not commands:
                return ""
            said = turn.write(";".join(commands))
            judge(self._ports, planned.changes, before, self._held(turn), said)
        return said

    def _plan(self, held: Joins, wanted: Mapping[int, int | None]) -> JoinPlan:
        return plan(self._ports, held, wanted)

    def _held(self, turn: Turn) -> dict[int, int]:
        held = turn.ask(":oxc:swit:conn:stat?", words.read_joins)
        strange = max((port for pair in held.items() for port in pair), default=0)
        if strange >= self._ports.port_count:
            raise InconsistentError(
                f"{self._ports.device} connects its port {strange}; the inventory states {self._ports.port_count} ports"
            )
        return held

    def _states(self, turn: Turn, ports: Iterable[int]) -> list[str]:
        states: list[str] = []
        for some in _batches(tuple(ports), _MOST_STATES):
            found = turn.ask_if_known(f":oxc:swit:port:stat? {words.port_list(some)}", words.read_states(len(some)))
            if found is None:
                raise UnsupportedError(
                    f"{self._ports.device}: the ports of this model can be neither read nor switched"
                )
            states += found
        return states


def _batches(ports: tuple[int, ...], most: int) -> Iterable[tuple[int, ...]]:
    return (ports[start : start + most] for start in range(0, len(ports), most))
