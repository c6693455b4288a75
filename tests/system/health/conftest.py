"""A rack in virtual time: the simulated world read without sockets, judged look after look.

What a fleet does over SSH is done here by hand: each probe's command is put to the simulated host, its answer is taken
in by the probe, and what comes too late runs into its deadline.
"""

import shlex
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from lumctl.devices.errors import DeviceError
from lumctl.devices.types import DeviceReading
from lumctl.fabric import Route, changes, circuit_losses, mesh, route
from lumctl.fleet.probe_output import Gathered, ProbeAnswer
from lumctl.fleet.probes import Probe, probes_for
from lumctl.fleet.readings import HostSnapshot, ProbeOutcome, ProbeStatus, Snapshot
from lumctl.health.memory import Memory
from lumctl.health.states import HealthReport, State
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Assignment, circuits_of, initial_assignment
from lumctl.sim.hosts.host import SimHost
from lumctl.sim.hosts.shell import Kind, ProbeRow
from lumctl.sim.world.faults import FaultKind
from lumctl.sim.world.world import World

if TYPE_CHECKING:
    from pathlib import Path

START = 1_800_000_000.0
SMALL_RACK = """
lumctl: 1
racks: {r1: {}}
defaults:
  transponder: {verify: [lldp]}
hosts:
  - name: n[1-5]
    accelerators:
      - id: "{host}-gpu[0-1]"
        model: NVIDIA H100 80GB HBM3
        memory_gib: 80
        pci: ["0000:1b:00.0", "0000:43:00.0"]
devices:
  - {id: m1, kind: mesh, driver: smartlight, address: "m1.example:65432", geometry: {columns: 6, rows: 6}}
transponders:
  - {id: "n[1-5]-gpu0-a", accelerator: "n[1-5]-gpu0", interface: eth2, device: m1, port: [4, 10, 16, 30, 38]}
  - {id: "n[1-5]-gpu0-b", accelerator: "n[1-5]-gpu0", interface: eth3, device: m1, port: [5, 11, 17, 31, 39]}
jobs:
  - name: train
    ranks: n[1-4]-gpu0
    links: [{kind: ring}]
"""


@cache
def row_of(command: str) -> ProbeRow:
    """The row of a probe's command. Splitting it costs more than all else of a look, and there are few commands."""
    kind, _, words = command.partition(" ")
    return ProbeRow(Kind(kind), tuple(shlex.split(words)))


class HostReader:
    """The probes of one host, each put to it when it is due."""

    def __init__(self, world: World, inventory: Inventory, name: str, now: Callable[[], float]) -> None:
        self._world = world
        self._now = now
        self._sim = SimHost(world, name, now=now)
        lanes = tuple(t.interface for t in inventory.transponders.values() if t.host == name)
        self._probes = probes_for(lanes, sudo=False)
        self._gathered = Gathered(booted_at=world.boots[name].at)
        self._outcomes: dict[str, ProbeOutcome] = {}
        self._said: dict[str, bytes] = {}
        self._attempts = 0
        self.name = name

    def read(self) -> HostSnapshot:
        now = self._now()
        if self._world.has_fault(self.name, FaultKind.UNREACHABLE):
            self._attempts += 1
            self._said.clear()
            return HostSnapshot(self.name, now, reachable=False, error="no route to host", attempts=self._attempts)
        self._attempts = 0
        boot = self._world.boots[self.name]
        if self._gathered.booted_at != boot.at:
            self._gathered = Gathered(booted_at=boot.at)
            self._outcomes.clear()
            self._said.clear()
        for probe in self._probes:
            last = self._outcomes.get(probe.name)
            if last is None or now - last.taken_at >= probe.every_s:
                self._outcomes[probe.name] = self._ask(probe, now)
        told = {name: getattr(self._gathered, name) for name in Gathered.__dataclass_fields__}
        fields = {k: v for k, v in told.items() if k in HostSnapshot.__slots__ and k != "booted_at"}
        return HostSnapshot(
            self.name,
            now,
            reachable=True,
            probes=dict(self._outcomes),
            boot_id=boot.id,
            booted_at=boot.at,
            **fields,
        )

    def _ask(self, probe: Probe, now: float) -> ProbeOutcome:
        output = self._sim.output(row_of(probe.command))
        if output.delay_s >= probe.deadline_s:
            self._said.pop(probe.name, None)
            return ProbeOutcome(probe.name, ProbeStatus.TIMED_OUT, now, probe.deadline_s, "no answer in time")
        if self._said.get(probe.name) == output.content:
            probe.again(now, self._gathered)
            status, detail = self._outcomes[probe.name].status, self._outcomes[probe.name].detail
        else:
            answer = ProbeAnswer(output.status, output.content.decode())
            status, detail = probe.take(answer, now, self._gathered)
            self._said[probe.name] = output.content
        return ProbeOutcome(probe.name, status, now, output.delay_s, detail)


class VirtualRack:
    """A world with a clock of its own, and a memory that judges what is read of it."""

    def __init__(self, inventory: Inventory, *, seed: int = 1) -> None:
        self.at = START
        self.inventory = inventory
        self.assignment: Assignment = initial_assignment(inventory)
        self.world = World(inventory, seed=seed, now=lambda: self.at)
        self.memory = Memory()
        self.said: dict[str, Any] = {}
        """What operators say: arguments of ``Memory.judge``."""
        self.losses: dict[str, float] = {}
        self.routes: dict[str, Route] = {}
        """By circuit: the cells that its light passes."""
        self.readers = {name: HostReader(self.world, inventory, name, lambda: self.at) for name in inventory.hosts}
        self.program()

    @property
    def circuits(self):
        return circuits_of(self.inventory, self.assignment)

    def program(self) -> None:
        """Write the jobs' circuits onto the meshes, whole."""
        for device in self.inventory.devices.values():
            here = [circuit for circuit in self.circuits if circuit.a.device == device.id]
            states = self.world.meshes.states(device.id)
            shape = mesh(device.geometry.columns, device.geometry.rows)
            routes = route(shape, [circuit.ports for circuit in here], states=states)
            self.routes |= {circuit.id: found for circuit, found in zip(here, routes, strict=True)}
            self.world.meshes.write(device.id, changes(states, routes))
            meant = {**states, **changes(states, routes)}
            self.losses |= circuit_losses(self.inventory, {device.id: meant}, here)

    def rewrite(self, device: str) -> None:
        """Write all cells again as they are meant to be."""
        routes = [self.routes[circuit.id] for circuit in self.circuits if circuit.a.device == device]
        self.world.meshes.write(device, changes(self.world.meshes.states(device), routes))

    def snapshot(self) -> Snapshot:
        return Snapshot(self.at, 0.1, {name: reader.read() for name, reader in self.readers.items()})

    def device_reading(self, device: str) -> DeviceReading:
        try:
            alarms, celsius = self.world.meshes.alarms(device), self.world.meshes.temperature(device)
        except DeviceError as error:
            return DeviceReading(self.at, problem=error.message)
        return DeviceReading(self.at, None, self.at, alarms, celsius)

    def tick(self, seconds: float = 10.0) -> HealthReport:
        """Let time pass, look and judge."""
        self.at += seconds
        return self.judge(self.snapshot())

    def judge(self, snapshot: Snapshot) -> HealthReport:
        self.report = self.memory.judge(
            self.inventory,
            snapshot,
            self.circuits,
            losses=self.losses,
            devices={device: self.device_reading(device) for device in self.inventory.devices},
            now=self.at,
            **self.said,
        )
        return self.report

    def states(self) -> dict[str, State]:
        """The state of every component, named with its kind."""
        return {
            f"{group.removesuffix('s')} {name}": health.state
            for group, components in self.report.groups().items()
            for name, health in components.items()
        }


@pytest.fixture(scope="session")
def small_inventory(tmp_path_factory) -> Inventory:
    path: Path = tmp_path_factory.mktemp("inventory") / "small.yaml"
    path.write_text(SMALL_RACK)
    return load_inventory(path)


@pytest.fixture
def virtual(small_inventory) -> VirtualRack:
    """A small rack in virtual time, in which all is well."""
    rack = VirtualRack(small_inventory)
    for _ in range(3):
        rack.tick()
    return rack


@pytest.fixture
def virtual_rack() -> Callable[..., VirtualRack]:
    """Make a rack in virtual time of an inventory."""
    return VirtualRack
