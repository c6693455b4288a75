"""A driver that is recorded, and the replay of what was done to it."""

import pytest

from lumctl.devices.base import BaseTransponder
from lumctl.devices.protocols import DriverContext
from lumctl.devices.recording import record
from lumctl.devices.replay import ReplayTransponder
from lumctl.devices.types import Capability, OpticsReading


class Lamp(BaseTransponder):
    """A transmitter that can be switched, and whose readings are numbered."""

    api_version = 1
    capabilities = frozenset({Capability.SET_TRANSMIT, Capability.READ_OPTICS})
    proven = "a lamp"

    def __init__(self, context):
        super().__init__(context)
        self.on, self.readings = True, 0

    def set_transmit(self, enabled):
        self.on = enabled

    def transmitting(self):
        return self.on

    def read_optics(self):
        self.readings += 1
        return OpticsReading(float(self.readings), transmitting=self.on, vendor=self.context.component)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lamp.jsonl"


@pytest.fixture
def taped(path):
    """Record what a function does to a lamp, and open the replay of it."""

    def run(does, **options):
        lamp = record(Lamp(DriverContext(device="t1", component="ACME")), path, **options)
        does(lamp)
        lamp.close()
        lamp.close()
        return ReplayTransponder(DriverContext(device="t1", address=f"replay:{path}"))

    return run


@pytest.fixture
def make_lamp():
    return lambda **context: Lamp(DriverContext(**{"device": "t1", **context}))


@pytest.fixture
def blink():
    """What is done to a lamp, and holds of it."""
    return _blink


def _blink(lamp):
    assert lamp.transmitting()
    lamp.set_transmit(enabled=False)
    assert [lamp.read_optics().taken_at for _ in range(3)] == [1.0, 2.0, 3.0]
    assert not lamp.transmitting()
    lamp.set_transmit(enabled=True)
