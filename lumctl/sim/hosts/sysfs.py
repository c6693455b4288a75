"""The few files of /sys that the probes read on a simulated host, and the commands that read them."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from lumctl.sim.hosts.module import speed_mbps
from lumctl.sim.world.world import World

COUNTERS = (
    "collisions",
    "multicast",
    "rx_bytes",
    "rx_compressed",
    "rx_crc_errors",
    "rx_dropped",
    "rx_errors",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_length_errors",
    "rx_missed_errors",
    "rx_nohandler",
    "rx_over_errors",
    "rx_packets",
    "tx_aborted_errors",
    "tx_bytes",
    "tx_carrier_errors",
    "tx_compressed",
    "tx_dropped",
    "tx_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_packets",
    "tx_window_errors",
)
_LEAST_SHARE, _MOST_SHARE = 0.05, 0.45
_BYTES_PER_PACKET = 4096
_MULTICAST_EVERY_S = 30.0


def counted(counter: str, source: str, *, speed_mbps: int, carried_s: float) -> int:
    """One counter of an interface after ``carried_s`` seconds with carrier. ``source`` determines its load."""
    if counter == "multicast":
        return int(carried_s / _MULTICAST_EVERY_S)
    way, _, unit = counter.partition("_")
    if unit not in {"bytes", "packets"}:
        return 0
    carried = int(speed_mbps * 1e6 / 8 * _share(f"{source}/{way}") * carried_s)
    return carried if unit == "bytes" else carried // _BYTES_PER_PACKET


@lru_cache(maxsize=8192)
def _share(source: str) -> float:
    # Not cryptography: the rate must be the same each time for one source.
    return random.Random(source).uniform(_LEAST_SHARE, _MOST_SHARE)  # noqa: S311


_IFF_UP, _IFF_BROADCAST, _IFF_LOOPBACK, _IFF_MULTICAST = 0x1, 0x2, 0x8, 0x1000
_STATISTICS = "statistics/"
_GLOB = re.compile(r"\[(!?)(\]?[^]/]+)\]|.", re.DOTALL)
_SPECIAL_IN_BRACKETS = re.compile(r"[\\\[\]^&~|]")
_FOLDER = "/sys/class/net"


class _Interface(NamedTuple):
    """The kernel's data about one interface. ``speed`` is ``None`` if reading it is an error (EINVAL)."""

    operstate: str
    carrier_changes: int
    speed: str | None
    flags: int
    mbps: int
    carried_s: float


_ATTRIBUTES: Mapping[str, Callable[[_Interface], str | None]] = {
    "carrier_changes": lambda interface: str(interface.carrier_changes),
    # In the kernel an interface starts without carrier, so its first change is to up.
    "carrier_down_count": lambda interface: str(interface.carrier_changes // 2),
    "carrier_up_count": lambda interface: str((interface.carrier_changes + 1) // 2),
    "flags": lambda interface: f"0x{interface.flags:x}",
    "operstate": lambda interface: interface.operstate,
    "speed": lambda interface: interface.speed,
}


class Files:
    """The files of a host at one time. Every host also has a loopback and a management interface."""

    def __init__(self, world: World, host: str, now: float) -> None:
        up_s = now - world.boots[host].at
        self._seed = world.seed
        self._host = host
        self._interfaces = {
            "lo": _Interface("unknown", 0, None, _IFF_UP | _IFF_LOOPBACK, 100, up_s),
            "eno1": _Interface("up", 2, "1000", _IFF_UP | _IFF_BROADCAST | _IFF_MULTICAST, 1000, up_s),
            **dict(_fabric(world, host)),
        }

    def matching(self, pattern: str) -> Sequence[str]:
        """The paths to which a shell expands a pattern, in the shell's order; empty if no file matches."""
        return _matching(tuple(self._interfaces), pattern)

    def read(self, path: str) -> str | None:
        """The content of a file; ``None`` if reading it is an error (EINVAL), such as the speed of a link that is down.

        Raises:
            KeyError: there is no such file.
        """
        name, attribute = _paths(tuple(self._interfaces))[path]
        value = self._value(name, self._interfaces[name], attribute)
        return None if value is None else f"{value}\n"

    def _value(self, name: str, interface: _Interface, attribute: str) -> str | None:
        if value_of := _ATTRIBUTES.get(attribute):
            return value_of(interface)
        source = f"{self._seed}/{self._host}/{name}"
        counter = attribute.removeprefix(_STATISTICS)
        return str(counted(counter, source, speed_mbps=interface.mbps, carried_s=interface.carried_s))


def first_lines(files: Files, patterns: Sequence[str]) -> str:
    """The first line of each readable file, with its path: the result of a shell's own ``read``."""
    return "".join(
        f"{path}:{content.partition(chr(10))[0]}\n"
        for pattern in patterns
        for path in files.matching(pattern)
        if (content := files.read(path)) is not None
    )


def grep(files: Files, patterns: Sequence[str]) -> tuple[int, str]:
    """``grep -sH . PATTERN...`` as a shell runs it: exit status and output.

    The shell keeps a pattern that matches nothing as it is, so grep gets the name of a missing file. ``-s`` hides the
    error message, but the exit status is 2, even if lines were found.
    """
    lines: list[str] = []
    failed = False
    for pattern in patterns:
        paths = files.matching(pattern)
        failed = failed or not paths
        for path in paths:
            content = files.read(path)
            if content is None:
                failed = True
            else:
                lines += [f"{path}:{line}\n" for line in content.splitlines() if line]
    return (2 if failed else 0 if lines else 1), "".join(lines)


def cat(files: Files, path: str) -> tuple[int, str, str]:
    """``cat PATH``: exit status, output and error message."""
    try:
        content = files.read(path)
    except KeyError:
        return 1, "", f"cat: {path}: No such file or directory\n"
    return (1, "", f"cat: {path}: Invalid argument\n") if content is None else (0, content, "")


def _fabric(world: World, host: str) -> Iterator[tuple[str, _Interface]]:
    for name, view in world.interfaces(host).items():
        mbps = speed_mbps(view)
        yield (
            name,
            _Interface(
                operstate="up" if view.carrier else "down",
                carrier_changes=view.carrier_changes,
                speed=(str(mbps) if view.carrier else "-1") if view.admin_up else None,
                flags=_IFF_BROADCAST | _IFF_MULTICAST | (_IFF_UP if view.admin_up else 0),
                mbps=mbps,
                carried_s=view.carried_s,
            ),
        )


@lru_cache(maxsize=4096)
def _matching(interfaces: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    wanted = re.compile(_GLOB.sub(_part, pattern))
    return tuple(sorted(path for path in _paths(interfaces) if wanted.fullmatch(path)))


@lru_cache(maxsize=1024)
def _paths(interfaces: tuple[str, ...]) -> Mapping[str, tuple[str, str]]:
    """Interface and attribute of each file of a host with these interfaces; hosts with equal names share them."""
    attributes = [*_ATTRIBUTES, *(_STATISTICS + counter for counter in COUNTERS)]
    return {f"{_FOLDER}/{name}/{each}": (name, each) for name in interfaces for each in attributes}


def _part(found: re.Match[str]) -> str:
    """A part of a shell's pattern as a regular expression; wildcards do not match a slash."""
    if found[2]:
        return f"[{'^/' if found[1] else ''}{re.sub(_SPECIAL_IN_BRACKETS, _escaped, found[2])}]"
    return {"*": "[^/]*", "?": "[^/]"}.get(found[0]) or re.escape(found[0])


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"
