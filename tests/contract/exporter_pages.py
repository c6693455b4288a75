"""Pages of exporters as tests write them, and a reader that is given such pages in place of HTTP."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.fleet.exporters import ExporterReader, exporter_probes
from lumctl.fleet.reader import SharedByHosts
from lumctl.fleet.rounds import Gate
from lumctl.inventory.exporters import EXPORTER_KINDS, Exporter

PCIS = ("0000:1b:00.0", "0000:2c:00.0")
WELL: Mapping[str, float] = {
    "GPU_TEMP": 45,
    "MEMORY_TEMP": 50,
    "POWER_USAGE": 310.5,
    "GPU_UTIL": 10,
    "FB_USED": 1000,
    "FB_FREE": 80000,
    "ECC_DBE_VOL_TOTAL": 0,
    "UNCORRECTABLE_REMAPPED_ROWS": 0,
    "ROW_REMAP_FAILURE": 0,
    "XID_ERRORS": 0,
}
SHELL_PROBES = ("gpu", "nvlink", "kernel", "net", "mounts", "disks", "clock", "counters", "lldp", "optics:eth2")


def dcgm_labels(place: int, **more: str) -> str:
    """The labels that dcgm-exporter prints with each sample of a GPU."""
    labels = {
        "gpu": f"{place}",
        "UUID": f"GPU-{place}",
        "pci_bus_id": f"0000{PCIS[place].upper()}",
        "device": f"nvidia{place}",
        "modelName": "NVIDIA H100 80GB HBM3",
        **more,
    }
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def dcgm_page(first: Mapping[str, object] | None = None, *, gpus: int = 2, also: str = "") -> str:
    """A page of dcgm-exporter for GPUs that are well, but for some fields of the first; ``None`` leaves one out."""
    lines = []
    for place in range(gpus):
        values = {**WELL, **((first or {}) if place == 0 else {})}
        lines += [
            f"DCGM_FI_DEV_{name}{{{dcgm_labels(place)}}} {value}" for name, value in values.items() if value is not None
        ]
    return "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n" + "\n".join(lines) + "\n" + also


def node_page(**changed: str) -> str:
    """A page of node_exporter of a host that is well, with some lines replaced by their names before the value."""
    lines = {
        'node_network_info{device="lo",operstate="unknown"}': "1",
        'node_network_up{device="lo"}': "0",
        'node_network_info{device="eth2",operstate="up"}': "1",
        'node_network_carrier_changes_total{device="eth2"}': "2",
        'node_network_speed_bytes{device="eth2"}': "1.25e+10",
        'node_network_receive_errs_total{device="eth2"}': "7",
        'node_filesystem_size_bytes{device="/dev/sda1",fstype="ext4",mountpoint="/"}': "1e+12",
        'node_filesystem_free_bytes{device="/dev/sda1",fstype="ext4",mountpoint="/"}': "6e+11",
        'node_filesystem_avail_bytes{device="/dev/sda1",fstype="ext4",mountpoint="/"}': "5e+11",
        'node_filesystem_readonly{device="/dev/sda1",fstype="ext4",mountpoint="/"}': "0",
        'node_filesystem_device_error{device="/dev/sda1",fstype="ext4",mountpoint="/"}': "0",
        'node_filesystem_readonly{device="files:/data",fstype="nfs4",mountpoint="/data"}': "0",
        'node_filesystem_device_error{device="files:/data",fstype="nfs4",mountpoint="/data"}': "0",
        'node_edac_uncorrectable_errors_total{controller="0"}': "0",
        'node_scrape_collector_success{collector="filesystem"}': "1",
        "node_time_seconds": "1000",
        "node_boot_time_seconds": "500",
    }
    for part, value in changed.items():
        (name,) = (name for name in lines if part in name.replace("{", "_").replace('"', ""))
        lines[name] = value
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def because(cause: Exception, why: str) -> DeviceUnreachableError:
    """The error of a connection that could not be made."""
    error = DeviceUnreachableError(f"dcgm-exporter at http://h1:9400: {why}")
    error.__cause__ = cause
    return error


class Client:
    """In place of HTTP: fetches what it was given last, or raises it."""

    def __init__(self, kind: str, page: str | Exception) -> None:
        self.exporter = Exporter(kind, f"http://h1:{EXPORTER_KINDS[kind].port}", EXPORTER_KINDS[kind].path)
        self.page = page
        self.fetched = 0

    def fetch(self, most_s: float) -> str:
        assert most_s > 0
        self.fetched += 1
        if isinstance(self.page, Exception):
            raise self.page
        return self.page


class Now:
    """Workers that do everything at once, unless they are told to hold it."""

    def __init__(self) -> None:
        self.holds = False
        self.held: list[Any] = []

    def submit(self, call: Any) -> None:
        self.held.append(call) if self.holds else call()

    def go_on(self) -> None:
        self.holds = False
        while self.held:
            self.held.pop(0)()


def reader_of(pages: Mapping[str, str | Exception], *, now: Any = lambda: 1000.0, mounts: Any = ()) -> SimpleNamespace:
    """A reader of one host, its clients by kind, and its workers."""
    clients = {kind: Client(kind, page) for kind, page in pages.items()}
    workers = Now()
    probes = exporter_probes(
        {kind: client.exporter.url for kind, client in clients.items()}, interfaces=["eth2"], mounts=mounts
    )
    means = SharedByHosts(workers, Gate(), now, 5.0)  # type: ignore[arg-type]  # they have what is used
    reader = ExporterReader("h1", list(clients.values()), probes, means, shell_probes=SHELL_PROBES)  # type: ignore[arg-type]
    return SimpleNamespace(reader=reader, clients=clients, workers=workers)
