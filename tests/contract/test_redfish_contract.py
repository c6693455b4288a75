"""The contract suite over the Redfish driver against a server of somebody else: sushy-tools' emulator."""

import json
import time
import urllib.request

import pytest
import sushy_emulator
from lumctl_redfish import RedfishPower

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import PowerContract, PowerUnderTest
from lumctl.devices.ways import Direct

FIRST, SECOND = "27946b59-9e44-4fa7-8e91-f3527a1ef094", "4c1d0a64-5d55-4f9e-8f0b-0f6f1a2a9f10"


def driver_for(address, *, component="") -> RedfishPower:
    return RedfishPower(
        DriverContext(
            device="bmc1",
            address=address,
            way=Direct(address),
            component=component,
            now=time.time,
        )
    )


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    """Sushy-tools' emulator of two machines: its address, and the file of its orders."""
    folder = tmp_path_factory.mktemp("emulator")
    with sushy_emulator.emulator(folder, {FIRST: "first", SECOND: "second"}, follows_s=1) as running:
        yield running


class TestSushyTools(PowerContract):
    @pytest.fixture
    def power(self, emulator, nobody) -> PowerUnderTest:
        address, orders = emulator
        under_test = PowerUnderTest(
            driver=driver_for(address, component=FIRST),
            truth=lambda: self.seen(address) == "On",
            orders=lambda: len(orders.read_text().splitlines()),
            unreachable=driver_for(f"http://{nobody}"),
            nobody=driver_for(address, component="third"),
        )
        yield under_test
        under_test.driver.close()

    @staticmethod
    def seen(address) -> str:
        with urllib.request.urlopen(f"{address}/redfish/v1/Systems/{FIRST}") as answer:  # noqa: S310 - our emulator
            return json.load(answer)["PowerState"]

    def test_the_other_machine_is_left_alone(self, power, emulator):
        assert power.switched(on=True)
        assert power.switched(on=False, force=True)
        assert SECOND not in emulator[1].read_text()

    def test_which_of_several_machines_must_be_said(self, emulator):
        with pytest.raises(DeviceRefusedError, match="manages 2 systems") as refused:
            driver_for(emulator[0]).set_power(on=True)
        assert FIRST in refused.value.hint
        assert SECOND in refused.value.hint
