"""The few files of /sys that the probes read on a simulated host, and ``grep -sH .`` and ``cat`` over them."""

import re
from collections.abc import Mapping

from lumctl.sim.module import speed_mbps
from lumctl.sim.world import LinkView

_IFF_UP, _IFF_BROADCAST, _IFF_LOOPBACK, _IFF_MULTICAST = 0x1, 0x2, 0x8, 0x1000

Files = Mapping[str, str | None]
"""Path -> content; ``None`` where reading the file is an error (EINVAL), as the speed of a link that is down."""


def files_of(links: Mapping[str, LinkView]) -> dict[str, str | None]:
    """The files of a host with these interfaces; every host also has a loopback and a management interface."""
    files = _interface("lo", "unknown", 0, None, _IFF_UP | _IFF_LOOPBACK)
    files |= _interface("eno1", "up", 2, "1000", _IFF_UP | _IFF_BROADCAST | _IFF_MULTICAST)
    for name, view in links.items():
        up = "-1" if not view.carrier else str(speed_mbps(view))
        flags = _IFF_BROADCAST | _IFF_MULTICAST | (_IFF_UP if view.admin_up else 0)
        state = "up" if view.carrier else "down"
        files |= _interface(name, state, view.carrier_changes, up if view.admin_up else None, flags)
    return files


def grep(files: Files, patterns: list[str]) -> tuple[int, str]:
    """``grep -sH . PATTERN...`` as a shell runs it: exit status and output.

    A pattern that matches nothing stays as it is and is then a file that does not exist; ``-s`` hides the complaint,
    but the exit status is 2 all the same, even if lines were found.
    """
    lines: list[str] = []
    failed = False
    for pattern in patterns:
        wanted = re.compile("/".join(map(_segment, pattern.split("/"))))
        paths = sorted(path for path in files if wanted.fullmatch(path))
        failed = failed or not paths
        for path in paths:
            content = files[path]
            if content is None:
                failed = True
            else:
                lines += [f"{path}:{line}\n" for line in content.splitlines() if line]
    return (2 if failed else 0 if lines else 1), "".join(lines)


def cat(files: Files, path: str) -> tuple[int, str, str]:
    """``cat PATH``: exit status, output and complaint."""
    if path not in files:
        return 1, "", f"cat: {path}: No such file or directory\n"
    content = files[path]
    return (1, "", f"cat: {path}: Invalid argument\n") if content is None else (0, content, "")


def _segment(pattern: str) -> str:
    return "".join("[^/]*" if character == "*" else re.escape(character) for character in pattern)


def _interface(name: str, state: str, changes: int, speed: str | None, flags: int) -> dict[str, str | None]:
    folder = f"/sys/class/net/{name}"
    return {
        f"{folder}/operstate": f"{state}\n",
        f"{folder}/carrier_changes": f"{changes}\n",
        f"{folder}/speed": None if speed is None else f"{speed}\n",
        f"{folder}/flags": f"0x{flags:x}\n",
    }
