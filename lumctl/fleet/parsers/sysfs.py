"""``/sys/class/net`` and ``/sys/class/infiniband`` as ``grep -sH .`` prints them: one ``path:value`` a line.

InfiniBand is also read from a table of ``DEVICE/ports/N/...`` and value, separated by a tab, which is how it is
captured to a file.
"""

import re
from collections import defaultdict

from lumctl.fleet.parsers.numbers import leading_int
from lumctl.fleet.readings import InfinibandPort, InterfaceReading

_NET = re.compile(r"/sys/class/net/([^/]+)/(operstate|carrier_changes|speed):(.*)")
_INFINIBAND = re.compile(r"(?:/sys/class/infiniband/)?([^/\s:]+)/ports/([0-9]{1,4})/([\w/]+)[:\t](.*)")
_NUMBERED_STATE = re.compile(r"[0-9]+:\s*(.+)")


def parse_interfaces(text: str, taken_at: float) -> dict[str, InterfaceReading]:
    """Network interfaces by name."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for line in text.splitlines():
        if match := _NET.match(line):
            name, attribute, value = match.groups()
            found[name][attribute] = value.strip()
    return {
        name: InterfaceReading(
            name=name,
            taken_at=taken_at,
            operstate=values.get("operstate") or None,
            carrier_changes=leading_int(values.get("carrier_changes")),
            speed_mbps=_speed(values.get("speed")),
        )
        for name, values in found.items()
    }


def _speed(value: str | None) -> int | None:
    speed = leading_int(value)
    # Without carrier the kernel prints -1, or 4294967295 where a driver stores it unsigned.
    return speed if speed is not None and 0 <= speed < 2**32 - 1 else None


def parse_infiniband(text: str, taken_at: float) -> tuple[InfinibandPort, ...]:
    """InfiniBand and RoCE ports, in the order of the text."""
    found: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for line in text.splitlines():
        if match := _INFINIBAND.match(line):
            device, port, attribute, value = match.groups()
            found[device, int(port)][attribute] = value.strip()
    return tuple(
        InfinibandPort(
            device=device,
            port=port,
            taken_at=taken_at,
            state=_state(values.get("state")),
            phys_state=_state(values.get("phys_state")),
            rate=values.get("rate") or None,
            counters=_counters(values),
        )
        for (device, port), values in found.items()
    )


def _state(value: str | None) -> str | None:
    """``4: ACTIVE`` -> ``ACTIVE``."""
    if not value:
        return None
    numbered = _NUMBERED_STATE.fullmatch(value)
    return numbered[1] if numbered else value


def _counters(values: dict[str, str]) -> dict[str, int]:
    prefix = "counters/"
    return {
        attribute.removeprefix(prefix): count
        for attribute, value in values.items()
        if attribute.startswith(prefix) and (count := leading_int(value)) is not None
    }
