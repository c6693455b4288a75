"""Calls of several threads take turns, and waiting for one's turn is a part of the time of a call."""

import time

import pytest
from lumctl_redfish import RedfishPower

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.protocols import DriverContext


def test_a_call_waits_for_its_turn_no_longer_than_it_may_take():
    driver = RedfishPower(DriverContext("bmc", "http://127.0.0.1:1", timeout_s=0.2))
    started = time.monotonic()
    with driver._client.call():
        with pytest.raises(DeviceUnreachableError, match="another call is still under way; nothing was sent"):
            driver.read_power()
        driver.close()  # and neither does an end
    assert time.monotonic() - started < 2
