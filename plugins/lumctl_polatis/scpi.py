"""The driver over SCPI: joins, ports and powers of one switch.

It leaves out what SCPI has no way for: labels, of which no public document shows a command, and alarms, for the error
queue holds what went wrong with commands, and whoever reads it takes it away from everybody else.
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
    """One switch behind its SCPI port. What the program calls port 0 is port 1 of the device."""

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
        """Hang up."""
        self._client.close()

    def identify(self) -> str:
        """Maker, model, serial number and firmware; the size is held against the inventory.

        Raises:
            InconsistentError: it is of another size.
        """
        with self._client.turn() as turn:
            text = turn.ask("*idn?", words.read_identity)
            count, inputs = turn.ask(":oxc:swit:size?", words.read_size)
        ports = self._ports
        if (count, inputs) != (ports.port_count, ports.input_count):
            raise InconsistentError(
                f"{ports.device} has {count} ports, {inputs} of them inputs, and the inventory states "
                f"{ports.port_count}, {ports.input_count} of them inputs",
                hint="port_count and input_count of the device: lumctl-inventory(5)",
            )
        return f"{text}, {count} ports"

    def stage(self, joins: Mapping[int, int | None]) -> Staged[JoinChange]:
        """Check a change against what the switch holds now."""
        with self._client.turn() as turn:
            return Staged(self._plan(self._held(turn), joins).changes, token=self._ports.device)

    def compare(self, staged: Staged[JoinChange]) -> tuple[JoinChange, ...]:
        """What committing would change now."""
        with self._client.turn() as turn:
            return difference(self._held(turn), staged.changes)

    def commit(self, staged: Staged[JoinChange], *, revert_after_s: float | None = None) -> Receipt[JoinChange]:
        """Take away what is in the way, make what is missing, and read back; nothing is sent where nothing differs.

        Raises:
            UnsupportedError: a revert timer was asked for; the switch has none.
            DeviceRefusedError: the change was staged for another device, or an egress port is somebody else's by now,
                or the switch said no; nothing changed.
            InconsistentError: the switch took some of it, or shows something else.
            DeviceUnreachableError: nothing was written.
            OutcomeUnknownError: it was written, and what came of it could not be read.
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
        """Write the joins from before the change; what others have joined since is not taken from them."""
        self._write({change.ingress: change.before for change in receipt.staged.changes})

    def read_circuits(self) -> dict[int, int]:
        """Every join."""
        with self._client.turn() as turn:
            return self._held(turn)

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """What the power monitor of each port shows, in dBm.

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
                        f"{self._ports.device} gives no powers: this model has no power monitor at some of these ports"
                    )
                powers |= zip(some, found, strict=True)
        return powers

    def read_ports(self) -> dict[int, PortReading]:
        """Every port: whether light may pass, and whether it has failed.

        Raises:
            UnsupportedError: this model's ports cannot be asked.
        """
        every = range(self._ports.port_count)
        with self._client.turn() as turn:
            states = self._states(turn, every)
        return {
            port: PortReading(port, enabled=None if state == "F" else state == "E", failed=state == "F")
            for port, state in zip(every, states, strict=True)
        }

    def set_port(self, port: int, enabled: bool) -> None:
        """Let light through a port or not, and read it back.

        Raises:
            UnsupportedError: this model's ports cannot be switched; nothing was written.
            DeviceRefusedError: there is no such port, or the switch said no; nothing changed.
            InconsistentError: the port did not follow.
            OutcomeUnknownError: it was written, and what came of it could not be read.
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
        raise InconsistentError(f"{self._ports.device}: port {port} was switched and did not follow: it is {after[0]}")

    def _write(self, wanted: Mapping[int, int | None]) -> str:
        with self._client.turn() as turn:
            before = self._held(turn)
            planned = self._plan(before, wanted)
            # What is taken away comes first: the switch makes no join of a port that has one.
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
                f"{self._ports.device} joins its port {strange}; the inventory states {self._ports.port_count} ports"
            )
        return held

    def _states(self, turn: Turn, ports: Iterable[int]) -> list[str]:
        states: list[str] = []
        for some in _batches(tuple(ports), _MOST_STATES):
            found = turn.ask_if_known(f":oxc:swit:port:stat? {words.port_list(some)}", words.read_states(len(some)))
            if found is None:
                raise UnsupportedError(f"{self._ports.device}: this model's ports can be neither asked nor switched")
            states += found
        return states


def _batches(ports: tuple[int, ...], most: int) -> Iterable[tuple[int, ...]]:
    return (ports[start : start + most] for start in range(0, len(ports), most))
