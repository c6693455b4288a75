"""Drivers of the made-up device that keep the contract: each wrong driver differs from one of these in one thing."""

import time
import uuid
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote, unquote

from lumctl.devices.base import BaseMesh, BasePower, BaseSwitch, BaseTransponder
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.joins import difference, judge, plan, ports_of
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import (
    Alarm,
    Capability,
    JoinChange,
    Neighbour,
    OpticsReading,
    PortReading,
    PowerReading,
    Progress,
    PucChange,
    PucState,
    Receipt,
    Staged,
)
from wrong_drivers.device import in_memory

MOST_BYTES = 65536
PROVEN = "made up, for tests"


class UnclearError(Exception):
    """A line was sent, and its answer did not come."""


def ask(context: DriverContext, line: str) -> str:
    """One line and its answer; ``UnclearError`` where it may have arrived."""
    held = in_memory(context.address)
    if held is not None:
        return held.answer(line)
    ends = time.monotonic() + context.timeout_s
    try:
        stream = context.way.tcp(7000, context.timeout_s)
    except OSError as error:
        raise DeviceUnreachableError(f"{context.device} at {context.address}: {error}") from error
    try:
        stream.settimeout(left(ends))
        stream.sendall(f"{line}\n".encode())
        answer, piece = b"", b" "
        while piece and not answer.endswith(b"\n") and len(answer) < MOST_BYTES:
            stream.settimeout(left(ends))
            piece = stream.recv(4096)
            answer += piece
        if not answer.endswith(b"\n"):
            raise UnclearError("the answer is incomplete")
        return answer.decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnclearError(str(error)) from error
    finally:
        stream.close()


def left(ends: float) -> float:
    """Seconds that are left of a call."""
    remaining = ends - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("no answer in time")
    return remaining


def read(context: DriverContext, line: str, word: str) -> list[str]:
    """The words of an answer to a question, which must begin with a word."""
    try:
        first, *rest = ask(context, line).split() or [""]
    except UnclearError as error:
        raise DeviceUnreachableError(f"{context.device} at {context.address}: {error}") from error
    if first != word:
        raise DeviceUnreachableError(f"{context.device}: it does not report its {word}")
    return rest


def write(context: DriverContext, line: str) -> None:
    """Tell the device to do something."""
    try:
        answer = ask(context, line)
    except UnclearError as error:
        raise OutcomeUnknownError(f"{context.device}: {error}; it may or may not have taken effect") from error
    if answer.startswith("no "):
        raise DeviceRefusedError(f"{context.device}: {answer.removeprefix('no ')}")
    if answer != "ok":
        raise OutcomeUnknownError(f"{context.device}: an answer that means nothing")


def numbers(context: DriverContext, line: str, word: str, count: int) -> list[float]:
    """An answer of so many numbers."""
    words = read(context, line, word)
    try:
        found = [float(each) for each in words]
    except ValueError:
        found = []
    if len(found) != count:
        raise DeviceUnreachableError(f"{context.device}: its {word} is no {count} numbers")
    return found


class _States:
    """Each driver states its version by itself, as authors must; none inherits it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.api_version = 1


class _Light(_States):
    """What the mesh and the switch have in common."""

    context: DriverContext

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        if any(not 0 <= port < self.context.port_count for port in ports):
            raise DeviceRefusedError(f"{self.context.device} has no such port")
        line = " ".join(["powers", *map(str, ports)])
        return dict(zip(ports, numbers(self.context, line, "powers", len(ports)), strict=True))

    def read_temperature(self) -> float:
        return numbers(self.context, "temperature", "temperature", 1)[0]

    def read_alarms(self) -> tuple[Alarm, ...]:
        words = read(self.context, "alarms", "alarms")
        try:
            told = [word.split("|") for word in words]
            return tuple(Alarm(unquote(text), severity, source, float(since)) for severity, source, since, text in told)
        except ValueError as error:
            raise DeviceUnreachableError(f"{self.context.device}: these are no alarms") from error


class RightMesh(_Light, BaseMesh):
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.READ_STATES,
            Capability.ATOMIC,
            Capability.READ_POWERS,
            Capability.READ_TEMPERATURE,
            Capability.READ_ALARMS,
        }
    )
    proven: ClassVar[str] = PROVEN
    api_version: ClassVar[int] = 1

    def identify(self) -> str:
        size = read(self.context, "size", "size")
        if size[:1] != [str(self.context.puc_count)]:
            raise InconsistentError(f"{self.context.device} is of another size")
        return f"made-up mesh of {size[0]} PUCs"

    def read_states(self) -> dict[int, PucState]:
        words = read(self.context, "states", "states")
        if len(words) != 1 or len(words[0]) != self.context.puc_count or set(words[0]) - {"=", "x"}:
            raise DeviceUnreachableError(f"{self.context.device}: these are no states")
        return {puc: PucState(mark) for puc, mark in enumerate(words[0])}

    def stage(self, changes: Mapping[int, PucState]) -> Staged[PucChange]:
        held = self.read_states()
        if changes.keys() - held.keys():
            raise DeviceRefusedError(f"{self.context.device} has no such PUC")
        return Staged(tuple(PucChange(puc, held[puc], after) for puc, after in sorted(changes.items())), "")

    def compare(self, staged: Staged[PucChange]) -> tuple[PucChange, ...]:
        held = self.read_states()
        return tuple(PucChange(c.puc, held[c.puc], c.after) for c in staged.changes if held[c.puc] is not c.after)

    def commit(self, staged: Staged[PucChange], *, revert_after_s: float | None = None) -> Receipt[PucChange]:
        if revert_after_s is not None and Capability.CONFIRM_TIMER not in self.capabilities:
            raise UnsupportedError(f"{self.context.device} has no revert timer")
        self.send({change.puc: change.after for change in staged.changes}, revert_after_s)
        return Receipt(staged, revert_armed=revert_after_s is not None)

    def confirm(self, receipt: Receipt[PucChange]) -> None:
        if receipt.revert_armed:
            write(self.context, "confirm")

    def roll_back(self, receipt: Receipt[PucChange]) -> None:
        known = {c.puc: c.before for c in receipt.staged.changes if c.before is not None}
        if len(known) < len(receipt.staged.changes):
            raise DeviceRefusedError(f"{self.context.device}: what was before is unknown")
        self.send(known)
        if receipt.revert_armed:
            self.confirm_quietly()

    def confirm_quietly(self) -> None:
        try:
            write(self.context, "confirm")
        except DeviceRefusedError:
            return

    def send(self, states: Mapping[int, PucState], timer_s: float | None = None) -> None:
        cells = [f"{puc}={state}" for puc, state in sorted(states.items())]
        timer = [] if timer_s is None else [f"timer={timer_s}"]
        if cells:
            write(self.context, " ".join(["set", *timer, *cells]))


class TimedMesh(RightMesh):
    """One with a revert timer."""

    capabilities: ClassVar[frozenset[Capability]] = RightMesh.capabilities | {Capability.CONFIRM_TIMER}


class LateMesh(RightMesh):
    """One whose device may complete a change after its answer."""

    capabilities: ClassVar[frozenset[Capability]] = RightMesh.capabilities | {Capability.PROGRESS}

    def read_progress(self) -> Progress | None:
        words = read(self.context, "progress", "progress")
        if words not in (["idle"], ["busy"]):
            raise DeviceUnreachableError(f"{self.context.device}: this is no progress")
        return Progress() if words == ["busy"] else None


class RightSwitch(_Light, BaseSwitch):
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.ATOMIC,
            Capability.READ_POWERS,
            Capability.READ_TEMPERATURE,
            Capability.READ_ALARMS,
            Capability.READ_PORTS,
        }
    )
    proven: ClassVar[str] = PROVEN
    api_version: ClassVar[int] = 1

    def identify(self) -> str:
        size = read(self.context, "size", "size")
        if size[1:] != [str(self.context.port_count), str(self.context.input_count)]:
            raise InconsistentError(f"{self.context.device} is of another size")
        return f"made-up switch of {size[1]} ports"

    def read_circuits(self) -> dict[int, int]:
        joins = {}
        for word in read(self.context, "joins", "joins"):
            ingress, mark, egress = word.partition(">")
            if not (mark and ingress.isdecimal() and egress.isdecimal()):
                raise DeviceUnreachableError(f"{self.context.device}: these are no joins")
            joins[int(ingress)] = int(egress)
        return joins

    def read_ports(self) -> dict[int, PortReading]:
        read(self.context, "size", "size")
        return {port: PortReading(port) for port in range(self.context.port_count)}

    def stage(self, joins: Mapping[int, int | None]) -> Staged[JoinChange]:
        return Staged(plan(ports_of(self.context), self.read_circuits(), joins).changes, uuid.uuid4().hex)

    def compare(self, staged: Staged[JoinChange]) -> tuple[JoinChange, ...]:
        return difference(self.read_circuits(), staged.changes)

    def commit(self, staged: Staged[JoinChange], *, revert_after_s: float | None = None) -> Receipt[JoinChange]:
        if revert_after_s is not None:
            raise UnsupportedError(f"{self.context.device} has no revert timer")
        self.send({change.ingress: change.after for change in staged.changes})
        return Receipt(staged, revert_armed=False)

    def confirm(self, receipt: Receipt[JoinChange]) -> None:
        del receipt

    def roll_back(self, receipt: Receipt[JoinChange]) -> None:
        self.send({change.ingress: change.before for change in receipt.staged.changes})

    def send(self, wanted: Mapping[int, int | None]) -> None:
        """Write joins, and hold what the switch shows then against them."""
        ports, before = ports_of(self.context), self.read_circuits()
        changes = plan(ports, before, wanted).changes
        said = ""
        if not changes:
            return
        try:
            write(self.context, " ".join(["join", *(self.word(a, b) for a, b in sorted(wanted.items()))]))
        except DeviceRefusedError as refusal:
            said = refusal.message
        try:
            after = self.read_circuits()
        except DeviceUnreachableError as error:
            raise OutcomeUnknownError(f"{error.message}; a write was sent to it just before") from error
        judge(ports, changes, before, after, said)

    def word(self, ingress: int, egress: int | None) -> str:
        return f"{ingress}>{'-' if egress is None else egress}"


class PortSwitch(RightSwitch):
    """One whose ports can be switched and labelled."""

    capabilities: ClassVar[frozenset[Capability]] = RightSwitch.capabilities | {
        Capability.SET_PORTS,
        Capability.SET_LABELS,
    }

    def read_ports(self) -> dict[int, PortReading]:
        words = read(self.context, "ports", "ports")
        if len(words) != self.context.port_count or any(word[:1] not in {"0", "1"} for word in words):
            raise DeviceUnreachableError(f"{self.context.device}: these are no ports")
        return {port: PortReading(port, word[0] == "1", label=unquote(word[1:])) for port, word in enumerate(words)}

    def set_port(self, port: int, enabled: bool) -> None:
        ports_of(self.context).require((port,))
        write(self.context, f"port {port} {'on' if enabled else 'off'}")

    def set_label(self, port: int, label: str) -> None:
        ports_of(self.context).require((port,))
        write(self.context, f"label {port} {quote(label)}")


class RightTransponder(_States, BaseTransponder):
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.READ_OPTICS,
            Capability.SET_TRANSMIT,
            Capability.SET_CHANNEL,
            Capability.SET_OUTPUT_POWER,
            Capability.READ_NEIGHBOURS,
        }
    )
    proven: ClassVar[str] = PROVEN
    api_version: ClassVar[int] = 1

    def read_optics(self) -> OpticsReading:
        return self.of("optics 1")

    def of(self, line: str) -> OpticsReading:
        """One lane of the module."""
        taken_at = self.context.now()
        laser, rx, tx, temperature, channel, target = numbers(self.context, line, "optics", 6)
        return OpticsReading(
            taken_at,
            transmitting=bool(laser),
            rx_power_dbm=rx,
            tx_power_dbm=tx,
            temperature_c=temperature,
            frequency_mhz=int(channel),
            target_power_dbm=target,
            thresholds={"rx_power_low_alarm": -14.0, "rx_power_high_alarm": 3.4},
        )

    def set_transmit(self, enabled: bool) -> None:
        self.set(f"laser {'on' if enabled else 'off'}", lambda: self.transmitting() is enabled)

    def transmitting(self) -> bool:
        return bool(self.read_optics().transmitting)

    def set_channel(self, frequency_mhz: int) -> None:
        self.set(f"channel {frequency_mhz}", lambda: self.read_optics().frequency_mhz == frequency_mhz)

    def set_output_power(self, dbm: float) -> None:
        self.set(f"power {dbm}", lambda: self.read_optics().target_power_dbm == dbm)

    def set(self, line: str, shown) -> None:
        write(self.context, line)
        try:
            followed = shown()
        except DeviceUnreachableError as error:
            raise OutcomeUnknownError(f"{error.message}; it was set just before") from error
        if not followed:
            raise InconsistentError(f"{self.context.device} took {line!r} and does not show it")

    def announce(self, mark: str) -> None:
        write(self.context, f"announce {mark}")

    def neighbours(self) -> tuple[Neighbour, ...]:
        words = read(self.context, "lldp", "lldp")
        try:
            system, port, age_s, mark = words
            return (Neighbour(system, port, float(age_s), mark),)
        except ValueError as error:
            raise DeviceUnreachableError(f"{self.context.device}: these are no neighbours") from error


class RightPower(_States, BasePower):
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.SET_POWER, Capability.RESET})
    proven: ClassVar[str] = PROVEN
    api_version: ClassVar[int] = 1
    outlet = "1"

    def identify(self) -> str:
        read(self.context, "size", "size")
        return "made-up machine"

    def read_power(self) -> PowerReading:
        taken_at = self.context.now()
        words = read(self.context, f"machine {self.outlet}", "machine")
        try:
            state, watts = words
            return PowerReading(taken_at, {"on": True, "off": False}[state], "OK", float(watts), "made up")
        except (ValueError, KeyError) as error:
            raise DeviceUnreachableError(f"{self.context.device}: this is not a state of a machine") from error

    def set_power(self, on: bool, *, force: bool = False) -> None:
        del force
        if self.read_power().on is not on:
            write(self.context, f"switch {'on' if on else 'off'} {self.outlet}")

    def reset(self) -> None:
        write(self.context, "reset")
