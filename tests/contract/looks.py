"""Looks at racks that are not there: readings made up for any inventory, drifting from one look to the next."""

import math
from collections.abc import Callable, Collection, Sequence

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import GpuProcess, GpuReading, HostSnapshot, ProbeOutcome, ProbeStatus, Snapshot
from lumctl.health.observation import Observation
from lumctl.health.states import CircuitEndHealth, CircuitHealth, ComponentHealth, Finding, HealthReport, State
from lumctl.inventory.model import Accelerator, Inventory, Role
from lumctl.inventory.wiring import Circuit, circuits_of, initial_assignment

DARK = float("-inf")
RX_DBM = -4.2


class Looks:
    """Looks at one inventory, one after another; every value that moves in a real rack moves in these."""

    def __init__(self, inventory: Inventory, *, target: str = "rack") -> None:
        self.inventory = inventory
        self._target = target
        self._assignment = initial_assignment(inventory)
        self._circuits = circuits_of(inventory, self._assignment)

    def look(self, at: float, *, failed: Collection[str] = ()) -> Observation:
        """What is seen at a time (seconds since the epoch); those that failed are off their bus and send no light."""
        hosts = {host: self._host(host, at, failed) for host in self.inventory.hosts}
        return Observation(
            at=at,
            target=self._target,
            inventory=self.inventory,
            assignment=self._assignment,
            circuits=self._circuits,
            losses={circuit.id: 4.2 for circuit in self._circuits},
            snapshot=Snapshot(at, 0.21, hosts),
            report=report_of(self.inventory, self._circuits, at, failed, lambda number: _rx_dbm(at, number)),
        )

    def _host(self, host: str, at: float, failed: Collection[str]) -> HostSnapshot:
        accelerators = self.inventory.accelerators_of(host)
        return HostSnapshot(
            host,
            at,
            reachable=True,
            connect_seconds=0.03,
            probes={"gpu": ProbeOutcome("gpu", ProbeStatus.OK, at, 0.18)},
            gpus=tuple(_gpu(each, at, number) for number, each in enumerate(accelerators) if each.id not in failed),
            optics={
                lane.interface: OpticsReading(
                    at,
                    transmitting=each.id not in failed,
                    rx_power_dbm=DARK if each.id in failed else _rx_dbm(at, number),
                    tx_power_dbm=DARK if each.id in failed else 0.0,
                )
                for number, each in enumerate(accelerators)
                for lane in self.inventory.transponders_of(each.id)
            },
        )


def report_of(
    inventory: Inventory,
    circuits: Sequence[Circuit],
    at: float,
    failed: Collection[str],
    rx_dbm: Callable[[int], float] = lambda _number: RX_DBM,
) -> HealthReport:
    """What is said of a rack of which some accelerators are lost; ``rx_dbm`` is the light in a numbered circuit."""
    lost = {name: (_lost(name, at),) for name in failed}
    dark = {lane.id for lane in inventory.transponders.values() if lane.accelerator in failed}

    def well(kind: str, names: Collection[str]) -> dict[str, ComponentHealth]:
        return {name: ComponentHealth(name, kind, State.OK, read_at=at) for name in names}

    return HealthReport(
        at=at,
        hosts=well("host", inventory.hosts),
        accelerators=well("accelerator", inventory.accelerators)
        | {name: ComponentHealth(name, "accelerator", State.FAILED, found) for name, found in lost.items()},
        links=well("link", inventory.transponders)
        | {name: ComponentHealth(name, "link", State.FAILED, read_at=at) for name in dark},
        devices={d.id: ComponentHealth(d.id, str(d.kind), State.OK, read_at=at) for d in inventory.light_devices},
        circuits={c.id: _circuit(c, at, rx_dbm(number), dark) for number, c in enumerate(circuits)},
    )


def _drift(at: float, number: int) -> float:
    return 3 * math.sin(at / 7 + number)


def _rx_dbm(at: float, number: int) -> float:
    return round(RX_DBM + _drift(at, number) / 10, 2)


def _gpu(accelerator: Accelerator, at: float, number: int) -> GpuReading:
    works = accelerator.role is Role.ACTIVE
    return GpuReading(
        taken_at=at,
        pci=accelerator.pci or "",
        minor=accelerator.index,
        temperature_c=round((60 if works else 31) + _drift(at, number)),
        temperature_slowdown_c=87,
        utilization_percent=round(95 + _drift(at, number)) if works else 0,
        memory_used_mib=71 * 1024 if works else 1024,
        memory_total_mib=80 * 1024,
        power_w=600 + 10 * _drift(at, number) if works else 70,
        ecc_volatile_uncorrectable=0,
        recovery_action="None",
        processes=(GpuProcess(4711, "python", 72_000),) if works else (),
    )


def _lost(name: str, at: float) -> Finding:
    evidence = "nvidia-smi does not list it; XID 79: GPU has fallen off the bus"
    return Finding(name, "gpu.lost", State.FAILED, evidence, "replace it by a spare: lumctl swap plan", at - 95)


def _circuit(circuit: Circuit, at: float, rx_dbm: float, lost: Collection[str]) -> CircuitHealth:
    dark = bool({circuit.a.transponder, circuit.b.transponder} & set(lost))
    expected = dict(circuit.receivers)
    ends = tuple(
        CircuitEndHealth(
            end.transponder,
            end.device,
            end.port,
            DARK if dark else rx_dbm,
            None if dark else expected.get(end.transponder),
            expected.get(end.transponder),
        )
        for end in (circuit.a, circuit.b)
    )
    advice = "look at the accelerators at its ends first"
    finding = Finding(circuit.id, "circuit.dark", State.FAILED, "no light at either receiver", advice, at - 93)
    return CircuitHealth(
        id=circuit.id,
        owner=circuit.owner,
        direction=circuit.direction,
        state=State.FAILED if dark else State.OK,
        ends=ends,
        loss_db=4.2,
        findings=(finding,) if dark else (),
        read_at=at,
    )
