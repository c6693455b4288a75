"""The drivers that the wrong ones are made from keep the contract, so that each wrong one is wrong in one thing."""

import socket
import time

import pytest
from wrong_drivers import DARK, INPUTS, LIT, PORTS, PUCS, RIGHT, Twin

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
from lumctl.devices.types import PucState
from lumctl.devices.ways import Direct


def context(address, **more) -> DriverContext:
    sizes = {"puc_count": PUCS, "port_count": PORTS, "input_count": INPUTS}
    return DriverContext("d1", address, Direct(address), now=time.time, timeout_s=2.0, **(sizes | more))


@pytest.fixture
def twin():
    with Twin() as served:
        yield served


@pytest.fixture
def opened(twin):
    def open_driver(name, **more):
        return RIGHT[name].driver(context(twin.address, **more))

    return open_driver


@pytest.fixture
def nowhere():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


class TestMesh(MeshContract):
    @pytest.fixture(params=["right-mesh", "timed-mesh"])
    def mesh(self, request, twin, opened, nowhere):
        name = request.param
        return MeshUnderTest(
            opened(name),
            PUCS,
            truth=lambda: dict(enumerate(map(PucState, twin.device.held()))),
            other=opened(name),
            wrong_size=opened(name, puc_count=PUCS + 1),
            unreachable=RIGHT[name].driver(context(nowhere)),
        )


class TestSwitch(SwitchContract):
    @pytest.fixture
    def switch(self, twin, opened):
        return SwitchUnderTest(
            opened("right-switch"),
            PORTS,
            INPUTS,
            truth=lambda: twin.device.joins,
            other=opened("right-switch"),
            dark=DARK,
            lit=LIT,
        )


class TestTransponder(TransponderContract):
    @pytest.fixture
    def transponder(self, twin, opened):
        device = twin.device
        return TransponderUnderTest(
            opened("right-transponder"),
            heard=("h1", "eth2"),
            truth=lambda: device.laser,
            told=lambda: (device.channel_mhz, device.target_dbm),
        )


class TestPower(PowerContract):
    @pytest.fixture
    def power(self, twin, opened):
        return PowerUnderTest(opened("right-power"), truth=lambda: twin.device.on, orders=lambda: twin.device.orders)
