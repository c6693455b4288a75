"""Looks made by hand: everything is well unless a test says otherwise, and nothing is judged."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import (
    GpuProcess,
    GpuReading,
    HostSnapshot,
    InterfaceReading,
    ProbeOutcome,
    ProbeStatus,
    Snapshot,
)
from lumctl.health.identity import pci_slot
from lumctl.health.observation import Observation
from lumctl.health.states import (
    CircuitEndHealth,
    CircuitHealth,
    ComponentHealth,
    Finding,
    HealthReport,
    Incident,
    State,
)
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment

NOW = 1_800_000_000.0
DARK = float("-inf")


class Seen:
    """What is seen of an example rack; ``look`` makes the observation."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self.now = NOW
        self.assignment = initial_assignment(inventory)
        self.circuits = circuits_of(inventory, self.assignment)
        self.states: dict[str, State] = {}
        self.findings: dict[str, list[Finding]] = {}
        self.maintenance: dict[str, str] = {}
        self.incidents: list[Incident] = []
        self.silent_hosts: set[str] = set()
        self.gpu_read_at: float | None = None
        self.of_hosts: dict[str, dict[str, Any]] = {}
        """What else was read of a host, by field."""
        self.not_kept: str | None = None
        self.awaited: tuple[str, ...] = ()

    def find(self, component: str, state: State = State.FAILED, rule: str = "gpu.lost", **fields: Any) -> None:
        finding = Finding(component, rule, state, f"{rule} was seen", "look at it", self.now, **fields)
        self.findings.setdefault(component, []).append(finding)
        self.states[component] = state

    def group(self, cause: str, *members: str, state: State = State.FAILED) -> None:
        """One incident with findings at all its members."""
        incident = Incident(f"host:{cause}", cause, "host.down", state, self.now, members, f"{cause} is down")
        self.incidents.append(incident)
        for member in members:
            self.find(member, state, "host.down", incident=incident.id)

    def heal(self) -> None:
        self.states.clear()
        self.findings.clear()
        self.incidents.clear()
        self.maintenance.clear()

    def look(self, **fields: Any) -> Observation:
        return Observation(
            self.now,
            "sim",
            self.inventory,
            self.assignment,
            self.circuits,
            {circuit.id: 4.25 for circuit in self.circuits},
            Snapshot(self.now - 0.5, 0.25, {name: self._host(name) for name in self.inventory.hosts}),
            self.report(),
            not_kept=self.not_kept,
            awaited=self.awaited,
            **fields,
        )

    def report(self) -> HealthReport:
        def health(kind: str, names: Any) -> dict[str, ComponentHealth]:
            return {
                name: ComponentHealth(
                    name,
                    kind,
                    self.states.get(name, State.OK),
                    tuple(self.findings.get(name, ())),
                    self.now - 1,
                    maintenance=self.maintenance.get(name),
                )
                for name in names
            }

        return HealthReport(
            at=self.now,
            hosts=health("host", self.inventory.hosts),
            accelerators=health("accelerator", self.inventory.accelerators),
            links=health("link", self.inventory.transponders),
            devices=health("device", self.inventory.devices),
            circuits={
                circuit.id: CircuitHealth(
                    circuit.id,
                    circuit.owner,
                    circuit.direction.value,
                    self.states.get(circuit.id, State.OK),
                    (
                        CircuitEndHealth(
                            circuit.a.transponder, circuit.a.device, circuit.a.port, -6.5, None, circuit.b.transponder
                        ),
                        CircuitEndHealth(
                            circuit.b.transponder, circuit.b.device, circuit.b.port, DARK, None, circuit.a.transponder
                        ),
                    ),
                    4.25,
                    tuple(self.findings.get(circuit.id, ())),
                    self.now - 1,
                )
                for circuit in self.circuits
            },
            incidents=tuple(self.incidents),
            slots={a.id: pci_slot(a.pci) for a in self.inventory.accelerators.values() if a.pci is not None},
        )

    def _host(self, name: str) -> HostSnapshot:
        return replace(self._usual(name), **self.of_hosts.get(name, {}))

    def _usual(self, name: str) -> HostSnapshot:
        at = self.now - 1
        lanes = [lane.interface for lane in self.inventory.transponders.values() if lane.host == name]
        return HostSnapshot(
            name,
            at,
            reachable=name not in self.silent_hosts,  # what was read of it before is kept
            probes={
                each: ProbeOutcome(each, ProbeStatus.OK, at, 0.1)
                for each in ("gpu", "kernel", *(f"optics:{lane}" for lane in lanes))
            },
            gpus=tuple(
                GpuReading(
                    self.gpu_read_at or at,
                    accelerator.pci or f"0000:{accelerator.index:02x}:00.0",
                    minor=accelerator.index,
                    temperature_c=44.0,
                    utilization_percent=97.0,
                    memory_used_mib=1024.0,
                    power_w=300.0,
                    ecc_volatile_uncorrectable=2,
                    throttle_reasons=frozenset({"hw_slowdown"}),
                    processes=(GpuProcess(4711, "python"),),
                    raw={"gpu/new_field": "1"},
                )
                for accelerator in self.inventory.accelerators_of(name)
            ),
            interfaces={lane: InterfaceReading(lane, at, "up", 2, 10_000) for lane in lanes},
            optics={
                lane: OpticsReading(at, rx_power_dbm=DARK, tx_power_dbm=0.5, bias_ma=35.0, temperature_c=40.0)
                for lane in lanes
            },
        )


def without_raw(look: Observation) -> Observation:
    """What passes over the socket: everything but the unread leaves of nvidia-smi."""
    hosts = {
        name: replace(host, gpus=tuple(replace(gpu, raw={}) for gpu in host.gpus))
        for name, host in look.snapshot.hosts.items()
    }
    return replace(look, snapshot=replace(look.snapshot, hosts=hosts))


@pytest.fixture
def seen() -> Seen:
    """The four-server example."""
    return Seen(load_inventory(example("prototype")))


@pytest.fixture
def seen_of() -> Callable[[str], Seen]:
    """Any example."""
    return lambda name: Seen(load_inventory(example(name)))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A private runtime folder with a short name, as sockets need; it is the one that is used."""
    folder = Path(tempfile.mkdtemp(prefix="lumctl-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.delenv("LUMCTL_STATE", raising=False)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


class Clock:
    """A clock that goes when a test says so."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def said() -> list[str]:
    """The lines that were told."""
    return []


@pytest.fixture
def pure() -> Callable[[Observation], Observation]:
    return without_raw
