"""The twin of an optical circuit switch's SCPI port: silent writes, an error queue, several commands in a line.

It serves one :class:`SwitchState`, in a simulator or alone. Where devices may differ, it has the stricter behaviour: a
join of a port that already has one is refused (a settings conflict).
"""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.sim.service import SimulatedService
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.switch import SwitchState

# Error numbers and texts of the SCPI standard.
SYNTAX, NO_PARAMETER, NO_HEADER, CONFLICT, RANGE, OVERFLOW = -102, -109, -113, -221, -222, -350
TEXTS = {
    SYNTAX: "Syntax error",
    NO_PARAMETER: "Missing parameter",
    NO_HEADER: "Undefined header",
    CONFLICT: "Settings conflict",
    RANGE: "Data out of range",
    OVERFLOW: "Queue overflow",
}

_HEADER = re.compile(r"(\*[A-Za-z]+\??|:?[A-Za-z0-9]+(?::[A-Za-z0-9]+)*\??)(?:\s+(.*))?")
_LIST = re.compile(r"\(@\s*((?:[0-9]{1,6}(?:\s*,\s*[0-9]{1,6})*)?)\s*\)")
_SHORT = {
    "SWITCH": "SWIT",
    "CONNECT": "CONN",
    "DISCONNECT": "DISC",
    "STATE": "STAT",
    "DISABLE": "DIS",
    "ENABLE": "ENAB",
    "PMONITOR": "PMON",
    "POWER": "POW",
    "SYSTEM": "SYST",
    "ERROR": "ERR",
}


class ScpiError(Exception):
    """An entry for the error queue."""

    def __init__(self, code: int, why: str = "") -> None:
        text = TEXTS[code]
        super().__init__(f'{code},"{text}; {why}"' if why else f'{code},"{text}"')


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a line: its full header in short upper-case words (``:OXC:SWIT:CONN:ADD``), and its argument."""

    header: str
    argument: str


def commands(line: str) -> Iterator[Command | ScpiError]:
    """The commands of a line. A header without a leading colon continues the path of the header before it."""
    path = ""
    for part in (part.strip() for part in line.split(";")):
        if not part:
            continue
        match = _HEADER.fullmatch(part)
        if match is None:
            yield ScpiError(SYNTAX)
            continue
        header = match[1].upper()
        # A common command such as *CLS leaves the path as it is.
        if not header.startswith("*"):
            whole = header if header.startswith(":") else f"{path}:{header}"
            words = [_SHORT.get(word.rstrip("?"), word.rstrip("?")) for word in whole.split(":")[1:]]
            path = "".join(f":{word}" for word in words[:-1])
            header = f"{path}:{words[-1]}{'?' if header.endswith('?') else ''}"
        yield Command(header, (match[2] or "").strip())


def lists(argument: str, count: int) -> list[list[int]]:
    """Parse ``count`` lists of ports, such as ``(@1,2),(@17,18)``; the returned ports count from 0.

    Raises:
        ScpiError: the text has another form.
    """
    if not argument:
        raise ScpiError(NO_PARAMETER)
    found = list(_LIST.finditer(argument))
    between = _LIST.sub("", argument).replace(" ", "")
    if len(found) != count or between != "," * (count - 1):
        raise ScpiError(SYNTAX)
    return [[int(port) - 1 for port in match[1].split(",")] if match[1] else [] for match in found]


def written(ports: list[int]) -> str:
    """Ports as a list in SCPI, counted from 1."""
    return f"(@{','.join(str(port + 1) for port in ports)})"


NO_LIGHT_DBM = -100.0
"""The power that a monitor shows without light, because neither protocol has a word for no light."""

_MOST_CONNECTIONS = 16
_MOST_BYTES = 64 * 1024
_MOST_ERRORS = 32
_MOST_POWERS = 256
_PATIENCE_S = 600.0

Powers = Callable[[tuple[int, ...]], Mapping[int, float]]
Part = tuple[str, int, int]
"""A part of a change: ``add`` or ``sub`` with two ports; ``on`` or ``off`` with one port, given twice."""


class ScpiSwitch:
    """Serves one switch on loopback.

    ``held`` gives the state for the duration of a query (outside a simulator: ``state.held``), and ``changed`` for a
    change, which is made when it returns. A line is answered when its changes are made. ``powers`` reads the
    light in dBm; it is ``None`` for a model without monitors. ``conduct`` gives the present misbehaviour. ``wait``
    waits for some seconds, or until the simulator ends.
    """

    def __init__(
        self,
        held: Callable[[], AbstractContextManager[SwitchState]],
        *,
        changed: Callable[[], AbstractContextManager[SwitchState]] | None = None,
        powers: Powers | None = None,
        name: str = "switch",
        conduct: Callable[[], Misbehaviour] = Misbehaviour,
        wait: Callable[[float], object] = lambda _: None,
    ) -> None:
        self._held = held
        self._changed = changed or held
        self._name = name
        self._conduct = conduct
        self._wait = wait
        self._lock = threading.Lock()
        self._errors: list[str] = []
        self.lines: list[str] = []
        """The last received lines, for checking what a client really sends."""
        self.service = SimulatedService(f"switch {name}", self._serve, most=_MOST_CONNECTIONS)
        self._queries: dict[str, Callable[[SwitchState, str], str]] = {
            "*IDN?": lambda state, _: f"Polatis,I-SIM-{_sides(state)[0]}x{_sides(state)[1]}-{self._name},000000,0.0",
            "*OPC?": lambda *_: "1",
            ":OXC:SWIT:SIZE?": lambda state, _: "{},{}".format(*_sides(state)),
            ":OXC:SWIT:CONN:STAT?": lambda state, _: _joins(state),
            ":OXC:SWIT:CONN:PORT?": _partner,
            ":OXC:SWIT:PORT:STAT?": _states,
            ":SYST:ERR:ALL?": lambda *_: self._taken_errors(len(self._errors)),
            ":SYST:ERR?": lambda *_: self._taken_errors(1),
        }
        if powers is not None:
            self._queries[":PMON:POW?"] = partial(_monitored, powers)

    def close(self) -> None:
        """Close the port and end its connections."""
        self.service.close()

    def _serve(self, connection: socket.socket) -> None:
        threading.Thread(target=self._talk, args=(connection,), name=f"switch {self._name}", daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):
                connection.settimeout(_PATIENCE_S)
                for line in _lines(connection):
                    conduct = self._conduct()
                    if conduct.down:
                        return
                    answers = self._obey(line, conduct)
                    if not answers:
                        continue
                    self._wait(conduct.delay_s)
                    connection.sendall(conduct.shortened(f"{';'.join(answers)}\n".encode()))
                    if conduct.cuts:
                        return
        finally:
            self.service.done_with(connection)

    def _obey(self, line: str, conduct: Misbehaviour) -> list[str]:
        """Perform a line, and return the answers to its queries."""
        answers: list[str] = []
        with self._lock, contextlib.suppress(DeviceUnreachableError):
            self.lines = [*self.lines[-99:], line]
            parts: list[Part] = []
            for each in commands(line):
                try:
                    if isinstance(each, ScpiError):
                        raise each
                    if each.header.endswith("?"):
                        # Commands that stand before a query in a line are done before it is answered.
                        self._act(parts, conduct)
                        with self._held() as state:
                            answers.append(self._answer(state, each))
                    elif each.header == "*CLS":
                        self._errors.clear()
                    else:
                        with self._held() as state:
                            parts += _parts(state, each)
                except ScpiError as error:
                    self._complain(error)
            self._act(parts, conduct)
        return answers

    def _answer(self, state: SwitchState, command: Command) -> str:
        query = self._queries.get(command.header)
        if query is None:
            raise ScpiError(NO_HEADER)
        return query(state, command.argument)

    def _act(self, parts: list[Part], conduct: Misbehaviour) -> None:
        """Make the parts of this line's change that were collected so far, one by one: a batch may be partly done."""
        if not parts:
            return
        with self._changed() as state:
            for part in conduct.taken(parts):
                try:
                    _make(state, part)
                except DeviceRefusedError as error:
                    self._complain(ScpiError(CONFLICT, error.message))
        if conduct.says_no:
            self._complain(ScpiError(CONFLICT, conduct.complaint))
        parts.clear()

    def _complain(self, error: ScpiError) -> None:
        if len(self._errors) < _MOST_ERRORS:
            self._errors.append(str(error))
        else:
            # In SCPI the last entry of a full queue gives way to this one.
            self._errors[-1] = str(ScpiError(OVERFLOW))

    def _taken_errors(self, count: int) -> str:
        taken, self._errors = self._errors[:count], self._errors[count:]
        return ",".join(taken) or '0,"No error"'


def _make(state: SwitchState, part: Part) -> None:
    verb, port, other = part
    if verb == "sub":
        state.part([(port, other)])
    elif verb == "add":
        state.join([(port, other)])
    else:
        state.switch([port], on=verb == "on")


def _lines(connection: socket.socket) -> Iterator[str]:
    """The received lines, until the other side disconnects or sends a line that is too long."""
    received = b""
    while len(received) <= _MOST_BYTES and (piece := connection.recv(4096)):
        *lines, received = (received + piece).split(b"\n")
        yield from (line.decode(errors="replace").strip() for line in lines)


def _parts(state: SwitchState, command: Command) -> list[Part]:
    if command.header in {":OXC:SWIT:PORT:ENAB", ":OXC:SWIT:PORT:DIS"}:
        (ports,) = lists(command.argument, 1)
        _require(state, ports)
        return [("on" if command.header.endswith("ENAB") else "off", port, port) for port in ports]
    if command.header == ":OXC:SWIT:DISC:ALL":
        return [("sub", *pair) for pair in state.joins.items()]
    if not command.header.startswith(":OXC:SWIT:CONN:"):
        raise ScpiError(NO_HEADER)
    verb = command.header.rpartition(":")[2]
    if verb not in {"ADD", "SUB", "ONLY"}:
        raise ScpiError(NO_HEADER)
    ingress, egress = lists(command.argument, 2)
    _require(state, [*ingress, *egress])
    if len(ingress) != len(egress):
        raise ScpiError(SYNTAX, "the lists are of different lengths")
    before: list[Part] = [("sub", *pair) for pair in state.joins.items()] if verb == "ONLY" else []
    pairs = zip(ingress, egress, strict=True)
    return before + [("sub" if verb == "SUB" else "add", *pair) for pair in pairs]


def _require(state: SwitchState, ports: list[int]) -> None:
    if not all(0 <= port < state.port_count for port in ports):
        raise ScpiError(RANGE)


def _sides(state: SwitchState) -> tuple[int, int]:
    return state.input_count, state.port_count - state.input_count


def _monitored(powers: Powers, state: SwitchState, argument: str) -> str:
    (ports,) = lists(argument, 1)
    _require(state, ports)
    if not 0 < len(ports) <= _MOST_POWERS:
        raise ScpiError(RANGE)
    found = powers(tuple(ports))
    return f"({','.join(f'{max(found[port], NO_LIGHT_DBM):.2f}' for port in ports)})"


def _joins(state: SwitchState) -> str:
    ingress = sorted(state.joins)
    return f"{written(ingress)},{written([state.joins[port] for port in ingress])}"


def _partner(state: SwitchState, argument: str) -> str:
    if not argument.isdecimal():
        raise ScpiError(SYNTAX if argument else NO_PARAMETER)
    _require(state, [int(argument) - 1])
    partner = state.partner(int(argument) - 1)
    return '""' if partner is None else f'"{partner + 1}"'


def _states(state: SwitchState, argument: str) -> str:
    ports = lists(argument, 1)[0] if argument else list(range(state.port_count))
    _require(state, ports)
    letters = ("F" if port in state.failed else "D" if port in state.disabled else "E" for port in ports)
    return f"({','.join(letters)})"
