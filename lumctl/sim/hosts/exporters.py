"""The exporters of a simulated host on loopback: pages of dcgm-exporter and node_exporter about the simulated parts.

The dcgm-exporter page has the default counters, and the optional ones of ECC errors, clock events and thresholds.
"""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from lumctl.sim.hosts.commands import slowness
from lumctl.sim.hosts.module import speed_mbps
from lumctl.sim.service import SimulatedService
from lumctl.sim.world.faults import FaultKind
from lumctl.sim.world.gpus import SLOWDOWN_C, GpuCondition
from lumctl.sim.world.world import World

_MOST_CONNECTIONS = 16
_HANGS_S = 60.0
"""How long a hanging page holds its connection; clients time out long before."""
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-f:]+)[^)]*\): ([0-9]+)")
_GIB = 1024**3
# Bits of NVML's clocks throttle reasons: HwSlowdown and HwThermalSlowdown.
_HW_SLOWDOWN = 0x8 | 0x40
_Page = Callable[[], str]


def exporters_of(
    world: World, host: str, now: Callable[[], float], pause: Callable[[float], object]
) -> dict[str, SimulatedService]:
    """The services of a host by the inventory's kinds of exporter; kinds that are not served are omitted."""
    pages: Mapping[str, _Page] = {
        "dcgm": lambda: dcgm_page(world, host),
        "node": lambda: node_page(world, host, now()),
    }
    wanted = [exporter.kind for exporter in world.inventory.hosts[host].exporters]
    return {kind: _service(world, host, kind, pages[kind], pause) for kind in wanted if kind in pages}


def dcgm_page(world: World, host: str) -> str:
    """The page of dcgm-exporter, without lost GPUs."""
    last = dict(_XID.findall(world.kernel_log(host, iso=False)))
    families: dict[str, list[str]] = {}
    for place, condition in enumerate(world.gpus(host)):
        labels = _labels(condition, place, host)
        for name, value in _gpu_values(condition, last):
            families.setdefault(f"DCGM_FI_DEV_{name}", []).append(f"{labels} {value}")
    return "".join(
        f"# HELP {name} Simulated.\n# TYPE {name} gauge\n" + "".join(f"{name}{line}\n" for line in lines)
        for name, lines in families.items()
    )


def _labels(condition: GpuCondition, place: int, host: str) -> str:
    gpu = condition.gpu
    return (
        f'{{gpu="{place}",UUID="{gpu.uuid}",pci_bus_id="0000{gpu.pci.upper()}",device="nvidia{place}",'
        f'modelName="NVIDIA {gpu.accelerator.model}",Hostname="{host}"}}'
    )


def _gpu_values(condition: GpuCondition, xids: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    faults, total = condition.faults, round(condition.gpu.accelerator.memory_gib * 1024)
    used = round(total * 0.8) if condition.running else 4
    yield "GPU_TEMP", round(condition.temperature_c)
    yield "SLOWDOWN_TEMP", SLOWDOWN_C
    yield "POWER_USAGE", 284.37 if condition.running else 31.2
    yield "GPU_UTIL", 96 if condition.running else 0
    yield "MEM_COPY_UTIL", 54 if condition.running else 0
    yield "SM_CLOCK", 2490 if condition.running else 210
    yield "FB_USED", used
    yield "FB_FREE", total - used
    yield "PCIE_REPLAY_COUNTER", 0
    yield "ECC_SBE_VOL_TOTAL", 0
    yield "ECC_DBE_VOL_TOTAL", int(faults.get(FaultKind.ECC) or 0)
    yield "UNCORRECTABLE_REMAPPED_ROWS", 1 if FaultKind.ECC in faults else 0
    yield "ROW_REMAP_PENDING", int(FaultKind.ECC in faults)
    yield "ROW_REMAP_FAILURE", int(FaultKind.ROW_REMAP_FAILED in faults)
    yield "CLOCK_THROTTLE_REASONS", _HW_SLOWDOWN if FaultKind.THROTTLED in faults else int(not condition.running)
    # The kernel log names a GPU without the function at the end of its PCI address.
    yield "XID_ERRORS", int(xids.get(condition.gpu.pci.partition(".")[0], 0))


def node_page(world: World, host: str, now: float) -> str:
    """The page of node_exporter about the fabric's interfaces, the disk, the mounts and the clock."""
    lines = [f"node_time_seconds {now:.9e}", f"node_boot_time_seconds {world.boots[host].at:.0f}"]
    lines += ['node_network_info{device="lo",operstate="unknown"} 1', 'node_network_up{device="lo"} 0']
    for name, view in world.interfaces(host).items():
        device = f'{{device="{name}"}}'
        lines += [
            f'node_network_info{{device="{name}",operstate="{"up" if view.carrier else "down"}"}} 1',
            f"node_network_up{device} {int(view.carrier)}",
            f"node_network_carrier_changes_total{device} {view.carrier_changes}",
            f"node_network_carrier_up_changes_total{device} {(view.carrier_changes + 1) // 2}",
            f"node_network_carrier_down_changes_total{device} {view.carrier_changes // 2}",
            # The kernel states -1 Mbit/s for a link that is down, and node_exporter converts even that.
            f"node_network_speed_bytes{device} {speed_mbps(view) * 125_000 if view.carrier else -125_000}",
            f"node_network_receive_errs_total{device} 0",
            f"node_network_transmit_errs_total{device} 0",
        ]
    systems = [("/", "/dev/nvme0n1p2", "ext4")]
    systems += [(path, f"files:{path}", "nfs4") for path in world.inventory.hosts[host].mounts if path != "/"]
    for path, source, kind in systems:
        system = f'{{device="{source}",fstype="{kind}",mountpoint="{path}"}}'
        lines += [
            f"node_filesystem_size_bytes{system} {900 * _GIB}",
            f"node_filesystem_free_bytes{system} {560 * _GIB}",
            f"node_filesystem_avail_bytes{system} {540 * _GIB}",
            f"node_filesystem_files{system} 61054976",
            f"node_filesystem_files_free{system} 60337893",
            f"node_filesystem_readonly{system} 0",
            f"node_filesystem_device_error{system} 0",
        ]
    return "\n".join(lines) + "\n"


def _service(world: World, host: str, kind: str, page: _Page, pause: Callable[[float], object]) -> SimulatedService:
    def answer() -> str:
        pause(slowness(world, host))
        if kind == "dcgm" and world.has_fault(host, FaultKind.HUNG_SMI):
            # dcgm-exporter asks the same driver as nvidia-smi, so it hangs too.
            pause(_HANGS_S)
        return page()

    def talk(connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError, ValueError):
                _Handler(connection, connection.getpeername(), answer)
        finally:
            service.done_with(connection)

    def serve(connection: socket.socket) -> None:
        threading.Thread(target=partial(talk, connection), name=service.name, daemon=True).start()

    service = SimulatedService(f"{kind} exporter {host}", serve, most=_MOST_CONNECTIONS)
    return service


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def __init__(self, connection: socket.socket, address: Any, answer: _Page) -> None:
        self._answer = answer
        super().__init__(connection, address, None)  # type: ignore[arg-type]  # lumctl uses no part of the server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature is the library's
        """Log nothing: the simulator's log is for errors."""

    def do_GET(self) -> None:
        """Answer with the page, for any path."""
        body = self._answer().encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
