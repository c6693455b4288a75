"""The contract of lumctl's drivers on this one: subclass the suite, and give it the driver and its twin."""

import math
import socket
from collections.abc import Iterator

import pytest
from lumctl_example_switch import ExampleSwitch
from lumctl_example_switch.twin import Twin

from lumctl.devices.errors import DeviceBusyError, DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import SwitchContract, SwitchUnderTest
from lumctl.devices.testing.campaign import Rig, TroubleCount, run_sequence
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.types import DeviceReading
from lumctl.devices.ways import Direct, Way

PORTS, INPUTS = 16, 8
OWN = range(5)
EGRESSES = [str(port) for port in range(INPUTS, PORTS - 3)]
FREE = "-"
"""How the campaign names an ingress port that is joined to nothing."""


def context(address: str, way: Way | None = None, timeout_s: float = 5.0, ports: int = PORTS) -> DriverContext:
    """What lumctl would give the driver; ``http://`` because the twin has no certificate."""
    return DriverContext(
        "s1",
        f"http://{address}",
        way or Direct(address),
        port_count=ports,
        input_count=INPUTS,
        timeout_s=timeout_s,
    )


def nobody() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def twin() -> Iterator[Twin]:
    """Serve the switch for one test."""
    with Twin(PORTS, INPUTS) as serving:
        yield serving


class TestExampleSwitch(SwitchContract):
    """Every promise that lumctl relies on."""

    @pytest.fixture
    def switch(self, twin: Twin) -> SwitchUnderTest:
        """Give the driver on its twin: light of 0.5 mW enters at our port 1, none at port 0."""
        twin.milliwatts[1] = 0.5
        return SwitchUnderTest(
            driver=ExampleSwitch(context(twin.address)),
            port_count=PORTS,
            input_count=INPUTS,
            truth=twin.truth,
            other=ExampleSwitch(context(twin.address)),
            unreachable=ExampleSwitch(context(nobody())),
            wrong_size=ExampleSwitch(context(twin.address, ports=PORTS + 1)),
            dark=0,
            lit=1,
            reading=lambda: DeviceReading(0.0, powers_dbm={0: -math.inf, 1: -3.01}),
        )


def test_what_is_believed_after_a_fault_is_true(twin: Twin) -> None:
    """Bytes are lost, answers cut: afterwards the truth is known, or known to be unknown."""
    twin.joins = {INPUTS: PORTS}  # somebody else's
    way = FaultyWay(Direct(twin.address))
    rig = Rig(
        open=lambda _: ExampleSwitch(context(twin.address, way)),
        truth=lambda: {port: str(twin.truth().get(port, FREE)) for port in range(INPUTS)},
        own=OWN,
        states=[FREE, *EGRESSES],
        way=way,
        most_bytes=2500,
    )
    tally = TroubleCount()
    for seed in range(12):
        run_sequence(rig, seed, tally)
    tally.require("done", "OutcomeUnknownError", "DeviceUnreachableError", faults=False)


def test_milliwatts_become_dbm(twin: Twin) -> None:
    """Nothing is lost of a weak light, and darkness is no small number."""
    twin.milliwatts[:4] = [1.0, 0.001, 1e-12, 0.0]
    powers = ExampleSwitch(context(twin.address)).read_powers((0, 1, 2, 3))
    assert powers == {0: 0.0, 1: pytest.approx(-30.0), 2: -float("inf"), 3: -float("inf")}


def test_a_change_that_does_not_end_in_time_leaves_the_outcome_unknown(twin: Twin) -> None:
    """And what the switch shows meanwhile is not believed."""
    driver = ExampleSwitch(context(twin.address, timeout_s=0.3))
    staged = driver.stage({0: INPUTS})
    twin.patience = 10_000
    with pytest.raises(OutcomeUnknownError):
        driver.commit(staged)
    with pytest.raises((DeviceBusyError, DeviceUnreachableError)):  # whichever of the two waits ends first
        driver.read_circuits()


def test_a_refusal_changes_nothing(twin: Twin) -> None:
    """The device's own words are in the error."""
    driver = ExampleSwitch(context(twin.address))
    staged = driver.stage({0: INPUTS})
    twin.refuses = True
    with pytest.raises(DeviceRefusedError, match="not now"):
        driver.commit(staged)
    assert driver.read_circuits() == {}
