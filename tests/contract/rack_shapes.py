"""Racks of the usual kinds of hosts, for tests of health: an inventory, and what such hardware prints.

A simulated host is read first; what hardware of another kind prints otherwise takes the place of its readings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lumctl.fleet.readings import HostSnapshot, NvlinkReading, ProbeStatus

MIG_HOST, GPUS = "n4", 8
REGISTERED = {"state": "Completed", "status": "Success", "health/summary": "Healthy", "health/bandwidth": "Full"}


@dataclass(frozen=True)
class Shape:
    """The hosts of a rack: eight accelerators each, and a port for each of them, an RDMA device or an interface."""

    name: str
    product: str
    port: str
    rate: str
    generation: int
    power_w: float
    clock_mhz: float
    nvlinks: int = 0
    fabric: Mapping[str, str] = field(default_factory=dict)
    mig: bool = False
    source: str = "nvidia-smi"

    @property
    def is_infiniband(self) -> bool:
        return self.port.startswith("mlx5")

    @property
    def is_nvidia(self) -> bool:
        return self.source == "nvidia-smi"

    def inventory(self) -> str:
        """Four hosts in pairs, whose ports lie side by side at the rim of a mesh."""
        buses = ", ".join(f'"0000:{16 + 16 * n:02x}:00.0"' for n in range(GPUS))
        names = ", ".join(self.port.format(n) for n in range(GPUS))
        pairs = ", ".join(f"[{n}, {n + GPUS}]" for n in range(GPUS))
        lanes = "".join(
            f'  - {{id: "n{host + 1}-gpu[0-7]-a", accelerator: "n{host + 1}-gpu[0-7]", interface: [{names}],'
            f" device: m1, port: [{', '.join(str(4 * n + host) for n in range(GPUS))}]}}\n"
            for host in range(4)
        )
        return (
            "lumctl: 1\nracks: {r1: {}}\ndefaults:\n  transponder: {verify: [lldp]}\nhosts:\n  - name: n[1-4]\n"
            f'    accelerators:\n      - {{id: "{{host}}-gpu[0-7]", model: {self.product}, memory_gib: 80,'
            f" pci: [{buses}]}}\n"
            "devices:\n  - {id: m1, kind: mesh, driver: smartlight, address: 'm1.example:65432',"
            f" geometry: {{columns: 9, rows: 9}}}}\ntransponders:\n{lanes}jobs:\n"
            f'  - {{name: a, ranks: "n[1-2]-gpu[0-7]", links: [{{kind: pairs, pairs: [{pairs}]}}]}}\n'
            f'  - {{name: b, ranks: "n[3-4]-gpu[0-7]", links: [{{kind: pairs, pairs: [{pairs}]}}]}}\n'
        )

    def dressed(self, host: HostSnapshot) -> HostSnapshot:
        """What was read of a simulated host, as hosts of this shape print it."""
        has_mig = self.mig and host.host == MIG_HOST
        settings = {"persistence_enabled": True, "ecc_enabled": True, "application_clock_mhz": self.clock_mhz}
        unknown = dict.fromkeys((*settings, "recovery_action", "remap_pending", "remap_failed", "reset_required"))
        gpus = tuple(
            replace(
                gpu,
                product=self.product,
                source=self.source,
                fabric=self.fabric,
                pcie_generation_max=self.generation,
                sm_clock_max_mhz=self.clock_mhz,
                raw={"mig_mode/current_mig": "Enabled" if has_mig else "Disabled"} if self.is_nvidia else {},
                **(settings if self.is_nvidia else unknown),
            )
            for gpu in host.gpus
        )
        nvlinks = tuple(
            NvlinkReading(host.taken_at, gpu.minor, gpu.uuid, link, not has_mig, 25.0, host.taken_at, 0, 0, 0)
            for gpu in gpus
            for link in range(self.nvlinks)
        )
        probes = dict(host.probes)
        if not self.nvlinks:
            probes |= {
                n: replace(probes[n], status=ProbeStatus.ABSENT) for n in ("nvlink", "nvlink:errors", "nvlink:traffic")
            }
        return replace(host, gpus=gpus, nvlinks=nvlinks, probes=probes, lost_gpus=())


SHAPES = (
    Shape("H100", "NVIDIA H100 80GB HBM3", "mlx5_{}", "400 Gb/sec (4X NDR)", 5, 700.0, 1980.0, 18, REGISTERED),
    Shape("A100", "NVIDIA A100-SXM4-80GB", "mlx5_{}", "200 Gb/sec (4X HDR)", 4, 400.0, 1410.0, 12, mig=True),
    Shape("L40S", "NVIDIA L40S", "eth{}", "100000", 4, 350.0, 2520.0),
    Shape("MI300", "AMD Instinct MI300X", "eth{}", "400000", 5, 750.0, 2100.0, source="amd-smi"),
)
