"""What network drivers say in the kernel log: links, firmware, queues, heat, cables, and their PCI Express links.

The expressions are those that both ``grep -E`` and Python understand, because the host picks the lines by them.
"""

import re

from lumctl.fleet.parsers.pci import find_pci
from lumctl.fleet.readings import NicEvent, NicEventKind

_DRIVERS = r"(mlx4_core|mlx4_en|mlx5_core|bnxt_en|ice|i40e|ixgbe|ionic|qede|cxgb4|sfc|ena|efa|gve)"
_SIGNS = (
    (NicEventKind.PCIE, r"PCIe Bus Error|AER: |PCIe link (lost|down)|insufficient power on the PCIe"),
    (NicEventKind.TX_TIMEOUT, r"[Tt][Xx][ _-]?[Tt]imeout|transmit queue .*timed out|T[xX] (Unit )?[Hh]ang"),
    (NicEventKind.TEMPERATURE, r"[Tt]emperature|[Oo]verheat|[Tt]hermal"),
    (NicEventKind.CABLE, r"[Cc]able|Port module event|Q?SFP\+? module|module type was detected|module was not recogni"),
    (NicEventKind.LINK_DOWN, r"[Ll]ink (is )?([Dd]own|DOWN)"),
    (NicEventKind.LINK_UP, r"[Ll]ink (is )?([Uu]p|UP)"),
    (NicEventKind.FATAL, r"[Ff]atal|FATAL|assert|[Hh]ealth (compromised|recovery)|miss count|[Ii]nternal error"),
    (NicEventKind.FATAL, r"synd(rome)? 0x|[Rr]eset (failed|due to)|not respond|unrecover|[Ff]irmware (hang|crash)"),
)
"""What tells each kind, in the order of asking: a line about heat or a cable may also call itself fatal."""

_WATCHDOG = r"NETDEV WATCHDOG: "
NIC_PATTERN = f"{_WATCHDOG}|{_DRIVERS}[ :].*(" + "|".join(sign for _, sign in _SIGNS) + ")"
"""What lets the lines of this module through on the host."""

_KINDS = tuple((kind, re.compile(sign)) for kind, sign in _SIGNS)
_LINE = re.compile(
    rf"\b{_DRIVERS}:? (?P<pci>[0-9a-fA-F]{{4,8}}:[0-9a-fA-F]{{2}}:[0-9a-fA-F]{{2}}\.[0-7])?:? ?"
    r"(?:(?P<interface>[A-Za-z][\w.@-]{0,31})(?: \([^)]{0,40}\))?: )?(?P<text>.*)",
    re.ASCII,
)
_STUCK = re.compile(
    rf"{_WATCHDOG}(?:CPU: \d+: )?(?P<interface>[^\s:]{{1,32}}) \((?P<driver>\w{{1,32}})\): (?P<text>.*)"
)
_NOT_AN_INTERFACE = re.compile(r"AER|Port module event.*|Error|.*\d{3,}")


def nic_event(line: str, at: float | None, stamp: str) -> NicEvent | None:
    """The event that a line of a kernel log tells of; ``None`` for every other line."""
    if found := _STUCK.search(line):
        return NicEvent(at, found["interface"], None, NicEventKind.TX_TIMEOUT, found["text"].strip(), stamp)
    found = _LINE.search(line)
    if found is None:
        return None
    interface, text = found["interface"], found["text"].strip()
    if interface and (_NOT_AN_INTERFACE.fullmatch(interface) or not found["pci"]) and "mlx4_en" not in line:
        interface, text = None, f"{interface}: {text}"
    kind = next((kind for kind, sign in _KINDS if sign.search(text)), None)
    pci = find_pci(found["pci"] or "")
    if kind is None or (interface is None and pci is None):
        return None
    return NicEvent(at, interface, pci, kind, text, stamp)
