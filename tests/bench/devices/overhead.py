"""What drivers add to a device's own time: one swap's writes through each driver, on the simulator's servers.

    python tests/bench/devices/overhead.py [ROUNDS]

The change is that of a swap on the published test bed: 9 PUCs of a mesh, 6 ports of a switch. It is staged, committed
and, where the device can be read, read back, as the change engine does it; sessions stand already. The simulator's
devices settle at once. The device's own time is taken side by side, round by round: the very bytes that the driver sent
are sent again over a connection of the same kind (a socket, an SSH channel), and as many bytes awaited as the driver
got; for a vendor's object, the same calls are made on the object itself. Ends with 1 if a driver's median adds more
than the limit.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from lumctl.devices import transaction
from lumctl.devices.endpoints import DeviceEndpoint
from lumctl.devices.registry import DeviceSet
from lumctl.devices.transaction import Cell, LightDriver
from lumctl.devices.ways import Stream, Way
from lumctl.fleet.fleet import Fleet
from lumctl.inventory.load import load_inventory
from lumctl.sim import client
from lumctl.sim.launch import launch
from lumctl.sim.meshes import object_client

LIMIT_MS = 5.0
ROUNDS, WARM = 200, 4
PUCS = (3, 7, 11, 12, 19, 23, 24, 31, 40)
INGRESS, EGRESS = (1, 2, 3, 4, 6, 7), (17, 18, 19, 20, 22, 23)
MESHES = ("smartlight", "smartlight-object", "sim-mesh")
SWITCHES = ("polatis-scpi", "polatis-netconf", "sim-switch")
RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h1
    accelerators:
      - {id: g1, model: X100, memory_gib: 80}
devices:
"""


def rack() -> str:
    """An inventory with one device for each driver."""
    text = RACK
    for driver in MESHES:
        text += f"  - {{id: on-{driver}, kind: mesh, driver: {driver}, address: 'x:1{len(driver)}', "
        text += "geometry: {columns: 7, rows: 3}, settle_ms: 0}\n"
    for driver in SWITCHES:
        text += f"  - {{id: on-{driver}, kind: switch, driver: {driver}, address: 'x:2{len(driver)}', "
        text += "port_count: 32, settle_ms: 0}\n"
    return text


class Tape:
    """A stream that notes what passes: bytes sent, and how many were got before the next were sent."""

    def __init__(self, stream: Stream, notes: list[list[tuple[bytes, int]]]) -> None:
        self._stream = stream
        self._notes = notes
        self.settimeout, self.close = stream.settimeout, stream.close

    def sendall(self, data: bytes) -> None:
        self._notes[-1].append((bytes(data), 0))
        self._stream.sendall(data)

    def recv(self, count: int) -> bytes:
        came = self._stream.recv(count)
        if not self._notes[-1]:
            self._notes[-1].append((b"", 0))
        sent, got = self._notes[-1][-1]
        self._notes[-1][-1] = (sent, got + len(came))
        return came


class TapedWay:
    """A way whose streams are taped, and over which a tape can be played again."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self.notes: list[list[tuple[bytes, int]]] = [[]]
        self._opens: Callable[[], Stream] | None = None
        self._kept: Stream | None = None
        self.opened = 0

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        self._opens = lambda: self._way.tcp(default_port, timeout_s)
        return self._taped()

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        self._opens = lambda: self._way.subsystem(name, default_port, timeout_s)
        return self._taped()

    def _taped(self) -> Stream:
        self.opened += 1
        assert self._opens is not None
        return Tape(self._opens(), self.notes)

    def play(self, notes: list[tuple[bytes, int]], *, again: bool) -> None:
        """Send what was sent and wait for what came; ``again`` over a new connection, as the driver did."""
        assert self._opens is not None
        if again:
            self.close()
            self._kept = self._opens()
        assert self._kept is not None
        for sent, got in notes:
            if sent:
                self._kept.sendall(sent)
            left = got
            while left > 0 and (piece := self._kept.recv(65536)):
                left -= len(piece)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None


class Clocked:
    """Calls of a function, with the time that they took."""

    def __init__(self, owner: Any, name: str) -> None:
        self.seconds = 0.0
        function = getattr(owner, name)

        def clocked(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.perf_counter() - began

        setattr(owner, name, clocked)


def once(action: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def mesh_cells(round_: int) -> list[Cell]:
    return [(puc, "=x"[1 - round_ % 2], "=x"[round_ % 2]) for puc in PUCS]


def switch_cells(round_: int) -> list[Cell]:
    """The same ports, joined round about in another way each time."""
    shift = round_ % len(EGRESS)
    return [(port, None, str(EGRESS[(at + shift) % len(EGRESS)])) for at, port in enumerate(INGRESS)]


def by_tape(way: TapedWay, write: Callable[[], object]) -> tuple[float, float]:
    before = way.opened
    way.notes.append([])
    took = once(write)
    return took, once(lambda: way.play(way.notes[-1], again=way.opened > before))


def by_clock(clock: Clocked, write: Callable[[], object]) -> tuple[float, float]:
    clock.seconds = 0.0
    return once(write), clock.seconds * 1000


def measured(
    device: LightDriver, driver: str, own: Callable[[Callable[[], object]], tuple[float, float]], rounds: int
) -> list[tuple[float, float]]:
    """(the driver's milliseconds, the device's own of them) for each round; the first, which open sessions, apart."""
    cells = mesh_cells if driver in MESHES else switch_cells
    return [
        own(lambda: transaction.write(device, transaction.stage(device, cells(round_))))  # noqa: B023 - called at once
        for round_ in range(rounds + WARM)
    ][WARM:]


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    now = datetime.now(UTC)
    return f"{now:%Y-%m-%dT%H:%M:%SZ}  {model}, {len(os.sched_getaffinity(0))} cores, Python {sys.version.split()[0]}"


def main(rounds: int) -> int:
    found: dict[str, list[tuple[float, float]]] = {}
    clocks = {
        "smartlight-object": Clocked(object_client.SimMeshObject, "_ask"),
    }
    clocks["sim-mesh"] = clocks["sim-switch"] = Clocked(client, "ask")
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:
        path = Path(folder) / "rack.yaml"
        path.write_text(rack())
        inventory = load_inventory(path)
        with launch(inventory, folder=Path(folder) / "sim", tied=True) as running:
            endpoints = running.endpoints()
            fleet = Fleet(inventory, endpoints)
            ways: dict[str, TapedWay] = {}

            def way_of(endpoint: DeviceEndpoint) -> Way:
                return ways.setdefault(endpoint.device, TapedWay(fleet.way(endpoint)))

            opened = DeviceSet(
                inventory,
                endpoints,
                shell_of=fleet.shell,
                way_of=way_of,
                known_states=lambda _: {},
                now=time.time,
            )
            for driver in (*MESHES, *SWITCHES):
                device = opened.changing(f"on-{driver}")
                own = partial(by_clock, clocks[driver]) if driver in clocks else partial(by_tape, ways[f"on-{driver}"])
                found[driver] = measured(device, driver, own, rounds)
            for way in ways.values():
                way.close()
            opened.close()
            fleet.close()
    print(f"{'ms':20} {'in all':>15} {'the device':>15} {'the driver adds':>16}")
    print(f"{'':20} {'p50':>7} {'p95':>7} {'p50':>7} {'p95':>7} {'p50':>8} {'p95':>7}")
    slow = []
    for driver, times in found.items():
        columns = [[took for took, _ in times], [own for _, own in times], [max(took - own, 0) for took, own in times]]
        figures = [(median(column), quantiles(column, n=20)[18]) for column in columns]
        print(f"{driver:20} " + " ".join(f"{p50:7.2f} {p95:7.2f}" for p50, p95 in figures))
        if figures[-1][0] > LIMIT_MS:
            slow.append(driver)
    print(f"\nlimit {LIMIT_MS:g} ms: {'all within' if not slow else 'above: ' + ', '.join(slow)}\n{machine()}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
