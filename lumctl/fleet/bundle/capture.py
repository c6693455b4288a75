"""The shape of a capture: one folder for each host, one file for each probe, and a manifest of what was asked.

The files hold what the host's tools printed, so anyone can read them or make them by hand. Only the manifests have a
format of lumctl's own; a capture without manifests is read as well.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from lumctl.fleet.readings import ProbeStatus
from lumctl.inventory.model import NVIDIA_SMI

ABOUT_CAPTURE = "capture.json"
"""The manifest of a whole capture, next to the folders of its hosts."""
ABOUT_HOST = "manifest.json"
"""The manifest of one host, next to its files."""
CAPTURE_SCHEMA = "lumctl/capture/v1"
HOST_SCHEMA = "lumctl/captured-host/v1"

FILES: Mapping[str, str] = {
    "gpu": "nvidia-smi.xml",
    "nvlink": "nvlink.txt",
    "nvlink:errors": "nvlink-errors.txt",
    "nvlink:traffic": "nvlink-traffic.txt",
    "kernel": "kernel.log",
    "mounts": "mounts.txt",
    "disks": "df.txt",
    "clock": "date.txt",
    "crashes": "crashes.txt",
    "fabric_log": "fabric-log.txt",
    "services": "services.txt",
    "capacity": "capacity.txt",
    "adapters": "adapters.tsv",
    "net": "net.tsv",
    "infiniband": "infiniband.tsv",
    "counters": "counters.tsv",
    "lldp": "lldp.json",
    "dcgm": "dcgm.prom",
    "node": "node.prom",
    "amd": "amd.prom",
    "gpud": "gpud.json",
}
"""The file of each probe's output, by probe. The file of an optical module's output is ``ethtool-IFACE.txt``."""
TABLES = frozenset({"net", "infiniband", "counters", "adapters"})
"""Probes whose files are tables: path, tab, value."""

_LATEST = 253402300799.0
"""The last second of the year 9999: ``datetime`` cannot represent a later one."""
_LONGEST_TEXT = 500
_MOST_PROBES = 1024


def file_of(probe: str) -> str:
    """The name of a probe's file. Characters of an interface's name that a file name cannot hold are quoted."""
    kind, _, what = probe.partition(":")
    if kind == "optics":
        return f"ethtool-{quote(what, safe=':@')}.txt"
    return FILES.get(probe) or f"{quote(probe, safe='')}.txt"


@dataclass(frozen=True, slots=True)
class CapturedProbe:
    """The result of one probe. ``exit_status`` is ``None`` if it did not end, ``file`` if no output was stored."""

    probe: str
    status: ProbeStatus
    taken_at: float
    seconds: float
    exit_status: int | None = None
    file: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class HostManifest:
    """The capture of one host: when it was taken, when the host booted (epoch seconds), and the result of each probe.

    ``accelerator_probe`` is the probe that read the host's accelerators.
    """

    host: str
    taken_at: float
    reachable: bool = True
    error: str | None = None
    host_key_problem: bool = False
    boot_id: str | None = None
    booted_at: float | None = None
    lumctl: str = ""
    probes: tuple[CapturedProbe, ...] = ()
    accelerator_probe: str = NVIDIA_SMI


@dataclass(frozen=True, slots=True)
class CaptureManifest:
    """A whole capture: its time, target, racks and hosts. ``assignment`` has the accelerators of each job by rank."""

    taken_at: float
    target: str
    lumctl: str
    racks: tuple[str, ...]
    hosts: tuple[str, ...]
    assignment: Mapping[str, tuple[str, ...]]


def write_manifest(schema: str, manifest: HostManifest | CaptureManifest) -> str:
    """A manifest as the text of its file."""
    return json.dumps({"schema": schema, **asdict(manifest)}, indent=2) + "\n"


def read_host_manifest(text: str, host: str) -> HostManifest | None:
    """A host's manifest; ``None`` if the text is not one.

    Wrong fields are ignored: a capture may come from any source.
    """
    document = _document(text, HOST_SCHEMA)
    taken_at = _time(document.get("taken_at"))
    if taken_at is None:
        return None
    asked = document.get("probes")
    reachable = document.get("reachable") is not False
    return HostManifest(
        host=host,
        taken_at=taken_at,
        reachable=reachable,
        error=_text(document.get("error")),
        host_key_problem=document.get("host_key_problem") is True,
        boot_id=_text(document.get("boot_id")),
        booted_at=_time(document.get("booted_at")),
        lumctl=_text(document.get("lumctl")) or "",
        accelerator_probe=_text(document.get("accelerator_probe")) or NVIDIA_SMI,
        probes=tuple(
            one for entry in (asked[:_MOST_PROBES] if isinstance(asked, list) else ()) if (one := _asked(entry))
        ),
    )


def read_capture_manifest(text: str) -> CaptureManifest | None:
    """The manifest of a whole capture, read as :func:`read_host_manifest` does."""
    document = _document(text, CAPTURE_SCHEMA)
    taken_at = _time(document.get("taken_at"))
    if taken_at is None:
        return None
    placed = document.get("assignment")
    return CaptureManifest(
        taken_at=taken_at,
        target=_text(document.get("target")) or "",
        lumctl=_text(document.get("lumctl")) or "",
        racks=_texts(document.get("racks")),
        hosts=_texts(document.get("hosts")),
        assignment={str(job): _texts(ranks) for job, ranks in (placed if isinstance(placed, dict) else {}).items()},
    )


def _document(text: str, schema: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) and document.get("schema") == schema else {}


def _asked(entry: Any) -> CapturedProbe | None:
    if not isinstance(entry, dict):
        return None
    probe, taken_at, status = _text(entry.get("probe")), _time(entry.get("taken_at")), entry.get("status")
    if probe is None or taken_at is None or status not in set(ProbeStatus):
        return None
    exit_status = entry.get("exit_status")
    return CapturedProbe(
        probe=probe,
        status=ProbeStatus(status),
        taken_at=taken_at,
        seconds=_time(entry.get("seconds")) or 0.0,
        exit_status=exit_status if isinstance(exit_status, int) and not isinstance(exit_status, bool) else None,
        file=_text(entry.get("file")),
        detail=_text(entry.get("detail")) or "",
    )


def _time(value: Any) -> float | None:
    # JSON's true is an int to Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= _LATEST else None


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return "".join(character for character in value if character.isprintable())[:_LONGEST_TEXT] or None


def _texts(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else []
    return tuple(text for entry in listed if (text := _text(entry)) is not None)
