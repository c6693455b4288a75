"""A rack as collected, without a rack: everything reads well unless a test says otherwise."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lumctl.context import Observation, current_role
from lumctl.devices.types import DeviceReading, Neighbour, OpticsReading
from lumctl.fleet.readings import (
    GpuReading,
    HostSnapshot,
    InterfaceReading,
    ProbeOutcome,
    ProbeStatus,
    Snapshot,
    XidEvent,
)
from lumctl.health.acknowledgements import Acknowledgement, MaintenanceWindow
from lumctl.health.evaluation import evaluate
from lumctl.health.memory import Memory
from lumctl.health.states import HealthReport
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Host, Inventory, Role
from lumctl.inventory.wiring import circuits_of, initial_assignment

NOW = 1_800_000_000.0
WELL_DEVICE = DeviceReading(NOW - 1, read_at=NOW - 1, alarms=(), temperature_c=34.0)
LIMITS = {
    "rx_power_low_alarm": -18.0,
    "rx_power_low_warning": -16.0,
    "rx_power_high_warning": 1.0,
    "rx_power_high_alarm": 2.0,
}


class CollectedRack:
    """One collection of an example rack; a test spoils parts of it and then asks for the verdict."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self.assignment = initial_assignment(inventory)
        self.devices = dict.fromkeys(inventory.devices, WELL_DEVICE)
        self.hosts = {name: self._well(host) for name, host in inventory.hosts.items()}

    def _well(self, host: Host) -> HostSnapshot:
        lanes = [t for t in self.inventory.transponders.values() if t.host == host.name]
        hears = {r: e for circuit in circuits_of(self.inventory, self.assignment) for r, e in circuit.receivers}
        senders = {lane.interface: self.inventory.transponders[hears[lane.id]] for lane in lanes if lane.id in hears}
        probes = ["gpu", "kernel", "net", "lldp", *(f"optics:{lane.interface}" for lane in lanes)]
        return HostSnapshot(
            host=host.name,
            taken_at=NOW - 1,
            reachable=True,
            probes={name: ProbeOutcome(name, ProbeStatus.OK, NOW - 1, 0.1) for name in probes},
            gpus=tuple(
                GpuReading(
                    taken_at=NOW - 1,
                    pci=accelerator.pci or f"0000:{accelerator.index:02x}:00.0",
                    minor=accelerator.index,
                    recovery_action="None",
                    temperature_c=44.0,
                    temperature_slowdown_c=89.0,
                    utilization_percent=97.0,
                    memory_used_mib=70_000.0,
                    memory_total_mib=81_559.0,
                    ecc_volatile_uncorrectable=0,
                    remap_pending=False,
                    remap_failed=False,
                    remap_uncorrectable=0,
                )
                for accelerator in self.inventory.accelerators_of(host.name)
            ),
            interfaces={
                lane.interface: InterfaceReading(
                    lane.interface, NOW - 1, "up" if lane.id in hears else "down", 2, 10_000
                )
                for lane in lanes
            },
            optics={
                lane.interface: OpticsReading(
                    NOW - 1,
                    transmitting=True,
                    rx_power_dbm=-6.0 if lane.id in hears else float("-inf"),
                    tx_power_dbm=0.5,
                    thresholds=LIMITS,
                )
                for lane in lanes
            },
            neighbours={name: (Neighbour(t.host, t.interface, 5.0),) for name, t in senders.items()},
        )

    def host(self, name: str, **fields: Any) -> None:
        self.hosts[name] = replace(self.hosts[name], **fields)

    def probe(self, host: str, name: str, status: ProbeStatus, detail: str = "", seconds: float = 5.0) -> None:
        outcome = ProbeOutcome(name, status, NOW - 1, seconds, detail)
        self.host(host, probes={**self.hosts[host].probes, name: outcome})

    def gpu(self, accelerator: str, **fields: Any) -> None:
        known = self.inventory.accelerators[accelerator]
        gpus = self.hosts[known.host].gpus
        self.host(known.host, gpus=tuple(replace(g, **fields) if g.minor == known.index else g for g in gpus))

    def lose_gpu(self, accelerator: str) -> None:
        known = self.inventory.accelerators[accelerator]
        self.host(known.host, gpus=tuple(g for g in self.hosts[known.host].gpus if g.minor != known.index))

    def xid(self, accelerator: str, number: int, *, at: float | None = NOW - 60, text: str = "") -> None:
        known = self.inventory.accelerators[accelerator]
        event = XidEvent(at, (known.pci or "").removesuffix(".0"), number, text or f"XID {number}")
        self.host(known.host, xids=(*self.hosts[known.host].xids, event))

    def module(self, transponder: str, **fields: Any) -> None:
        lane = self.inventory.transponders[transponder]
        optics = self.hosts[lane.host].optics
        self.host(lane.host, optics={**optics, lane.interface: replace(optics[lane.interface], **fields)})

    def interface(self, transponder: str, **fields: Any) -> None:
        lane = self.inventory.transponders[transponder]
        interfaces = self.hosts[lane.host].interfaces
        self.host(lane.host, interfaces={**interfaces, lane.interface: replace(interfaces[lane.interface], **fields)})

    def hears(self, transponder: str, *neighbours: Neighbour) -> None:
        lane = self.inventory.transponders[transponder]
        self.host(lane.host, neighbours={**self.hosts[lane.host].neighbours, lane.interface: neighbours})

    def device(self, name: str, **fields: Any) -> None:
        self.devices[name] = replace(self.devices[name], **fields)

    def observation(self, *, now: float = NOW, losses: dict[str, float] | None = None) -> Observation:
        circuits = circuits_of(self.inventory, self.assignment)
        snapshot = Snapshot(NOW - 1, 0.5, self.hosts)
        roles = {a: current_role(self.inventory, self.assignment, a) for a in self.inventory.accelerators}
        report = evaluate(
            self.inventory,
            snapshot,
            circuits,
            losses=losses or {},
            devices=self.devices,
            now=now,
            disabled={a for a, role in roles.items() if role is Role.DISABLED},
        )
        return Observation(
            now,
            "sim",
            self.inventory,
            self.assignment,
            circuits,
            losses or {},
            snapshot,
            report,
            devices=dict(self.devices),
        )

    def settled(
        self, *acknowledged: Acknowledgement, windows: tuple[MaintenanceWindow, ...] = (), looks: int = 6
    ) -> Observation:
        """The rack as it is judged after some looks in a row, in the light of what operators said."""
        memory = Memory()
        for look in range(looks):
            seen = self.observation(now=NOW + look)
            report = memory.judge(
                self.inventory,
                seen.snapshot,
                seen.circuits,
                losses={},
                devices=self.devices,
                now=seen.at,
                acknowledged=acknowledged,
                windows=windows,
            )
        return replace(seen, report=report, acknowledgements=acknowledged, windows=windows)

    def report(self, *, now: float = NOW) -> HealthReport:
        return self.observation(now=now).report


@pytest.fixture
def collected() -> Callable[[str], CollectedRack]:
    """Make the collection of an example rack, in which all is well."""
    return lambda name: CollectedRack(load_inventory(example(name)))


@pytest.fixture
def rack(collected: Callable[[str], CollectedRack]) -> CollectedRack:
    """The 64-accelerator example, in which all is well."""
    return collected("rack64")
