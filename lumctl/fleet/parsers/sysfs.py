"""``/sys/class/net`` and ``/sys/class/infiniband`` as ``grep -sH .`` prints them: one ``path:value`` per line.

InfiniBand is also read from the table of a capture: ``DEVICE/ports/N/...`` and the value, separated by a tab.
"""

import re
from collections import defaultdict

from lumctl.fleet.parsers.fields import leading_int, lines_of, whole_count
from lumctl.fleet.readings import InfinibandPort, InterfaceReading, PortCounters

INTERFACE_COUNTERS = (
    "carrier_up_count",
    "carrier_down_count",
    *(
        f"statistics/{direction}_{what}"
        for what in ("bytes", "packets", "errors", "dropped", "fifo_errors")
        for direction in ("rx", "tx")
    ),
    "statistics/rx_crc_errors",
    "statistics/rx_missed_errors",
    "statistics/tx_carrier_errors",
)
"""The counters of a network interface that rules or operators need, as files below its folder."""

INFINIBAND_COUNTERS = (
    *(
        f"counters/{name}"
        for name in (
            "link_downed",
            "link_error_recovery",
            "symbol_error",
            "local_link_integrity_errors",
            "excessive_buffer_overrun_errors",
            "port_rcv_errors",
            "port_rcv_remote_physical_errors",
            "port_xmit_discards",
            "port_xmit_wait",
            "port_rcv_data",
            "port_xmit_data",
        )
    ),
    *(
        f"hw_counters/{name}"
        for name in (
            "out_of_buffer",
            "out_of_sequence",
            "packet_seq_err",
            "local_ack_timeout_err",
            "rnr_nak_retry_err",
            "roce_adp_retrans",
            "roce_slow_restart",
            "rx_icrc_encapsulated",
            "np_cnp_sent",
            "rp_cnp_handled",
        )
    ),
)
"""The counters of an InfiniBand or RoCE port, as files below its folder.

Each file costs a request to the adapter's firmware, so the list is short.
"""

_NET = re.compile(r"/sys/class/net/([^/]+)/(operstate|carrier_changes|speed):(.*)")
_VIRTUAL = re.compile(
    r"lo|docker\d*|veth\w+|br-\w+|virbr\d+(?:-nic)?|cni\d+|flannel\S*|cali\w+|cilium\S*|lxc\w+|tun\d+|tap\w+|dummy\d*"
    r"|bond\d+|team\d+|vxlan\S*|kube\S*|ip6tnl\d+|sit\d+|gre\w*|ifb\d+|wg\d+|podman\d+|\S+\.\d+|\S+@\S+"
)
_NET_COUNTER = re.compile(r"/sys/class/net/([^/]+)/(?:statistics/)?(\w+):(.*)")
_INFINIBAND = re.compile(r"(?:/sys/class/infiniband/)?([^/\s:]+)/ports/([0-9]{1,4})/([\w/]+)[:\t](.*)")
_BOARD = re.compile(r"(?:/sys/class/infiniband/)?([^/\s:]+)/board_id[:\t](.{1,64})")
_NUMBERED_STATE = re.compile(r"[0-9]+:\s*(.+)")


_STATES = frozenset({"unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"})
"""Every state of an interface that the kernel has a word for."""
_SHAPE = re.compile(r"(?:/sys/class/(?:net|infiniband)/[!-~]+?:|[\w.-]+/[\w/.-]+\t)[ -~]*", re.ASCII)
_NOT_COUNTED = "N/A"
"""What the kernel prints for a counter that an adapter does not have."""


def unread_line(text: str) -> str | None:
    """The first line that the kernel would not write: it is not a path and a value, or the value has the wrong form."""
    return next((line for line in lines_of(text) if line.strip() and not _is_sound(line)), None)


def _is_sound(line: str) -> bool:
    if not _SHAPE.fullmatch(line):
        return False
    if match := _NET.match(line):
        _, attribute, value = match.groups()
        checks = {"operstate": value in _STATES, "speed": leading_int(value) is not None}
        return checks.get(attribute, whole_count(value) is not None)
    if match := _NET_COUNTER.match(line):
        return whole_count(match[3]) is not None
    match = _INFINIBAND.match(line)
    counts = match is not None and "counters/" in match[3] and not match[4].startswith(_NOT_COUNTED)
    return not counts or whole_count(match[4] if match else None) is not None


def parse_interfaces(text: str, taken_at: float) -> dict[str, InterfaceReading]:
    """Network interfaces by name."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for line in lines_of(text):
        if match := _NET.match(line):
            name, attribute, value = match.groups()
            found[name][attribute] = value.strip()
    return {
        name: InterfaceReading(
            name=name,
            taken_at=taken_at,
            operstate=_known_state(values.get("operstate")),
            carrier_changes=whole_count(values.get("carrier_changes")),
            speed_mbps=_speed(values.get("speed")),
        )
        for name, values in found.items()
    }


def is_virtual(name: str) -> bool:
    """Whether a name is that of an interface without a port of its own, such as a bridge, a bond or a tunnel."""
    return _VIRTUAL.fullmatch(name) is not None


def _known_state(value: str | None) -> str | None:
    return value if value in _STATES else None


def _speed(value: str | None) -> int | None:
    speed = leading_int(value)
    # If there is no carrier, the kernel prints -1, or 4294967295 if the driver stores the speed unsigned.
    return speed if speed is not None and 0 <= speed < 2**32 - 1 else None


def parse_infiniband(text: str, taken_at: float) -> tuple[InfinibandPort, ...]:
    """InfiniBand and RoCE ports, in the order of the text."""
    found: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    boards: dict[str, str] = {}
    for line in lines_of(text):
        if match := _INFINIBAND.match(line):
            device, port, attribute, value = match.groups()
            found[device, int(port)][attribute] = value.strip()
        elif match := _BOARD.match(line):
            boards[match[1]] = match[2].strip()
    return tuple(
        InfinibandPort(
            device=device,
            port=port,
            taken_at=taken_at,
            state=_state(values.get("state")),
            phys_state=_state(values.get("phys_state")),
            rate=values.get("rate") or None,
            board=boards.get(device) or None,
        )
        for (device, port), values in found.items()
    )


def _state(value: str | None) -> str | None:
    """``4: ACTIVE`` -> ``ACTIVE``."""
    if not value:
        return None
    numbered = _NUMBERED_STATE.fullmatch(value)
    return numbered[1] if numbered else value


def parse_counters(text: str, taken_at: float) -> dict[str, PortCounters]:
    """The counters of network interfaces (``eth2``) and InfiniBand ports (``mlx5_0/1``), by their names.

    A line that does not end in a whole number is ignored: it may be cut, and part of a number is a wrong number.
    """
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in lines_of(text):
        if match := _NET_COUNTER.match(line):
            name, counter, value = match.groups()
        elif match := _INFINIBAND.match(line):
            device, port, attribute, value = match.groups()
            name, (folder, _, counter) = f"{device}/{int(port)}", attribute.partition("/")
            if folder not in {"counters", "hw_counters"}:
                continue
        else:
            continue
        count = whole_count(value)
        if count is not None:
            found[name].setdefault(counter, count)
    return {name: PortCounters(name, taken_at, values) for name, values in found.items()}
