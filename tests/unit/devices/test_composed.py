"""A transponder that is managed by a chassis, and whose traffic is a host's."""

import pytest

from lumctl.devices.base import BaseTransponder
from lumctl.devices.errors import UnsupportedError
from lumctl.devices.protocols import DriverContext, TransponderDriver
from lumctl.devices.registry import Composed
from lumctl.devices.types import Capability, Neighbour, OpticsReading

ALL = frozenset({Capability.READ_OPTICS, Capability.SET_TRANSMIT, Capability.SET_CHANNEL, Capability.READ_NEIGHBOURS})


class Half(BaseTransponder):
    """One of the two, which notes what it was asked."""

    api_version = 1
    proven = "a test"

    def __init__(self, name, capabilities):
        super().__init__(DriverContext(name))
        self.capabilities = capabilities
        self.asked = []

    def read_optics(self):
        self.asked.append("optics")
        return OpticsReading(0.0)

    def set_transmit(self, enabled):
        self.asked.append(f"transmit {enabled}")

    def transmitting(self):
        self.asked.append("transmitting")
        return True

    def announce(self, mark):
        self.asked.append(f"announce {mark}")

    def neighbours(self):
        self.asked.append("neighbours")
        return (Neighbour("h2", "eth2", 0.0),)

    def close(self):
        self.asked.append("close")


def composed(chassis=ALL, host=ALL):
    halves = Half("chassis", chassis), Half("host", host)
    return Composed(*halves), *halves


def test_light_is_the_chassis_s_and_neighbours_are_the_host_s():
    both, chassis, host = composed()
    both.read_optics()
    both.set_transmit(enabled=True)
    both.transmitting()
    both.announce("0a")
    both.neighbours()
    assert chassis.asked == ["optics", "transmit True", "transmitting"]
    assert host.asked == ["announce 0a", "neighbours"]


def test_what_one_does_not_declare_is_asked_of_the_other():
    both, chassis, host = composed(frozenset({Capability.READ_NEIGHBOURS}), frozenset({Capability.READ_OPTICS}))
    both.read_optics()
    both.neighbours()
    assert (chassis.asked, host.asked) == (["neighbours"], ["optics"])
    assert both.capabilities == {Capability.READ_NEIGHBOURS, Capability.READ_OPTICS}


def test_what_neither_declares_is_refused():
    both, _, _ = composed(frozenset(), frozenset())
    with pytest.raises(UnsupportedError):
        both.set_channel(193_100_000)
    with pytest.raises(UnsupportedError):
        both.set_output_power(0.0)


def test_it_is_a_driver_and_closes_both():
    both, chassis, host = composed()
    assert isinstance(both, TransponderDriver)
    assert both.proven == "a test; its host: a test"
    both.close()
    assert chassis.asked == host.asked == ["close"]
