"""The contract suite over the drivers of Polatis switches: SCPI on its twin, NETCONF on ours and on netconfd."""

import math

import pytest
from lumctl_polatis import PolatisScpi

from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import SwitchContract, SwitchUnderTest
from lumctl.devices.types import DeviceReading
from lumctl.devices.ways import Direct
from lumctl.sim.switches.scpi import ScpiSwitch
from lumctl.sim.world.switch import SwitchState

PORTS = 16
LIT, DARK = 2, 3


def shown(ports: tuple[int, ...]) -> dict[int, float]:
    """Light at one port."""
    return {port: -7.25 if port == LIT else -math.inf for port in ports}


def opened(address: str, inputs: int, *, ports: int = PORTS) -> PolatisScpi:
    return PolatisScpi(
        DriverContext(device="x1", address=address, way=Direct(address), port_count=ports, input_count=inputs)
    )


@pytest.fixture(params=[8, PORTS], ids=["8 by 8", "any to any"])
def inputs(request) -> int:
    return request.param


@pytest.fixture
def state(inputs) -> SwitchState:
    return SwitchState(PORTS, inputs)


@pytest.fixture
def twin(state):
    served = ScpiSwitch(state.held, powers=shown)
    served.service.open()
    yield served
    served.close()


class TestScpi(SwitchContract):
    @pytest.fixture
    def switch(self, twin, state, inputs, nobody):
        address = twin.service.address
        drivers = [opened(address, inputs), opened(address, inputs), opened(nobody, inputs)]
        wrong = opened(address, inputs, ports=PORTS * 2)
        yield SwitchUnderTest(
            drivers[0],
            port_count=PORTS,
            input_count=inputs,
            truth=lambda: state.joins,
            other=drivers[1],
            unreachable=drivers[2],
            wrong_size=wrong,
            lit=LIT,
            dark=DARK,
            reading=lambda: DeviceReading(0.0, powers_dbm=shown(tuple(range(PORTS)))),
        )
        for driver in (*drivers, wrong):
            driver.close()

    def test_only_touched_ports_are_named_on_the_line(self, ready, twin):
        """What replaces or removes everything is never sent."""
        ready.write({0: ready.outputs[0]})
        ready.write({0: None, 1: ready.outputs[0]})
        written = [line for line in twin.lines if "*CLS" in line]
        first = ready.outputs[0] + 1
        assert written[-2:] == [
            f"*CLS;:oxc:swit:conn:add (@1),(@{first});*OPC?",
            f"*CLS;:oxc:swit:conn:sub (@1),(@{first});:oxc:swit:conn:add (@2),(@{first});*OPC?",
        ]
        assert not any("only" in line or "disc" in line for line in twin.lines)
