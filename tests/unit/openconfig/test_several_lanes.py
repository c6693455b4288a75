"""A transmitter of several lanes on a chassis without a candidate: each lane is an edit of its own."""

from contextlib import contextmanager
from xml.etree.ElementTree import Element

import pytest
from lumctl_openconfig import OpenConfigTransponder
from lumctl_openconfig.leaf import Leaf, PathStep, component, same_word

from lumctl.devices.errors import DeviceBusyError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext


class Client:
    """Takes edits until one fails."""

    def __init__(self, error, after):
        self.error, self.after, self.edits = error, after, 0

    def offers(self, _name):
        return False

    @contextmanager
    def locked(self, *_targets):
        yield

    deadline = one_call = locked

    def get_config(self, _source, _subtree):
        return Element("data")

    def edit_config(self, _config, *, target):
        assert target == "running"
        if self.edits == self.after:
            raise self.error
        self.edits += 1


@pytest.fixture
def write(monkeypatch):
    def written(error, *, after):
        driver = OpenConfigTransponder(DriverContext("t1", component="och-1"))
        driver._client = Client(error, after)
        lanes = (*component("module"), PathStep("x", "transceiver"), PathStep("x", "physical-channels"))
        leaves = tuple(Leaf((*lanes, PathStep("x", "channel", "index", n)), "tx-laser", same_word) for n in "12")
        monkeypatch.setattr(driver, "_switch", lambda: leaves)
        driver.set_transmit(enabled=False)

    return written


@pytest.mark.parametrize("error", [DeviceUnreachableError("gone; nothing was sent"), DeviceBusyError("locked")])
def test_a_second_lane_that_cannot_be_reached_leaves_the_first_one_dark(write, error):
    with pytest.raises(OutcomeUnknownError, match="1 of 2 edits were accepted"):
        write(error, after=1)
    with pytest.raises(type(error)):
        write(error, after=0)
