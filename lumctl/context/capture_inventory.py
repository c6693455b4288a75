"""An inventory made from the files of a capture, if there is no inventory.

Ids have the usual form: ``HOST-gpu0`` by minor number, or by position in nvidia-smi's list if it prints none;
``HOST-gpu-0000:9b:00.0`` for a GPU that only the kernel log names; ``HOST-eth2`` and ``HOST-mlx5_0`` for links. The
files do not state which ports should be in use: a port counts as used if it is up, or was up since its driver was
loaded.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lumctl.devices.types import OpticsReading
from lumctl.fleet.bundle.reader import CapturedHost
from lumctl.fleet.parsers.nic_log import is_rdma_device
from lumctl.fleet.parsers.sysfs import is_virtual
from lumctl.fleet.readings import GpuReading, HostSnapshot, InfinibandPort, InterfaceReading
from lumctl.health.identity import pci_slot
from lumctl.health.rules.link import has_no_carrier, sane_limits
from lumctl.inventory.model import (
    Accelerator,
    Device,
    DeviceKind,
    Host,
    Inventory,
    Lane,
    Rack,
    Role,
    Thresholds,
    Transponder,
)
from lumctl.inventory.wiring import Circuit, CircuitEnd, Direction

NOMINAL_SENSITIVITY_DBM = -14.0
"""The sensitivity of receivers of common modules. It only helps to detect absurd limits of a module."""
ELSEWHERE = "elsewhere"
"""A placeholder for the device at the far end of a capture's links. It takes part in no verdict."""
_CAME_AND_WENT = 2
"""The fewest carrier changes of a port that was up. A port that was never up counts none, or one when it is first
reported down.
"""
_TRAFFIC = ("link_downed", "port_rcv_data", "port_xmit_data", "rx_bytes", "tx_bytes")


@dataclass(frozen=True, slots=True)
class Found:
    """One host's components, as an inventory of that host alone. ``unused`` are links that were never up."""

    inventory: Inventory
    circuits: tuple[Circuit, ...]
    unused: frozenset[str]


def found_inventory(captured: CapturedHost, *, rack: str, path: Path) -> Found:
    """Everything that one host's files show."""
    seen, host = captured.snapshot, captured.id
    accelerators = {a.id: a for a in _accelerators(captured, rack)}
    # The files do not say to which accelerator a link belongs, and the model needs one.
    owner = next(iter(accelerators), host)
    links = {f"{host}-{name}": name for name in _link_names(seen)}
    used = [id_ for id_, name in links.items() if _is_used(seen, name)]
    inventory = Inventory(
        path=path,
        digest="",
        racks={rack: Rack(rack)},
        hosts={host: Host(host, rack, host, probe=captured.probe)},
        accelerators=accelerators,
        transponders={
            id_: Transponder(
                id=id_,
                accelerator=owner,
                host=host,
                interface=name,
                lane=Lane(ELSEWHERE, 0, 0),
                driver="",
                verify=(),
                tx_power_dbm=0.0,
                rx_sensitivity_dbm=_sensitivity(seen.optics.get(name)),
            )
            for id_, name in links.items()
        },
        devices={ELSEWHERE: Device(ELSEWHERE, rack, DeviceKind.SWITCH, "", "", None, 0, 0.0, 0.0, 0.0)},
        jobs={},
        thresholds=Thresholds(),
    )
    return Found(inventory, tuple(map(_use, used)), frozenset(links) - frozenset(used))


def without_unused_ports(seen: HostSnapshot) -> tuple[InfinibandPort, ...]:
    """The InfiniBand ports to judge: an unused port is omitted if another port of its adapter is in use."""
    used = {port.device for port in seen.infiniband if _port_is_used(seen, port)}
    return tuple(port for port in seen.infiniband if port.device not in used or _port_is_used(seen, port))


def _accelerators(captured: CapturedHost, rack: str) -> Iterator[Accelerator]:
    seen, host = captured.snapshot, captured.id
    known = {pci_slot(gpu.pci) for gpu in seen.gpus}
    for number, gpu in _numbered(seen.gpus):
        yield _accelerator(f"{host}-gpu{number}", host, rack, number, gpu=gpu)
    reported = (event.pci for event in seen.accelerator_events if event.pci is not None)
    named = [*seen.lost_gpus, *(event.pci for event in seen.xids), *reported]
    if not seen.gpus:
        named += captured.named_gpus
    for pci in dict.fromkeys(named):
        # Compared by slot: the kernel log and nvidia-smi print the function of an address differently.
        if pci_slot(pci) not in known:
            known.add(pci_slot(pci))
            yield _accelerator(f"{host}-gpu-{pci}", host, rack, len(known), pci=pci)
    if not seen.gpus:
        for index, uuid in dict.fromkeys((link.index, link.uuid) for link in seen.nvlinks):
            yield _accelerator(f"{host}-gpu{index}", host, rack, index, uuid=uuid)


def _numbered(gpus: tuple[GpuReading, ...]) -> Iterable[tuple[int, GpuReading]]:
    """GPUs with their minor numbers; with their positions if one has no minor number, or two have the same."""
    minors = [gpu.minor for gpu in gpus if gpu.minor is not None]
    told_apart = len(set(minors)) == len(gpus)
    return zip(minors, gpus, strict=True) if told_apart else enumerate(gpus)


def _accelerator(
    id_: str, host: str, rack: str, index: int, *, gpu: GpuReading | None = None, pci: str = "", uuid: str | None = None
) -> Accelerator:
    return Accelerator(
        id=id_,
        host=host,
        rack=rack,
        model=(gpu.product if gpu else None) or "GPU",
        memory_gib=((gpu.memory_total_mib if gpu else None) or 0.0) / 1024,
        role=Role.ACTIVE,
        index=index,
        pci=gpu.pci if gpu else pci or None,
        uuid=gpu.uuid if gpu else uuid,
    )


def _link_names(seen: HostSnapshot) -> tuple[str, ...]:
    interfaces = [name for name in seen.interfaces if not is_virtual(name)]
    reported = [
        event.interface
        for event in seen.nic_events
        if event.interface and not is_virtual(event.interface) and not is_rdma_device(event.interface)
    ]
    return tuple(dict.fromkeys([*interfaces, *seen.optics, *(port.device for port in seen.infiniband), *reported]))


def _is_used(seen: HostSnapshot, name: str) -> bool:
    ports = [port for port in seen.infiniband if port.device == name]
    if ports:
        return any(_port_is_used(seen, port) for port in ports)
    interface = seen.interfaces.get(name)
    # A module alone does not show that its port is unused.
    return interface is None or _interface_is_used(seen, interface)


def _interface_is_used(seen: HostSnapshot, interface: InterfaceReading) -> bool:
    was_up = (interface.carrier_changes or 0) >= _CAME_AND_WENT
    return not has_no_carrier(interface) or was_up or _counted(seen, interface.name)


def _port_is_used(seen: HostSnapshot, port: InfinibandPort) -> bool:
    """A port with an unknown state counts as used, so that the missing state is reported."""
    up = port.state is None or port.state.upper() in {"ACTIVE", "ARMED", "INIT"}
    linked = (port.phys_state or "").lower() in {"linkup", "linkerrorrecovery"}
    return up or linked or _counted(seen, f"{port.device}/{port.port}")


def _counted(seen: HostSnapshot, port: str) -> bool:
    """Whether a port ever carried anything, or lost its link."""
    counters: Mapping[str, int] = seen.counters[port].values if port in seen.counters else {}
    return any(counters.get(name, 0) > 0 for name in _TRAFFIC)


def _sensitivity(optics: OpticsReading | None) -> float:
    """The receiver sensitivity of a module; ``-inf`` (no check) if the module has no limits of its own."""
    limits = sane_limits(optics.thresholds) if optics else None
    return NOMINAL_SENSITIVITY_DBM if limits and any("low" in name for name in limits) else float("-inf")


def _use(link: str) -> Circuit:
    """A circuit that ends at a link: only so does health know that the link is in use."""
    end = CircuitEnd(link, ELSEWHERE, 0)
    return Circuit(id=link, owner="", a=end, b=end, direction=Direction.DUPLEX)
