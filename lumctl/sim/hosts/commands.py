"""The answers of a simulated host to the commands that probes and drivers send; other commands are "not found"."""

import hashlib
import json
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

from lumctl.inventory.model import NVIDIA_SMI, Transponder
from lumctl.sim.hosts import sysfs
from lumctl.sim.hosts.amd import amd_smi_json
from lumctl.sim.hosts.module import module_json, module_text
from lumctl.sim.hosts.nvidia import nvidia_smi_xml, nvlink_errors, nvlink_speeds, nvlink_traffic
from lumctl.sim.world.faults import FaultKind
from lumctl.sim.world.kernel import AMD_SMI
from lumctl.sim.world.links import LLDP_TTL_S, Neighbours
from lumctl.sim.world.world import World


def neighbours_json(heard: Mapping[str, Neighbours]) -> str:
    """All neighbours of a host, as lldpd prints them in JSON.

    ``interface`` is a list of neighbours. As in lldpd, it is the neighbour itself if there is only one, and is missing
    if there is none.
    """
    entries: list[dict[str, Any]] = []
    for name, neighbours in heard.items():
        for sender, age_s, mark in neighbours:
            entries.append({name: _entry(len(entries) + 1, sender, age_s, mark)})
    table: dict[str, Any] = {"interface": entries[0] if len(entries) == 1 else entries} if entries else {}
    return json.dumps({"lldp": table}, indent=2) + "\n"


def _entry(rid: int, sender: Transponder, age_s: float, mark: str) -> dict[str, Any]:
    chassis = {
        "id": {"type": "mac", "value": _mac(sender.host)},
        "descr": "Debian GNU/Linux 12 (bookworm) Linux 6.1.0-28-amd64 x86_64",
        "capability": [
            {"type": "Bridge", "enabled": False},
            {"type": "Router", "enabled": False},
            {"type": "Wlan", "enabled": False},
            {"type": "Station", "enabled": True},
        ],
    }
    port = {
        "id": {"type": "mac", "value": _mac(f"{sender.host}/{sender.interface}")},
        "descr": sender.interface,
        "ttl": f"{LLDP_TTL_S:.0f}",
    }
    entry = {"via": "LLDP", "rid": str(rid), "age": _age(age_s), "chassis": {sender.host: chassis}, "port": port}
    if mark:
        oui, subtype, value = mark.split("/")
        tlv = {"oui": oui.upper(), "subtype": subtype, "len": str(len(value.split(","))), "value": value.upper()}
        entry["unknown-tlvs"] = {"unknown-tlv": tlv}
    return entry


def _age(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86_400)
    return f"{days} day, {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def _mac(host: str) -> str:
    """A locally administered MAC address; it is always the same for one name."""
    digest = hashlib.sha256(host.encode()).digest()
    return ":".join(f"{octet:02x}" for octet in (0x02, *digest[:5]))


_NOT_FOUND = 127
_AND = "&&"
_CUSTOM_TLV = re.compile(r"[0-9a-fA-F]{2}(,[0-9a-fA-F]{2}){2}/[0-9]{1,3}/[0-9a-fA-F]{2}(,[0-9a-fA-F]{2}){0,506}")


class CommandAnswer(NamedTuple):
    """The result of a command, and the seconds until it ends (``inf``: never)."""

    exit_status: int
    stdout: str
    stderr: str
    delay_s: float = 0.0


def answer(world: World, host: str, command: str, *, now: float) -> CommandAnswer:
    """Run one command on a host, or several joined by ``&&``.

    A ``sudo -n`` in front is ignored: the simulated user may do everything.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        return CommandAnswer(2, "", f"sh: 1: Syntax error: {error}\n")
    first, *others = [list(run) for is_and, run in groupby(words, _AND.__eq__) if not is_and] or [[]]
    answered = answer_words(world, host, first, now=now)
    for following in others:
        if answered.exit_status != 0:
            break
        last = answer_words(world, host, following, now=now)
        answered = CommandAnswer(
            last.exit_status,
            answered.stdout + last.stdout,
            answered.stderr + last.stderr,
            answered.delay_s + last.delay_s,
        )
    return answered


def answer_words(world: World, host: str, words: Sequence[str], *, now: float) -> CommandAnswer:
    """Run one command whose words a shell has already split."""
    if tuple(words[:2]) == ("sudo", "-n"):
        words = words[2:]
    if not words:
        return CommandAnswer(0, "", "")
    run = _COMMANDS.get(words[0])
    if run is None or (words[0] in _VENDOR_TOOLS and words[0] != world.inventory.hosts[host].probe):
        return CommandAnswer(_NOT_FOUND, "", f"sh: 1: {words[0]}: not found\n", slowness(world, host))
    ran = run(world, host, list(words[1:]), now)
    return ran._replace(delay_s=ran.delay_s + slowness(world, host))


def slowness(world: World, host: str) -> float:
    """Seconds that a host takes before each answer."""
    return world.fault_value(host, FaultKind.SLOW_HOST) or 0.0


def _nvidia_smi(world: World, host: str, arguments: list[str], now: float) -> CommandAnswer:
    hung = math.inf if world.has_fault(host, FaultKind.HUNG_SMI) else 0.0
    match arguments:
        case ["-q", "-x"]:
            return CommandAnswer(0, nvidia_smi_xml(world.gpus(host), now), "", hung)
        case ["nvlink", "-s"]:
            return CommandAnswer(0, nvlink_speeds(world.gpus(host)), "", hung)
        case ["nvlink", "-e"]:
            return CommandAnswer(0, nvlink_errors(world.gpus(host)), "", hung)
        case ["nvlink", "-gt", "d"]:
            return CommandAnswer(0, nvlink_traffic(world.gpus(host)), "", hung)
        case _:
            return _unsupported("nvidia-smi", arguments, hung)


def _amd_smi(world: World, host: str, arguments: list[str], _now: float) -> CommandAnswer:
    hung = math.inf if world.has_fault(host, FaultKind.HUNG_SMI) else 0.0
    match arguments:
        case [command, "--json"] if (printed := amd_smi_json(command, world.gpus(host))) is not None:
            return CommandAnswer(0, printed, "", hung)
        case _:
            return _unsupported("amd-smi", arguments, hung)


def _dmesg(world: World, host: str, arguments: list[str], _now: float) -> CommandAnswer:
    if arguments not in ([], ["--time-format", "iso"]):
        return _unsupported("dmesg", arguments)
    return CommandAnswer(0, world.kernel_log(host, iso=bool(arguments)), "")


def _grep(world: World, host: str, arguments: list[str], now: float) -> CommandAnswer:
    if arguments[:2] == ["-sH", "^PCI_SLOT_NAME="]:
        # Simulated interfaces have no PCI address.
        return CommandAnswer(2, "", "")
    if tuple(arguments[2:]) == CAPACITY_FILES:
        return CommandAnswer(0, CAPACITY, "")
    if arguments[:2] != ["-sH", "."]:
        return _unsupported("grep", arguments)
    status, output = sysfs.grep(sysfs.Files(world, host, now), arguments[2:])
    return CommandAnswer(status, output, "")


def _cat(world: World, host: str, arguments: list[str], now: float) -> CommandAnswer:
    if len(arguments) != 1:
        return _unsupported("cat", arguments)
    if arguments == [MOUNTS_FILE]:
        return CommandAnswer(0, mounts(world.inventory.hosts[host].mounts), "")
    return CommandAnswer(*sysfs.cat(sysfs.Files(world, host, now), arguments[0]))


def _df(_world: World, _host: str, _arguments: list[str], _now: float) -> CommandAnswer:
    return CommandAnswer(0, DISKS, "")


def _date(_world: World, _host: str, arguments: list[str], now: float) -> CommandAnswer:
    return CommandAnswer(0, f"{now:.9f}\n", "") if arguments == ["+%s.%N"] else _unsupported("date", arguments)


def _systemctl(_world: World, _host: str, arguments: list[str], _now: float) -> CommandAnswer:
    match arguments:
        case ["show", properties, *units] if properties.startswith("--property="):
            return CommandAnswer(0, services(units), "")
        case _:
            return _unsupported("systemctl", arguments)


def _find(_world: World, _host: str, _arguments: list[str], _now: float) -> CommandAnswer:
    return CommandAnswer(0, "", "")


def _ethtool(world: World, host: str, arguments: list[str], _now: float) -> CommandAnswer:
    match arguments:
        case ["-m", interface]:
            form = module_text
        case ["--json", "-m", interface]:
            form = module_json
        case _:
            return _unsupported("ethtool", arguments)
    view = world.link(host, interface)
    if view is None:
        return CommandAnswer(1, "", "netlink error: No such device\n")
    return CommandAnswer(0, form(view), "")


def _lldpctl(world: World, host: str, arguments: list[str], _now: float) -> CommandAnswer:
    if arguments != ["-f", "json"]:
        return _unsupported("lldpctl", arguments)
    return CommandAnswer(0, neighbours_json(world.neighbours(host)), "")


def _lldpcli(world: World, host: str, arguments: list[str], now: float) -> CommandAnswer:
    match arguments:
        case ["update"]:
            world.announce(host)
            return CommandAnswer(0, "", "")
        case ["configure", "lldp", "custom-tlv", "replace", "oui", oui, "subtype", subtype, "oui-info", value]:
            mark = f"{oui}/{subtype}/{value}"
            if not _CUSTOM_TLV.fullmatch(mark):
                at = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds").removesuffix("+00:00")
                return CommandAnswer(1, "", f"{at} [WARN/lldpctl] invalid custom TLV {mark!r}\n")
            world.announce(host, mark)
            return CommandAnswer(0, "", "")
        case _:
            return _unsupported("lldpcli", arguments)


def _ip(world: World, host: str, arguments: list[str], _now: float) -> CommandAnswer:
    match arguments:
        case ["link", "set", "dev", interface, ("up" | "down") as state]:
            if world.set_interface(host, interface, up=state == "up"):
                return CommandAnswer(0, "", "")
            return CommandAnswer(1, "", f'Cannot find device "{interface}"\n')
        case _:
            return _unsupported("ip", arguments)


def _unsupported(tool: str, arguments: list[str], delay_s: float = 0.0) -> CommandAnswer:
    return CommandAnswer(2, "", f"{tool}: the simulator does not support: {shlex.join(arguments)}\n", delay_s)


_VENDOR_TOOLS = frozenset({NVIDIA_SMI, AMD_SMI})
"""The vendors' tools: a host has only the tool of its own accelerators."""
_COMMANDS: dict[str, Callable[[World, str, list[str], float], CommandAnswer]] = {
    "nvidia-smi": _nvidia_smi,
    AMD_SMI: _amd_smi,
    "dmesg": _dmesg,
    "grep": _grep,
    "cat": _cat,
    "df": _df,
    "date": _date,
    "find": _find,
    "systemctl": _systemctl,
    "ethtool": _ethtool,
    "lldpctl": _lldpctl,
    "lldpcli": _lldpcli,
    "ip": _ip,
}


MOUNTS_FILE = "/proc/self/mounts"
_MOUNTS = """\
/dev/nvme0n1p2 / ext4 rw,relatime,errors=remount-ro 0 0
proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0
/dev/loop0 /snap/core20/2318 squashfs ro,nodev,relatime,errors=continue,threads=single 0 0
"""
DISKS = """\
Filesystem     Type   Inodes  IUsed      Used     Avail Mounted on
/dev/nvme0n1p2 ext4 61054976 717083 351646600 571226252 /
"""


CAPACITY_FILES = ("/proc/meminfo", "/sys/devices/system/cpu/online")
CAPACITY = "/proc/meminfo:MemTotal:       2113411308 kB\n/sys/devices/system/cpu/online:0-223\n"


def services(units: Sequence[str]) -> str:
    """The output of ``systemctl show`` for some units; all of them run."""
    about = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nNRestarts=0\n"
    return "\n".join(f"Id={unit}\n{about}" for unit in units)


def mounts(named: Sequence[str]) -> str:
    """The content of ``/proc/self/mounts``, with the mounts that the inventory names."""
    # The kernel writes backslashes and spaces of a path in octal here.
    others = (path.replace("\\", "\\134").replace(" ", "\\040") for path in named if path != "/")
    return _MOUNTS + "".join(f"files:{path} {path} nfs4 rw,relatime,vers=4.2 0 0\n" for path in others)
