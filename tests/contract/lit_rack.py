"""The rack of two rails behind a gateway process, with a job of another owner on its switches; what its devices did."""

import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

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
from lumctl.training.phase_permission import obtain_permit

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


class LitRack:
    """The rack at work: ``context`` acts on it through the gateway, ``sim`` injects faults, ``log`` tells the truth."""

    def __init__(self, context: Context, sim: SimProcess, gateway: Path) -> None:
        self.context, self.sim, self.gateway = context, sim, gateway
        self.log = SwitchLog(sim)
        apply(context, plan_fabric(context, RACK))
        self.permit = obtain_permit(context, JOB, "me", again=True)
        document = context.store(RACK).runs.plan(self.permit.plan)
        assert document is not None
        self.cells = {phase.name: phase.cells for phase in from_document(document).phases}
        """By phase and device, the states that the plan has proved."""
        self.log.catch_up()
        assert all(FOREIGN in joins for joins in self.log.joins.values())


@contextmanager
def lit_rack(folder: Path) -> Iterator[LitRack]:
    """A rack whose job holds a permit. ``folder`` has a path that is short enough for sockets."""
    inventory = shared_rack(folder / "rails.yaml")
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
            yield LitRack(context, sim, listens)
