"""One deadline over a whole call: however slow the chassis is, and in whichever request it falls silent."""

import time
from threading import Event

import pytest

from lumctl.devices.errors import DeviceError, DeviceUnreachableError, InconsistentError, OutcomeUnknownError
from lumctl.devices.testing.checks import becomes_true
from lumctl.sim.world.misbehaviour import Misbehaviour

TIMEOUT_S, GRACE_S = 1.0, 1.0
WANTED = 193_700_000
WRITES = {
    "laser": lambda driver: driver.set_transmit(enabled=False),
    "channel": lambda driver: driver.set_channel(WANTED),
    "power": lambda driver: driver.set_output_power(-3.0),
}
READS = {"optics": lambda driver: driver.read_optics(), "transmitting": lambda driver: driver.transmitting()}


@pytest.fixture
def silent(shelf):
    """Makes the chassis silent from its answer to the n-th request of a name on, until the event that it gives."""
    over = Event()

    def fall_silent(name, number):
        asked = []

        def spoil(operation, answer):
            if operation == name:
                asked.append(operation)
                if len(asked) == number:
                    over.wait(30)
            return answer

        shelf.spoil = spoil
        return over

    yield fall_silent
    shelf.spoil = lambda _operation, answer: answer
    over.set()


def told(shelf):
    module = shelf.module()
    return module.laser_on, module.frequency_mhz, module.target_power_dbm


def timed(act):
    """The error of a call, if any, and the seconds that it took."""
    started = time.monotonic()
    try:
        act()
    except DeviceError as error:
        return error, time.monotonic() - started
    return None, time.monotonic() - started


@pytest.mark.parametrize("delay_s", [0.08, 0.3])
@pytest.mark.parametrize("call", [*WRITES.values(), *READS.values()], ids=[*WRITES, *READS])
def test_the_whole_call_ends_in_time_whatever_each_answer_takes(shelf, call, delay_s):
    driver = shelf.driver(timeout_s=TIMEOUT_S)
    driver.read_optics()
    before = told(shelf)
    shelf.conduct = Misbehaviour(delay_s=delay_s)
    error, took_s = timed(lambda: call(driver))
    assert took_s < TIMEOUT_S + GRACE_S
    if isinstance(error, DeviceUnreachableError):
        assert told(shelf) == before
    elif error is not None:
        assert isinstance(error, OutcomeUnknownError)
    elif call in WRITES.values():
        assert told(shelf) != before


@pytest.mark.parametrize("operation", ["get", "get-config", "lock", "edit-config"])
def test_a_silence_before_the_commit_has_changed_nothing_and_leaves_no_lock(shelf, silent, operation):
    driver, other = shelf.driver(timeout_s=TIMEOUT_S), shelf.driver("och-2")
    driver.read_optics()
    before = told(shelf)
    over = silent(operation, 1)
    error, took_s = timed(lambda: driver.set_channel(WANTED))
    assert isinstance(error, DeviceUnreachableError)
    assert TIMEOUT_S <= took_s < TIMEOUT_S + GRACE_S
    over.set()
    assert becomes_true(lambda: shelf.server.sessions() == 0)
    other.set_channel(WANTED)
    assert told(shelf) == before


@pytest.mark.parametrize(("operation", "number"), [("commit", 1), ("unlock", 1), ("get-config", 2)])
def test_a_silence_after_the_commit_leaves_the_outcome_open(shelf, silent, operation, number):
    driver = shelf.driver(timeout_s=TIMEOUT_S)
    driver.read_optics()
    silent(operation, number)
    error, took_s = timed(lambda: driver.set_channel(WANTED))
    assert isinstance(error, OutcomeUnknownError)
    assert TIMEOUT_S <= took_s < TIMEOUT_S + GRACE_S
    assert shelf.module().frequency_mhz == WANTED


def test_waiting_for_a_laser_is_a_part_of_the_call(shelf, monkeypatch):
    driver = shelf.driver(timeout_s=TIMEOUT_S)
    driver.read_optics()
    device = shelf.server.datastore.device
    shown = device.state()
    monkeypatch.setattr(device, "state", lambda: shown)
    shelf.conduct = Misbehaviour(delay_s=0.05)
    error, took_s = timed(lambda: driver.set_channel(WANTED))
    assert isinstance(error, InconsistentError)
    assert 0.5 * TIMEOUT_S < took_s < 1.2 * TIMEOUT_S
