"""The probes: one command each, its deadline, and how its answer becomes readings.

These commands are all that a host is ever asked for its health; none of them writes.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lumctl.devices.formats.complaint import COMMAND_NOT_FOUND, first_line, is_denial
from lumctl.devices.formats.ethtool import parse_ethtool_module
from lumctl.devices.formats.lldp import parse_lldp
from lumctl.devices.protocols import CommandResult
from lumctl.devices.types import Neighbour, OpticsReading
from lumctl.fleet.parsers.kernel_log import parse_kernel_log
from lumctl.fleet.parsers.nvidia_smi import parse_nvidia_smi
from lumctl.fleet.parsers.sysfs import parse_infiniband, parse_interfaces
from lumctl.fleet.readings import GpuReading, InfinibandPort, InterfaceReading, ProbeStatus, XidEvent

DEADLINES_S: Mapping[str, float] = MappingProxyType(
    {"gpu": 5.0, "kernel": 3.0, "net": 3.0, "infiniband": 3.0, "lldp": 3.0, "optics": 3.0}
)
"""How long each probe may take, by the part of its name before the colon."""

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "gpu": "nvidia-smi -q -x",
        "kernel": "dmesg --time-format iso",
        "net": "grep -sH . /sys/class/net/*/operstate /sys/class/net/*/carrier_changes /sys/class/net/*/speed",
        "infiniband": (
            "grep -sH . /sys/class/infiniband/*/ports/*/state /sys/class/infiniband/*/ports/*/phys_state"
            " /sys/class/infiniband/*/ports/*/rate /sys/class/infiniband/*/ports/*/counters/*"
        ),
        "lldp": "lldpctl -f json",
    }
)

_NO_MODULE = ("operation not supported", "no module")
"""What ethtool says of an empty cage. An input/output error is a module that does not answer."""


@dataclass
class Gathered:
    """The readings of one host while its probes come in."""

    gpus: tuple[GpuReading, ...] = ()
    lost_gpus: tuple[str, ...] = ()
    xids: tuple[XidEvent, ...] = ()
    interfaces: Mapping[str, InterfaceReading] = field(default_factory=dict)
    infiniband: tuple[InfinibandPort, ...] = ()
    optics: dict[str, OpticsReading] = field(default_factory=dict)
    neighbours: Mapping[str, tuple[Neighbour, ...]] = field(default_factory=dict)


Verdict = tuple[ProbeStatus, str]
_OK: Verdict = (ProbeStatus.OK, "")


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to a host."""

    name: str
    command: str
    deadline_s: float
    take: Callable[[CommandResult, float, Gathered], Verdict]


def probes_for(interfaces: tuple[str, ...], *, sudo: bool, deadlines_s: Mapping[str, float]) -> tuple[Probe, ...]:
    """All probes of a host with these optical interfaces. The slowest is first, so that it starts first."""
    prefix = "sudo -n " if sudo else ""
    readers = {
        "gpu": _take_gpu,
        "kernel": _take_kernel,
        "net": _take_net,
        "infiniband": _take_infiniband,
        "lldp": _take_lldp,
    }
    general = [Probe(name, prefix + COMMANDS[name], deadlines_s[name], take) for name, take in readers.items()]
    optics = [
        Probe(f"optics:{name}", f"{prefix}ethtool -m {shlex.quote(name)}", deadlines_s["optics"], _optics_taker(name))
        for name in interfaces
    ]
    return (*general, *optics)


def _take_gpu(result: CommandResult, taken_at: float, gathered: Gathered) -> Verdict:
    report = parse_nvidia_smi(f"{result.stderr}\n{result.stdout}", taken_at)
    gathered.gpus, gathered.lost_gpus = report.gpus, report.lost
    if report.withheld:
        said = first_line(report.withheld[0])
        return (ProbeStatus.DENIED if is_denial(said) else ProbeStatus.FAILED), said
    if report.complete or (report.lost and not report.gpus):
        return _OK
    if report.gpus or "<nvidia_smi_log" in result.stdout:
        return ProbeStatus.FAILED, "the answer of nvidia-smi is cut short"
    if "no devices were found" in result.stdout.lower():
        return _OK
    return _failure(result, otherwise="nvidia-smi names no GPU")


def _take_kernel(result: CommandResult, _taken_at: float, gathered: Gathered) -> Verdict:
    if result.exit_status != 0:
        return _failure(result)
    gathered.xids = parse_kernel_log(result.stdout)
    return _OK


def _take_net(result: CommandResult, taken_at: float, gathered: Gathered) -> Verdict:
    gathered.interfaces = parse_interfaces(result.stdout, taken_at)
    return _OK if gathered.interfaces else _nothing_found(result)


def _take_infiniband(result: CommandResult, taken_at: float, gathered: Gathered) -> Verdict:
    gathered.infiniband = parse_infiniband(result.stdout, taken_at)
    return _OK if gathered.infiniband else _nothing_found(result)


def _take_lldp(result: CommandResult, _taken_at: float, gathered: Gathered) -> Verdict:
    if result.exit_status != 0 or not result.stdout.lstrip().startswith("{"):
        return _failure(result, otherwise="lldpctl prints no JSON")
    gathered.neighbours = parse_lldp(result.stdout)
    return _OK


def _optics_taker(interface: str) -> Callable[[CommandResult, float, Gathered], Verdict]:
    def take(result: CommandResult, taken_at: float, gathered: Gathered) -> Verdict:
        if result.exit_status != 0:
            status, detail = _failure(result)
            no_module = status is ProbeStatus.FAILED and any(words in detail.lower() for words in _NO_MODULE)
            # That there is no module is an answer; without ethtool, which is absent, there is none.
            return (ProbeStatus.OK if no_module else status), detail
        gathered.optics[interface] = parse_ethtool_module(result.stdout, taken_at)
        return _OK

    return take


def _nothing_found(result: CommandResult) -> Verdict:
    """No line at all; the exit status of grep says nothing, as it is 2 where one of many files has no value."""
    said = first_line(result.stderr)
    return (ProbeStatus.DENIED if is_denial(said) else ProbeStatus.ABSENT), said or "none on this host"


def _failure(result: CommandResult, *, otherwise: str = "") -> Verdict:
    said = first_line(result.stderr) or first_line(result.stdout)
    if is_denial(said):
        return ProbeStatus.DENIED, said
    if result.exit_status == COMMAND_NOT_FOUND or "command not found" in said.lower():
        return ProbeStatus.ABSENT, said or "command not found"
    return ProbeStatus.FAILED, said or otherwise or f"exit status {result.exit_status}"
