"""A chassis that is one document, and answers subtree filters."""

from xml.etree import ElementTree as ET

import pytest

from lumctl.sim.chassis.tree import KEYS
from lumctl.sim.netconf.tree import selected, trimmed

NAMES = (
    'xmlns="http://openconfig.net/yang/platform" xmlns:x="http://openconfig.net/yang/platform/transceiver" '
    'xmlns:t="http://openconfig.net/yang/terminal-device" xmlns:a="http://openconfig.net/yang/alarms/types"'
)


class Document:
    """Stands in for the client; ``asked`` are the filters that it got."""

    def __init__(self, text):
        self._root = trimmed(ET.fromstring(f"<data {NAMES}>{text}</data>"))  # noqa: S314 - our own text
        self.asked = []

    def get(self, subtree):
        self.asked.append(subtree)
        return selected(self._root, ET.fromstring(f"<filter>{subtree}</filter>"), KEYS)  # noqa: S314


@pytest.fixture
def document():
    """Components, and whatever stands beside them."""
    return lambda components, beside="": Document(f"<components>{components}</components>{beside}")
