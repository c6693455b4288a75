"""Drivers that are wrong or hostile cost their own device only: their calls raise device errors that name them."""

import threading
import time
from typing import ClassVar

import pytest
from wrong_drivers import HOSTILE, INPUTS, PORTS, PUCS, RIGHT, WRONG

from lumctl.containment import Culprit
from lumctl.devices.contained_driver import open_contained
from lumctl.devices.errors import DeviceError, DriverFaultError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.recorded_calls import signatures
from lumctl.devices.types import PucState

TIMEOUT_S = 0.2
OPENS_BADLY = {"fails-at-opening", "hangs-at-opening"}
READS = {
    "mesh": ("identify", "read_states", "read_temperature", "read_alarms"),
    "switch": ("identify", "read_circuits", "read_ports"),
    "transponder": ("read_optics", "transmitting", "neighbours"),
    "power": ("identify", "read_power"),
}
GIVES_WHAT_CANNOT_BE = {
    "text-for-states": "read_states",
    "list-of-states": "read_states",
    "beyond-puc-count": "read_states",
    "beyond-port-count": "read_circuits",
    "optics-dict": "read_optics",
    "kelvin": "read_temperature",
    "optics-kelvin": "read_optics",
    "negative-watts": "read_power",
    "watts-as-text": "read_power",
    "power-is-text": "read_power",
    "alarms-are-text": "read_alarms",
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    for name in ("GRACE_S", "CLOSES_WITHIN_S"):
        monkeypatch.setattr(f"lumctl.devices.contained_driver.{name}", 0.05)


def opened(offered, name):
    context = DriverContext(
        name, f"{name}.memory", puc_count=PUCS, port_count=PORTS, input_count=INPUTS, timeout_s=TIMEOUT_S, now=time.time
    )
    return open_contained(offered[name].driver, context, Culprit("driver", name, "wrong-drivers 0.7"))


@pytest.mark.parametrize("name", sorted(set(HOSTILE) - OPENS_BADLY))
def test_a_hostile_driver_raises_device_errors_that_name_it(name, capsys):
    driver = opened(HOSTILE, name)
    for call in READS[driver.kind]:
        said = f"{name} answers"
        try:
            getattr(driver, call)()
        except DeviceError as error:
            said = error.message
        assert name in said
    driver.close()
    driver.close()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", sorted(OPENS_BADLY))
def test_a_driver_that_cannot_be_opened_is_named(name):
    with pytest.raises(DriverFaultError, match=f"driver '{name}' of wrong-drivers 0.7: opening {name} "):
        opened(HOSTILE, name)


@pytest.mark.parametrize(("name", "call"), GIVES_WHAT_CANNOT_BE.items())
def test_an_answer_of_a_wrong_type_or_unit_is_no_reading(name, call):
    driver = opened(WRONG, name)
    with pytest.raises(DriverFaultError, match=f"driver '{name}' of wrong-drivers 0.7: {call} of {name} returned "):
        getattr(driver, call)()


def test_nothing_is_asked_of_a_driver_that_has_not_come_back():
    goes_on, asked = threading.Event(), []

    class Slow(RIGHT["right-mesh"].driver):
        def read_states(self):
            asked.append("read_states")
            goes_on.wait()
            return super().read_states()

    context = DriverContext("m1", "slow.memory", puc_count=PUCS, port_count=PORTS, timeout_s=TIMEOUT_S)
    driver = open_contained(Slow, context, Culprit("driver", "slow", "acme 1.0"))
    with pytest.raises(DriverFaultError, match="read_states of m1 has not returned within"):
        driver.read_states()
    with pytest.raises(DriverFaultError, match=r"read_states of m1 was abandoned \d+ s ago and has not returned"):
        driver.read_states()
    goes_on.set()
    while True:
        try:
            assert len(driver.read_states()) == PUCS
            break
        except DriverFaultError:
            continue
    assert asked == ["read_states", "read_states"]


def test_a_write_that_fails_in_the_driver_leaves_its_outcome_unknown():
    class Fails(RIGHT["right-mesh"].driver):
        def commit(self, staged, *, revert_after_s=None):
            super().commit(staged, revert_after_s=revert_after_s)
            raise KeyError("receipt")

    context = DriverContext("m1", "fails.memory", puc_count=PUCS, port_count=PORTS, timeout_s=TIMEOUT_S)
    driver = open_contained(Fails, context, Culprit("driver", "fails", "acme 1.0"))
    with pytest.raises(OutcomeUnknownError, match="commit of m1 raised KeyError: 'receipt'"):
        driver.commit(driver.stage({0: PucState.CROSS}))
    assert driver.read_states()[0] is PucState.CROSS


def test_a_driver_may_say_that_a_call_takes_longer():
    class Patient(RIGHT["right-mesh"].driver):
        slow_calls: ClassVar[dict[str, float]] = {"read_states": 30.0}

        def read_states(self):
            threading.Event().wait(2 * TIMEOUT_S)
            return super().read_states()

    context = DriverContext("m1", "patient.memory", puc_count=PUCS, port_count=PORTS, timeout_s=TIMEOUT_S)
    driver = open_contained(Patient, context, Culprit("driver", "patient", "acme 1.0"))
    assert len(driver.read_states()) == PUCS


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_a_driver_that_keeps_the_contract_is_not_disturbed(name):
    driver = opened(RIGHT, name)
    for call in READS[driver.kind]:
        assert getattr(driver, call)() is not None
    assert set(signatures(driver.kind)) <= set(dir(driver))
