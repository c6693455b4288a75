"""The probes: the commands of a host, their cadence, their time limit, and the parser of the answer.

lumctl runs only these commands on a host to read its health, and none of them writes. A command is one line in the
table of the host's loop: ``files GLOB...`` (read without a process), ``run TOOL ARG...``, or ``grow PATTERN TOOL
ARG...`` (the matching lines of a tool's output; only new lines are sent).
"""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from lumctl.errors import UsageError
from lumctl.fleet import machine_takers, takers
from lumctl.fleet.parsers.kernel_log import KERNEL_PATTERN
from lumctl.fleet.parsers.sysfs import INFINIBAND_COUNTERS, INTERFACE_COUNTERS
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, Taker, Verdict
from lumctl.inventory.model import NVIDIA_SMI
from lumctl.inventory.probe_times import PROBE_TIMES, ProbeTimes

_PLUGIN_LANE = "accelerators"
_INTERFACE_FILES = ("operstate", "carrier_changes", "speed")
_ANY_PORT = "/sys/class/infiniband/*/ports/*"
_BOARDS = "/sys/class/infiniband/*/board_id"
_DF = (
    "df --local --block-size=1K --output=source,fstype,itotal,iused,used,avail,target"
    " -x tmpfs -x devtmpfs -x squashfs -x overlay"
)
"""Network file systems are omitted, because a lost file server would block the answer forever."""
_CRASH_RECORDS = "find /sys/fs/pstore /var/lib/systemd/pstore -name 'dmesg[-.]*' -printf '%T@\\n'"
_UNITS = ("nvidia-fabricmanager", "nvidia-imex", "nvidia-persistenced")
_SERVICES = "systemctl show --property=Id,LoadState,ActiveState,SubState,UnitFileState,NRestarts " + " ".join(
    f"{unit}.service" for unit in _UNITS
)
_CAPACITY = "grep -sHE '^MemTotal:|^[0-9]' /proc/meminfo /sys/devices/system/cpu/online"
# The time of the last write in two forms: their difference is the host's time zone, in which the log is written.
_FABRIC_LOG = (
    "find /var/log -maxdepth 1 -name fabricmanager.log -printf '%T@ %TY-%Tm-%TdT%TH:%TM\\n' -exec tail -n 200 {} ';'"
)
_PORT_FILES = tuple(f"{_ANY_PORT}/{name}" for name in ("state", "phys_state", "rate"))


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe of a host.

    Probes of one ``lane`` run one after the other; lanes run in parallel. The loop itself answers a probe of lane
    ``""``, without a process. ``take`` reads an answer into the gathered readings; if a probe failed, older readings
    stay and age. ``again`` is called instead if the answer equals the last one, byte for byte. ``file`` is the name of
    the probe's output in a capture, if a plug-in names it.
    """

    name: str
    lane: str
    command: str
    deadline_s: float
    every_s: float
    take: Callable[[ProbeAnswer, float, Gathered], Verdict]
    again: Callable[[float, Gathered], None]
    file: str = ""

    @property
    def may_be_direct(self) -> bool:
        """Whether its tool may print straight to us. It may not if the shell must read or compare the output itself."""
        return self.lane != "" and self.command.startswith("run ")

    @property
    def is_of_accelerators(self) -> bool:
        """Whether the probe reads accelerators. The kernel log counts, because it reports their errors."""
        return self.kind in {"gpu", "nvlink", "kernel"} or self.lane == _PLUGIN_LANE

    @property
    def kind(self) -> str:
        """The part of the name before the colon: ``optics`` of ``optics:eth2``."""
        return self.name.partition(":")[0]


def probes_for(
    interfaces: Iterable[str],
    *,
    sudo: bool,
    times: Mapping[str, ProbeTimes] = PROBE_TIMES,
    accelerators: str = NVIDIA_SMI,
) -> tuple[Probe, ...]:
    """All probes of a host with these optical interfaces. The slowest probe is first, so that it starts first.

    ``times`` are by the part of a probe's name before the colon. ``accelerators`` is the probe that reads the
    accelerators. If it is a plug-in, NVIDIA's tools are not run.
    """
    interfaces = tuple(dict.fromkeys(interfaces))
    # -n: sudo fails where it would ask for a password, because no one can answer.
    prefix = "sudo -n " if sudo else ""

    def probe(name: str, lane: str, command: str, taker: Taker) -> Probe:
        when = times[name.partition(":")[0]]
        return Probe(name, lane, command, when.deadline_s, when.every_s, taker.take, taker.again)

    # Together, the rows below use five lanes, and the loop has no file descriptor for a sixth.
    if accelerators == NVIDIA_SMI:
        of_accelerators: tuple[Probe, ...] = (
            probe("gpu", "nvidia", f"run {prefix}nvidia-smi -q -x", takers.GpuTaker()),
            probe("nvlink", "nvidia", f"run {prefix}nvidia-smi nvlink -s", takers.Nvlink()),
            probe("nvlink:errors", "nvidia", f"run {prefix}nvidia-smi nvlink -e", takers.NvlinkErrorTaker()),
            probe("nvlink:traffic", "nvidia", f"run {prefix}nvidia-smi nvlink -gt d", takers.NvlinkTrafficTaker()),
            probe("kernel", "kernel", f"grow '{KERNEL_PATTERN}' {prefix}dmesg", takers.Kernel()),
        )
    else:
        of_accelerators = _of_plugin(accelerators, prefix, times)
    return (
        *of_accelerators,
        probe("net", "", _files_of(interfaces), machine_takers.Net()),
        probe("infiniband", "", " ".join(["files", *_PORT_FILES, _BOARDS]), machine_takers.Infiniband()),
        # Not `files`, which reads only the first line of a file.
        probe("mounts", "counters", "run cat /proc/self/mounts", machine_takers.MountTable()),
        probe("disks", "counters", f"run {_DF}", machine_takers.DiskTable()),
        probe("clock", "counters", "run date +%s.%N", machine_takers.Clock()),
        probe("fabric_log", "kernel", f"run {prefix}{_FABRIC_LOG}", machine_takers.FabricLog()),
        probe("crashes", "kernel", f"run {prefix}{_CRASH_RECORDS}", machine_takers.Crashes()),
        probe("services", "counters", f"run {_SERVICES}", machine_takers.ServiceTable()),
        probe("capacity", "counters", f"run {_CAPACITY}", machine_takers.CapacityTable()),
        probe("adapters", "counters", _adapters_of(interfaces), machine_takers.NetworkCards()),
        probe("counters", "counters", _counters_of(interfaces), machine_takers.Counters()),
        probe("lldp", "lldp", f"run {prefix}lldpctl -f json", takers.Lldp()),
        *(
            probe(f"optics:{name}", "optics", f"run {prefix}ethtool -m {shlex.quote(name)}", takers.Optics(name))
            for name in interfaces
        ),
    )


_SURVEY = frozenset({"gpu", "net", "adapters", "infiniband", "lldp"})


def survey_probes(*, sudo: bool) -> tuple[Probe, ...]:
    """The probes that list what a host has before an inventory names it: its GPUs, all interfaces, LLDP neighbours."""
    every_interface = {
        "net": " ".join(["files", *(f"/sys/class/net/*/{file}" for file in _INTERFACE_FILES)]),
        "adapters": "run grep -sH ^PCI_SLOT_NAME= /sys/class/net/*/device/uevent /sys/class/infiniband/*/device/uevent",
    }
    return tuple(
        replace(probe, command=every_interface.get(probe.name, probe.command))
        for probe in probes_for((), sudo=sudo)
        if probe.name in _SURVEY
    )


def _of_plugin(name: str, prefix: str, times: Mapping[str, ProbeTimes]) -> tuple[Probe, ...]:
    """The probes of a host whose accelerators a plug-in reads: its commands (``gpu`` is the main one), kernel log."""
    # Imported here because most racks use no plug-in.
    from lumctl.fleet.contained_probe import (  # noqa: PLC0415
        MainCommand,
        Outputs,
        PluginKernel,
        SideCommand,
        Unusable,
        contained_probe,
    )
    from lumctl.fleet.probe_plugins import label_of  # noqa: PLC0415

    kernel_times, gpu_times = times["kernel"], times["gpu"]
    try:
        plugin = contained_probe(name)
    except UsageError as error:
        unusable, kernel = Unusable(error.message), takers.Kernel()
        return (
            # Any cheap command: its answer is not looked at.
            Probe("gpu", "", "files /proc/version", gpu_times.deadline_s, gpu_times.every_s,
                  unusable.take, unusable.again),
            Probe("kernel", "kernel", f"grow '{KERNEL_PATTERN}' {prefix}dmesg", kernel_times.deadline_s,
                  kernel_times.every_s, kernel.take, kernel.again),
        )  # fmt: skip
    outputs, found = Outputs(), list[Probe]()
    for command in plugin.probe.commands:
        main = command is plugin.probe.commands[-1]
        taker: Taker = MainCommand(plugin, outputs) if main else SideCommand(command, outputs)
        # The inventory's settings of the probe `gpu` override the plug-in's for the commands that it needs.
        own = ProbeTimes(command.every_s, command.deadline_s)
        when = gpu_times if command.needed and gpu_times != PROBE_TIMES["gpu"] else own
        line = f"run {prefix if command.sudo else ''}{command.run}"
        label = label_of(plugin.probe, command)
        found.append(
            Probe(label, _PLUGIN_LANE, line, when.deadline_s, when.every_s, taker.take, taker.again, command.file)
        )
    pattern = "|".join(filter(None, (KERNEL_PATTERN, plugin.kernel_pattern)))
    log = PluginKernel(plugin)
    found.append(
        Probe("kernel", "kernel", f"grow '{pattern}' {prefix}dmesg", kernel_times.deadline_s, kernel_times.every_s,
              log.take, log.again)
    )  # fmt: skip
    return tuple(found)


def _files_of(interfaces: tuple[str, ...]) -> str:
    """The command that reads the inventory's interfaces only, because a host of containers may have hundreds of others.

    It includes the loopback interface, which every host has: this proves that an interface missing from the answer does
    not exist.
    """
    paths = [_interface_path(name, file) for name in interfaces for file in _INTERFACE_FILES]
    return " ".join(["files", _interface_path("lo", "operstate"), *paths])


def _counters_of(interfaces: tuple[str, ...]) -> str:
    named = [_interface_path(interface, name) for interface in interfaces for name in INTERFACE_COUNTERS]
    ports = [f"{_ANY_PORT}/{name}" for name in INFINIBAND_COUNTERS]
    return " ".join(["run", "grep", "-sH", ".", *named, *ports])


def _adapters_of(interfaces: tuple[str, ...]) -> str:
    named = [_interface_path(name, "device/uevent") for name in interfaces]
    return " ".join(["run", "grep", "-sH", "^PCI_SLOT_NAME=", *named, "/sys/class/infiniband/*/device/uevent"])


def _interface_path(interface: str, file: str) -> str:
    return shlex.quote(f"/sys/class/net/{interface}/{file}")
