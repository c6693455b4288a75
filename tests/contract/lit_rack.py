"""The rack of two rails behind a gateway process, with a job of another owner on its switches; what its devices did."""

import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from gateways import process, through

from lumctl.change.engine import apply
from lumctl.change.plan import from_document
from lumctl.context import Context
from lumctl.devices.gateway.client import Gateway
from lumctl.devices.gateway.phases import PhaseGateway
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import FREE
from lumctl.json_lines import connect
from lumctl.sim.launch import SimProcess, launch
from lumctl.store import store_at
from lumctl.swap.fabric import plan_fabric
from lumctl.training.phase_permission import PhasePermit, obtain_permit

RACK, JOB = "rails", "train"
HOSTS = """\
  - name: h[6-7]
    accelerators:
      - id: "{host}-gpu[0-1]"
        model: NVIDIA H100 80GB HBM3
        memory_gib: 80
        index: [0, 1]

devices:
"""
TRANSPONDERS = """\
transponders:
  - {id: "h[6-7]-gpu0-a", accelerator: "h[6-7]-gpu0", interface: eth2, device: rail0, port: [5, 6]}
  - {id: "h[6-7]-gpu1-a", accelerator: "h[6-7]-gpu1", interface: eth3, device: rail1, port: [5, 6]}
"""
OTHER = """\
jobs:
  - name: other
    ranks: h[6-7]-gpu[0-1]
    links: [{kind: pairs, pairs: [[0, 2], [1, 3]]}]
"""
FOREIGN = (5, 6)
"""The join of the other job, on both switches."""
_PAIR = re.compile(r"(\d+)-(\d+)")


def shared_rack(path: Path) -> Inventory:
    """The inventory of the example, with job ``other`` on its switches."""
    text = example(RACK).read_text()
    for heading, more in (("devices:\n", HOSTS), ("transponders:\n", TRANSPONDERS), ("jobs:\n", OTHER)):
        text = text.replace(f"\n{heading}", f"\n{more}", 1)
    path.write_text(text)
    return load_inventory(path)


class SwitchLog:
    """The joins of the simulated switches, from their own log of writes."""

    def __init__(self, sim: SimProcess) -> None:
        self._sim = sim
        self.joins: dict[str, set[tuple[int, int]]] = {}
        self.read = 0
        """The number of the newest write that was read."""
        self.moved: list[tuple[str, tuple[int, int]]] = []
        """The joins that were removed or made, with their switches, since it was last emptied."""
        self._newest: dict[str, int] = {}

    def catch_up(self) -> None:
        """Follow the log to its end."""
        for write in self._sim.writes(self.read):
            held = self.joins.setdefault(write.device, set())
            removed, made = _sides(write.what)
            held -= removed
            held |= made
            self.moved += [(write.device, pair) for pair in removed | made]
            self.read = self._newest[write.device] = write.number

    def newest(self, device: str) -> int:
        """The number of the newest write to a switch."""
        return self._newest.get(device, 0)

    def holds(self, device: str, cells: Mapping[int, str]) -> bool:
        """Whether a switch holds exactly these states of a phase."""
        wanted = {(port, int(to)) for port, to in cells.items() if to != FREE}
        ports = {port for pair in wanted for port in pair} | set(cells)
        return {pair for pair in self.joins.get(device, set()) if ports & set(pair)} == wanted


def _sides(what: str) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    found: dict[str, set[tuple[int, int]]] = {"removes": set(), "makes": set()}
    for part in what.split("; "):
        verb, _, pairs = part.partition(" ")
        found[verb] |= {(int(a), int(b)) for a, b in _PAIR.findall(pairs)}
    return found["removes"], found["makes"]


class KillableGateway:
    """The client of a gateway in a process that may be killed: then its connections end, whatever is under way."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._path, self._dead = path, False
        self.phases = PhaseGateway(Gateway(RACK, "sim", str(path), self._dial))

    def _dial(self, within_s: float) -> socket.socket:
        with self._lock:
            if self._dead:
                raise ConnectionError("this lumctl is dead")
            self._open.append(made := connect(self._path, within_s))
            return made

    def kill(self) -> None:
        """End all connections at once."""
        with self._lock:
            self._dead = True
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connections of a process that is dead."""
        self.kill()
        for each in self._open:
            each.close()


class DeviceStates:
    """The states of devices that no log shows, as they themselves hold them, read past the gateway."""

    def __init__(self, read: Mapping[str, Callable[[], Mapping[int, str]]]) -> None:
        self._read = read
        self.joins: dict[str, Mapping[int, str]] = {}
        self.read = 0

    def catch_up(self) -> None:
        """Read all devices."""
        self.joins = {device: read() for device, read in self._read.items()}

    def newest(self, _device: str) -> int:
        """Nothing is known of single writes."""
        return 0

    def holds(self, device: str, cells: Mapping[int, str]) -> bool:
        """Whether a device holds these states of a phase."""
        return all(self.joins[device].get(cell, FREE) == state for cell, state in cells.items())


class LitRack:
    """A rack whose job holds a permit: ``context`` acts on it through the gateway, ``log`` says what devices hold."""

    def __init__(self, context: Context, gateway: Path, log: SwitchLog | DeviceStates, permit: PhasePermit) -> None:
        self.context, self.gateway, self.log, self.permit = context, gateway, log, permit
        document = context.store(RACK).runs.plan(permit.plan)
        assert document is not None
        self.cells = {phase.name: phase.cells for phase in from_document(document).phases}
        """By phase and device, the states that the plan permits."""

    @classmethod
    def proved(cls, context: Context, gateway: Path, log: SwitchLog | DeviceStates) -> Self:
        """The rack after each phase of its job was proved."""
        return cls(context, gateway, log, obtain_permit(context, JOB, "me", again=True))

    def obtain(self, *, again: bool) -> PhasePermit:
        """A permit for the job, for which each phase may be proved again."""
        return obtain_permit(self.context, JOB, "me", again=again)


@contextmanager
def gated(inventory: Inventory, folder: Path) -> Iterator[tuple[Context, SimProcess, Path]]:
    """A simulated rack, a process that is its gateway, and the gateway's socket. Sockets need a short path."""
    url, listens = f"sqlite:///{folder}/lumctl.db", folder / "r.sock"
    with launch(inventory, folder=folder / "sim", tied=True) as sim:
        order = {"inventory": str(inventory.path), "sim": str(sim.folder), "store": url}
        with (
            process({**order, "socket": str(listens), "rack": RACK}),
            Context(
                inventory,
                "sim",
                endpoints=through(sim.endpoints(), listens, RACK),
                store=lambda _rack: store_at(url, files=folder, rack=RACK),
            ) as context,
        ):
            apply(context, plan_fabric(context, RACK))
            yield context, sim, listens


@contextmanager
def shared_switches(folder: Path) -> Iterator[tuple[LitRack, SimProcess]]:
    """The rack of two switches, which job ``other`` uses too, and its simulator."""
    with gated(shared_rack(folder / "rails.yaml"), folder) as (context, sim, gateway):
        log = SwitchLog(sim)
        rack = LitRack.proved(context, gateway, log)
        log.catch_up()
        assert all(FOREIGN in joins for joins in log.joins.values())
        yield rack, sim
