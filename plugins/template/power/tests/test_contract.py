"""The contract of lumctl's drivers on this one: subclass the suite, and give it the driver and its twin."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lumctl_example_power import ExamplePower
from twin import Twin

from lumctl.devices.errors import DeviceLoginError, InconsistentError
from lumctl.devices.logins import Login
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import PowerContract, PowerUnderTest
from lumctl.devices.testing.campaign import TroubleCount
from lumctl.devices.testing.campaign_settings import Knob, SettingsRig, run_settings
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.types import PowerReading
from lumctl.devices.ways import Direct, Way

SECRET = "open sesame"  # noqa: S105 - the twin's


@pytest.fixture
def login(tmp_path: Path) -> Login:
    """A login as an inventory names it: the secret lies in a file of its own."""
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_text(SECRET)
    return Login("operator", file)


@pytest.fixture
def twin() -> Iterator[Twin]:
    """Serve the strip for one test."""
    with Twin("operator", SECRET) as serving:
        yield serving


def driver_at(address: str, login: Login, outlet: str = "1", way: Way | None = None) -> ExamplePower:
    """What lumctl would make of the driver; ``http://`` because the twin has no certificate."""
    return ExamplePower(
        DriverContext(
            "strip1", f"http://{address}", way or Direct(address), login, component=outlet, timeout_s=5.0, now=time.time
        )
    )


def nobody() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


class TestExamplePower(PowerContract):
    """Every promise that lumctl relies on."""

    @pytest.fixture
    def power(self, twin: Twin, login: Login) -> PowerUnderTest:
        """Give the driver on its twin."""
        return PowerUnderTest(
            driver=driver_at(twin.address, login),
            truth=lambda: twin.on["1"],
            orders=lambda: twin.orders,
            reading=lambda: PowerReading(0.0, on=True, watts=412.5),
            others=lambda: twin.on["2"],
            unreachable=driver_at(nobody(), login),
            nobody=driver_at(twin.address, login, "7"),
        )


def test_what_is_believed_after_a_fault_is_true(twin: Twin, login: Login) -> None:
    """Bytes are lost, answers cut: afterwards the truth is known, or known to be unknown."""
    way = FaultyWay(Direct(twin.address))
    rig = SettingsRig(
        open=lambda: driver_at(twin.address, login, way=way),
        read=lambda driver: {"on": driver.read_power().on},
        truth=lambda: {"on": twin.on["1"]},
        knobs={"on": Knob((True, False), lambda driver, on: driver.set_power(on, force=True))},
        way=way,
        others=lambda: twin.on["2"],
        most_bytes=900,
    )
    tally = TroubleCount()
    for seed in range(12):
        run_settings(rig, seed, tally)
    tally.require("done", "OutcomeUnknownError", "DeviceUnreachableError", faults=False)


def test_a_wrong_login_is_told(twin: Twin, login: Login) -> None:
    """Nothing was switched, and the error says who may not."""
    with pytest.raises(DeviceLoginError, match="who are you"):
        driver_at(twin.address, Login()).set_power(on=False, force=True)
    assert twin.on["1"]
    driver_at(twin.address, login).set_power(on=False, force=True)
    assert not twin.on["1"]


def test_an_outlet_that_does_not_follow_is_inconsistent(twin: Twin, login: Login) -> None:
    """The strip said yes, and nothing happened."""
    twin.sticks = True
    with pytest.raises(InconsistentError):
        driver_at(twin.address, login).set_power(on=False, force=True)
