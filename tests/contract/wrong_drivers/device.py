"""A made-up device for drivers that are wrong: a model of each kind behind one line protocol, served on loopback.

A request is one line and its answer is one line, over a connection of its own. A device whose address ends in
``.memory`` is not served: the process that asks for it holds it.
"""

import math
import socketserver
import threading
import time
from contextlib import contextmanager
from urllib.parse import quote, unquote

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.joins import Ports, plan
from lumctl.devices.testing.bench import TEMPERATURE_C, BenchMesh, BenchSwitch
from lumctl.devices.types import Alarm, OpticsReading, PowerReading, PucState

PUCS, PORTS, INPUTS = 12, 12, 6
DARK, LIT = 3, 2
LIT_DBM = -7.25
WATTS = 312.0
RX_DBM, MODULE_C = {"1": -3.4, "2": -9.9}, {"1": 41.5, "2": 52.0}
"""What the two lanes of the module measure."""


class Device:
    """What the device holds: every kind at once. ``stops_midway`` makes it take half of a change, and say no.

    With ``light`` it is the twin of that mesh or switch, which holds the states or joins then.
    """

    def __init__(self, light=None) -> None:
        self.light = light
        self.pucs = getattr(light, "puc_count", PUCS)
        self.ports, self.inputs = getattr(light, "port_count", PORTS), getattr(light, "input_count", INPUTS)
        self.panel = light if hasattr(light, "read_ports") else BenchSwitch("panel", PORTS, INPUTS)
        self.states = ["="] * self.pucs
        self.joins: dict[int, int] = {}
        self.laser, self.target_dbm = True, -2.0
        self.channels_mhz = {"1": 193_100_000, "2": 193_700_000}
        self.mark, self._announced = "0a", time.monotonic()
        self.outlets = {"1": True, "2": True}
        self.orders = 0
        self.stops_midway = False
        self._lock = threading.Lock()
        self._timer: tuple[float, list[str]] | None = None

    def answer(self, line: str) -> str:
        """Do what a line says."""
        word, _, rest = line.strip().partition(" ")
        handler = getattr(self, f"_{word.replace('-', '_')}", None)
        with self._lock:
            self._go_back_in_time()
            return handler(rest.split()) if handler else "no such request"

    def held(self) -> list[str]:
        """The states of the PUCs now, the revert timer's work included."""
        with self._lock:
            self._go_back_in_time()
            return self._now()

    def _now(self) -> list[str]:
        if self.light is None:
            return list(self.states)
        return [str(state) for _, state in sorted(self.light.read_states().items())]

    def _go_back_in_time(self) -> None:
        if self._timer is not None and time.monotonic() >= self._timer[0]:
            if self.light is not None:
                self.light.write(dict(enumerate(map(PucState, self._timer[1]))))
            self.states, self._timer = self._timer[1], None

    def _size(self, _words: list[str]) -> str:
        return f"size {self.pucs} {self.ports} {self.inputs}"

    def _states(self, _words: list[str]) -> str:
        return f"states {''.join(self._now())}"

    def _set(self, words: list[str]) -> str:
        timer = None
        if words and words[0].startswith("timer="):
            timer = float(words.pop(0).removeprefix("timer="))
        cells = [word.split("=", 1) for word in words]
        if not all(puc.isdecimal() and int(puc) < self.pucs and mark in {"=", "x"} for puc, mark in cells):
            return "no such PUC"
        if timer is not None:
            self._timer = (time.monotonic() + timer, self._now())
        if self.light is not None:
            try:
                self.light.write({int(puc): PucState(mark) for puc, mark in cells})
            except DeviceRefusedError as error:
                return f"no {error.message}"
            return "ok"
        taken = cells[: len(cells) // 2] if self.stops_midway else cells
        for puc, mark in taken:
            self.states[int(puc)] = mark
        return "no stopped midway" if self.stops_midway else "ok"

    def _confirm(self, _words: list[str]) -> str:
        armed, self._timer = self._timer, None
        return "ok" if armed else "no timer is armed"

    def _joins(self, _words: list[str]) -> str:
        joins = self.joins if self.light is None else self.light.read_circuits()
        return " ".join(["joins", *(f"{a}>{b}" for a, b in sorted(joins.items()))])

    def _join(self, words: list[str]) -> str:
        pairs = [word.split(">") for word in words]
        wanted = {int(a): None if b == "-" else int(b) for a, b in pairs}
        if self.light is not None:
            try:
                self.light.write(wanted)
            except DeviceRefusedError as error:
                return f"no {error.message}"
            return "ok"
        if self.stops_midway:
            wanted = dict(list(wanted.items())[: len(wanted) // 2])
        try:
            todo = plan(Ports("device", PORTS, INPUTS), self.joins, wanted)
        except DeviceRefusedError as error:
            return f"no {error.message}"
        self.joins = {a: b for a, b in self.joins.items() if (a, b) not in todo.remove} | dict(todo.add)
        return "no stopped midway" if self.stops_midway else "ok"

    def _powers(self, words: list[str]) -> str:
        ports = tuple(map(int, words))
        shown = {port: -math.inf if port == DARK else LIT_DBM for port in ports}
        powers = shown if self.light is None else self.light.read_powers(ports)
        return " ".join(["powers", *(str(powers[port]) for port in ports)])

    def _temperature(self, _words: list[str]) -> str:
        return f"temperature {TEMPERATURE_C if self.light is None else self.light.read_temperature()}"

    def _alarms(self, _words: list[str]) -> str:
        fan = Alarm("fan 2 is slow", "WARNING", "fan/2", since=1.0)
        raised = (fan,) if self.light is None else self.light.read_alarms()
        return " ".join(["alarms", *(f"{a.severity}|{a.source}|{a.since}|{quote(a.text)}" for a in raised)])

    def _progress(self, _words: list[str]) -> str:
        busy = self.light is not None and self.light.read_progress() is not None
        return f"progress {'busy' if busy else 'idle'}"

    def _ports(self, _words: list[str]) -> str:
        ports = self.panel.read_ports().values()
        return " ".join(["ports", *(f"{int(port.enabled)}{quote(port.label)}" for port in ports)])

    def _port(self, words: list[str]) -> str:
        self.panel.set_port(int(words[0]), words[1] == "on")
        return "ok"

    def _label(self, words: list[str]) -> str:
        self.panel.set_label(int(words[0]), unquote(words[1]) if words[1:] else "")
        return "ok"

    def _optics(self, words: list[str]) -> str:
        lane = words[0] if words else "1"
        tx = self.target_dbm if self.laser else -math.inf
        shown = (int(self.laser), RX_DBM[lane], tx, MODULE_C[lane], self.channels_mhz[lane], self.target_dbm)
        return " ".join(["optics", *map(str, shown)])

    def _laser(self, words: list[str]) -> str:
        self.laser = words == ["on"]
        self.orders += 1
        return "ok"

    def _channel(self, words: list[str]) -> str:
        self.channels_mhz[words[1] if words[1:] else "1"] = int(words[0])
        return "ok"

    def _power(self, words: list[str]) -> str:
        self.target_dbm = float(words[0])
        return "ok"

    def _announce(self, words: list[str]) -> str:
        self.mark = words[0]
        return "ok"

    def _lldp(self, _words: list[str]) -> str:
        return f"lldp h1 eth2 {time.monotonic() - self._announced:.3f} {self.mark}"

    def _machine(self, words: list[str]) -> str:
        on = self.outlets[words[0] if words else "1"]
        return f"machine {'on' if on else 'off'} {WATTS if on else 11.0}"

    def _switch(self, words: list[str]) -> str:
        self.outlets[words[1] if words[1:] else "1"] = words[0] == "on"
        self.orders += 1
        return "ok"

    def _reset(self, _words: list[str]) -> str:
        self.orders += 1
        return "ok" if self.outlets["1"] else "no it is off"


_IN_MEMORY: dict[str, Device] = {}


def in_memory(address: str) -> Device | None:
    """The device that this process holds under an address, if the address is such."""
    host = address.rpartition(":")[0] or address
    return _IN_MEMORY.setdefault(address, Device()) if host.endswith(".memory") else None


class Twin(socketserver.ThreadingTCPServer):
    """Serves one device on loopback; use it as a context manager. ``address`` is where, ``device`` what it holds."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, light=None) -> None:
        super().__init__(("127.0.0.1", 0), _Line)
        self.device = Device(light)
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is no error."""

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self._thread.join()
        super().__exit__(*error)


class _Line(socketserver.StreamRequestHandler):
    server: Twin

    def handle(self) -> None:
        line = self.rfile.readline(65536)
        if line.endswith(b"\n"):
            self.wfile.write(f"{self.server.device.answer(line.decode())}\n".encode())


class _LightTwin(Twin):
    """The device as the twin of a mesh or a switch on a bench, which knows the truth."""

    def __getattr__(self, name: str) -> object:
        if name in {"reading", "alarms", "completes_late", "ports"}:
            return getattr(self.device.light, name)
        raise AttributeError(name)


class MeshTwin(_LightTwin):
    """The device as the twin of a mesh."""

    puc_count, port_count = PUCS, PORTS

    def __init__(self) -> None:
        super().__init__(BenchMesh("d1", PUCS))

    def truth(self) -> dict[int, PucState]:
        """The states that it really holds."""
        return dict(enumerate(map(PucState, self.device.held())))


class SwitchTwin(_LightTwin):
    """The device as the twin of a switch."""

    port_count, input_count = PORTS, INPUTS
    dark, lit = DARK, LIT

    def __init__(self) -> None:
        super().__init__(BenchSwitch("d1", PORTS, INPUTS))

    def truth(self) -> dict[int, int]:
        """The joins that it really holds."""
        return self.device.light.truth()


class TransponderTwin(Twin):
    """The device as the twin of a transponder."""

    heard = ("h1", "eth2")

    def truth(self) -> bool:
        """Whether the laser is on."""
        return self.device.laser

    def told(self) -> tuple[int, float]:
        """What the transmitter was told."""
        return self.device.channels_mhz["1"], self.device.target_dbm

    def reading(self) -> OpticsReading:
        """What the module measures."""
        tx = self.device.target_dbm if self.device.laser else -math.inf
        return OpticsReading(0.0, rx_power_dbm=RX_DBM["1"], tx_power_dbm=tx, temperature_c=MODULE_C["1"])


class PowerTwin(Twin):
    """The device as the twin of a management controller."""

    follows_within_s = 1.0

    def truth(self) -> bool:
        """Whether the machine is on."""
        return self.device.outlets["1"]

    def orders(self) -> int:
        """How many orders it was given."""
        return self.device.orders

    def others(self) -> bool:
        """Whether the machine at the next outlet is on."""
        return self.device.outlets["2"]

    def reading(self) -> PowerReading:
        """What the machine draws."""
        return PowerReading(0.0, None, watts=WATTS if self.truth() else 11.0)


@contextmanager
def twin(device, listen):
    """The device as the twin of a mesh or a switch: see lumctl.devices.twins."""
    assert listen == "127.0.0.1"
    with Twin(device) as served:
        yield served.server_address[1]
