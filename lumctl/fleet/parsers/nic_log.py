"""Network drivers' lines in the kernel log: links, firmware, queues, heat, cables, and the cards' PCI Express links.

The expressions are in the common subset of ``grep -E`` and Python, because the host selects the lines by them.
"""

import re

from lumctl.fleet.parsers.fields import find_pci
from lumctl.fleet.readings import NicEvent, NicEventKind

_DRIVERS = r"(mlx4_core|mlx4_en|mlx5_core|bnxt_en|ice|i40e|ixgbe|ionic|qede|cxgb4|sfc|ena|efa|gve|infiniband)"
_SIGNS = (
    (NicEventKind.COMMAND, r"leak of a command resource|canceled on out of queue timeout|No done completion"),
    (NicEventKind.QUEUE, r"CQ error on CQN|dump error cqe|WC error: "),
    # The administration queue of EFA. Without this queue nothing can be set up.
    (NicEventKind.FATAL, r"Admin queue is closed|send any completion for|[Ww]ait for completion \(polling\) timeout"),
    (NicEventKind.FATAL, r"Reset indication didn.t turn|Device isn.t ready"),
    (NicEventKind.PCIE, r"PCIe Bus Error|AER: |PCIe link (lost|down)|insufficient power on the PCIe"),
    (NicEventKind.TX_TIMEOUT, r"[Tt][Xx][ _-]?[Tt]imeout|transmit queue .*timed out|T[xX] (Unit )?[Hh]ang"),
    (NicEventKind.TEMPERATURE, r"[Tt]emperature|[Oo]verheat|[Tt]hermal"),
    (NicEventKind.PLUGGED, r"Cable plugged"),
    (NicEventKind.CABLE_ERROR, r"Cable error|Port module event\[error\]"),
    (NicEventKind.CABLE, r"[Cc]able|Port module event|Q?SFP\+? module|module type was detected|module was not recogni"),
    (NicEventKind.LINK_DOWN, r"[Ll]ink (is )?([Dd]own|DOWN)"),
    (NicEventKind.LINK_UP, r"[Ll]ink (is )?([Uu]p|UP)"),
    (NicEventKind.FATAL, r"[Ff]atal|FATAL|assert|[Hh]ealth (compromised|recovery)|miss count|[Ii]nternal error"),
    (NicEventKind.FATAL, r"synd(rome)? 0x|[Rr]eset (failed|due to)|not respond|unrecover|[Ff]irmware (hang|crash)"),
)
"""The expression of each kind, in the order of matching. Heat and cables come first: such lines may say "fatal" too.

The host's shell holds these in single quotes, so none of them may contain one.
"""
_WITHOUT_ADDRESS = ("mlx4_en", "infiniband")
"""Drivers whose lines name a network or RDMA device but no PCI address."""

_WATCHDOG = r"NETDEV WATCHDOG: "
NIC_PATTERN = f"{_WATCHDOG}|{_DRIVERS}[ :].*(" + "|".join(sign for _, sign in _SIGNS) + ")"
"""The expression that selects the lines of this module on the host."""

_KINDS = tuple((kind, re.compile(sign)) for kind, sign in _SIGNS)
_LINE = re.compile(
    rf"\b{_DRIVERS}:? (?P<pci>[0-9a-fA-F]{{4,8}}:[0-9a-fA-F]{{2}}:[0-9a-fA-F]{{2}}\.[0-7])?:? ?"
    r"(?:(?P<interface>[A-Za-z][\w.@-]{0,31})(?: \([^)]{0,40}\))?: )?(?P<text>.*)",
    re.ASCII,
)
_STUCK = re.compile(
    rf"{_WATCHDOG}(?:CPU: \d+: )?(?P<interface>[^\s:]{{1,32}}) \((?P<driver>\w{{1,32}})\): (?P<text>.*)"
)
_RDMA_NAME = re.compile(r"mlx[0-9]_|rdmap|efa_|bnxt_re|irdma|ib")
_NOT_AN_INTERFACE = re.compile(r"AER|Port module event.*|Error|.*\d{3,}")


def nic_event(line: str, at: float | None, stamp: str) -> NicEvent | None:
    """The event of a line of a kernel log; ``None`` for every other line."""
    if found := _STUCK.search(line):
        return NicEvent(at, found["interface"], None, NicEventKind.TX_TIMEOUT, found["text"].strip(), stamp)
    found = _LINE.search(line)
    if found is None:
        return None
    interface, text = found["interface"], found["text"].strip()
    named_alone = found["pci"] or found[1] in _WITHOUT_ADDRESS
    if interface and (_NOT_AN_INTERFACE.fullmatch(interface) or not named_alone):
        interface, text = None, f"{interface}: {text}"
    kind = next((kind for kind, sign in _KINDS if sign.search(text)), None)
    pci = find_pci(found["pci"] or "")
    if kind is None or (interface is None and pci is None):
        return None
    return NicEvent(at, interface, pci, kind, text, stamp)


def is_rdma_device(name: str) -> bool:
    """Whether a name is that of an RDMA device (``mlx5_0``, ``rdmap16s27``) and not of a network interface."""
    return _RDMA_NAME.match(name) is not None
