"""Parses ``sfputil show eeprom -d -p PORT``: the present values of the module, in indented lines of ``Key: value``.

Some versions omit a value that a module does not state, others print ``N/A``. Some pad the colons. The type of the
module may be on separate lines below ``Specification compliance``.
"""

import re
from enum import Enum

from lumctl_sonic.facts import Facts

_LINE = re.compile(r"(?P<indent>\s+)(?P<key>[^:]{1,80}?)\s*:(?P<value>.*)")
_LONGEST = 500
_NAMES = {
    "vendor name": "manufacturer",
    "vendor pn": "model",
    "identifier": "type",
    "specification compliance": "specification_compliance",
    "media interface technology": "media_interface_technology",
    "vcc": "voltage",
    "requested laser frequency": "laser_config_freq",
    "requested tx power": "tx_config_power",
}


class Slot(Enum):
    """The content of a port according to ``sfputil``."""

    MODULE = "detected"
    EMPTY = "not detected"
    COPPER = "is not applicable for rj45 port"


def slot_of(text: str, port: str) -> Slot | None:
    """The content of this port according to ``sfputil``; ``None`` if its output does not name the port."""
    for line in text.splitlines():
        name, _, said = line.partition(": SFP EEPROM ")
        if name.strip() == port:
            return next((slot for slot in Slot if slot.value == said.strip().lower()), None)
    return None


def facts_of(text: str) -> Facts:
    """All facts of a module, under the database's names if these differ."""
    found: dict[str, str] = {}
    last, indent = "", 0
    for line in text.splitlines():
        match = _LINE.fullmatch(line[:_LONGEST])
        if match is None:
            continue
        key, value = match["key"].strip().lower(), match["value"].strip()
        if last == "specification_compliance" and len(match["indent"]) > indent:
            found[last] = f"{found[last]} {value}".strip()[:_LONGEST]
            continue
        last, indent = _NAMES.get(key, key), len(match["indent"])
        found.setdefault(last, value)
    return found
