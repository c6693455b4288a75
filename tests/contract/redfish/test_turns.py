"""Calls of several threads take turns, and waiting for one's turn is a part of the time of a call."""

import threading

import pytest
from lumctl_redfish import RedfishPower

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.protocols import DriverContext


def test_a_call_waits_for_its_turn_no_longer_than_it_may_take():
    driver = RedfishPower(DriverContext("bmc", "http://127.0.0.1:1", timeout_s=0.2))
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with driver._client.call():
            held.set()
            over.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    with pytest.raises(DeviceUnreachableError, match="another call is still in progress; nothing was sent"):
        driver.read_power()
    driver.close()  # and neither does an end
    over.set()
    holder.join()
