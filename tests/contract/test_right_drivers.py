"""The drivers that the wrong ones are made from keep the contract, so that each wrong one is wrong in one thing."""

import socket
import time

import pytest
from wrong_drivers import DARK, INPUTS, LIT, PORTS, PUCS, RIGHT
from wrong_drivers.device import MeshTwin, PowerTwin, SwitchTwin, TransponderTwin

from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import (
    MeshContract,
    MeshUnderTest,
    PowerContract,
    PowerUnderTest,
    SwitchContract,
    SwitchUnderTest,
    TransponderContract,
    TransponderUnderTest,
)
from lumctl.devices.ways import Direct


def context(twin, address=None, **more) -> DriverContext:
    at = address or twin.address
    sizes = {"puc_count": PUCS, "port_count": PORTS, "input_count": INPUTS}
    return DriverContext("d1", at, Direct(at), now=time.time, timeout_s=2.0, **(sizes | more))


@pytest.fixture
def nowhere():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


class TestMesh(MeshContract):
    @pytest.fixture(params=["right-mesh", "timed-mesh", "late-mesh"])
    def mesh(self, request, nowhere):
        driver = RIGHT[request.param].driver
        with MeshTwin() as twin:
            yield MeshUnderTest(
                driver(context(twin)),
                PUCS,
                truth=twin.truth,
                other=driver(context(twin)),
                wrong_size=driver(context(twin, puc_count=PUCS + 1)),
                unreachable=driver(context(twin, nowhere)),
                reading=twin.reading,
                alarms=twin.alarms,
                completes_late=twin.completes_late,
            )


class TestSwitch(SwitchContract):
    @pytest.fixture(params=["right-switch", "port-switch"])
    def switch(self, request):
        driver = RIGHT[request.param].driver
        with SwitchTwin() as twin:
            yield SwitchUnderTest(
                driver(context(twin)),
                PORTS,
                INPUTS,
                truth=twin.truth,
                other=driver(context(twin)),
                dark=DARK,
                lit=LIT,
                ports=twin.ports,
                reading=twin.reading,
                alarms=twin.alarms,
            )


class TestTransponder(TransponderContract):
    @pytest.fixture
    def transponder(self):
        with TransponderTwin() as twin:
            yield TransponderUnderTest(
                RIGHT["right-transponder"].driver(context(twin)),
                heard=twin.heard,
                truth=twin.truth,
                told=twin.told,
                reading=twin.reading,
            )


class TestPower(PowerContract):
    @pytest.fixture
    def power(self):
        with PowerTwin() as twin:
            yield PowerUnderTest(
                RIGHT["right-power"].driver(context(twin)),
                truth=twin.truth,
                orders=twin.orders,
                others=twin.others,
                reading=twin.reading,
            )
