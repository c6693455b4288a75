"""What a sick chassis does to the driver: each fault has its error, and none is taken for a success."""

import re
import threading
import time

import pytest

from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
)
from lumctl.sim.world.misbehaviour import Misbehaviour

WANTED = 193_700_000
WRITES = {
    "laser": lambda driver: driver.set_transmit(enabled=False),
    "channel": lambda driver: driver.set_channel(WANTED),
    "power": lambda driver: driver.set_output_power(-3.0),
}
READS = {"optics": lambda driver: driver.read_optics(), "transmitting": lambda driver: driver.transmitting()}


REFUSED = re.compile(rb"<(?:\w+:)?data\b.*</(?:\w+:)?data>|<(?:\w+:)?data\s*/>", re.DOTALL)


def refusing(answer):
    """The reply with its data replaced by an error."""
    error = b"<rpc-error><error-tag>operation-failed</error-tag><error-severity>error</error-severity></rpc-error>"
    body, found = REFUSED.subn(error, answer.split(b"\n", 2)[2].removesuffix(b"\n##\n"))
    assert found == 1
    return b"\n#%d\n%b\n##\n" % (len(body), body)


@pytest.fixture(params=WRITES.values(), ids=WRITES)
def write(request):
    return request.param


@pytest.fixture(params=[*WRITES.values(), *READS.values()], ids=[*WRITES, *READS])
def call(request):
    return request.param


def told(shelf):
    module = shelf.module()
    return module.laser_on, module.frequency_mhz, module.target_power_dbm


def test_a_device_that_says_yes_and_does_nothing_is_found_out(shelf, write):
    before = told(shelf)
    shelf.conduct = Misbehaviour(lying=True)
    with pytest.raises(InconsistentError, match="the device confirmed it"):
        write(shelf.driver())
    assert told(shelf) == before


def test_a_refusal_is_one_and_nothing_changes(shelf, write):
    before = told(shelf)
    shelf.conduct = Misbehaviour(refuses=True)
    with pytest.raises(DeviceRefusedError, match="no change is accepted now") as refused:
        write(shelf.driver())
    assert not isinstance(refused.value, DeviceBusyError)
    assert told(shelf) == before


def test_a_refusal_that_took_something_is_no_refusal(shelf, write):
    before = told(shelf)
    shelf.conduct = Misbehaviour(half=True)
    with pytest.raises(InconsistentError, match="accepted part of it"):
        write(shelf.driver())
    assert told(shelf) != before


def test_what_the_module_does_not_reach_is_refused_with_its_path(shelf):
    before, driver = told(shelf), shelf.driver()
    with pytest.raises(DeviceRefusedError, match=r"invalid-value at /components/component\[name='och-1'\]/.*frequency"):
        driver.set_channel(1_000)
    with pytest.raises(DeviceRefusedError, match="target-output-power"):
        driver.set_output_power(40.0)
    assert told(shelf) == before
    driver.set_channel(WANTED)  # nothing of it is left in the candidate
    assert shelf.module().frequency_mhz == WANTED


@pytest.mark.parametrize("dbm", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_power_is_refused_before_anything_is_sent(shelf, dbm):
    with pytest.raises(DeviceRefusedError, match="nothing was sent"):
        shelf.driver().set_output_power(dbm)
    with pytest.raises(DeviceRefusedError, match="nothing was sent"):
        shelf.driver().set_channel(0)
    assert shelf.operations == []


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda answer: answer[: len(answer) // 2],
        lambda _answer: b"",
        lambda _answer: b"\x00\xff\xfe" * 4000,
        lambda _answer: b"\n#4294967295\n" + b"x" * 100_000,
        lambda answer: answer.replace(b"rpc-reply", b"rpc-repl\xff"),
        lambda _answer: b'\n#59\n<!DOCTYPE a [<!ENTITY b "cccccccccccccc">]><a>&b;&b;&b;</a>\n##\n',
    ],
    ids=["cut", "closed", "garbage", "endless chunk", "not UTF-8", "entities"],
)
def test_an_answer_that_breaks_off_at_the_commit_leaves_the_outcome_open(shelf, write, spoilt):
    before = told(shelf)
    shelf.spoil = lambda operation, answer: spoilt(answer) if operation == "commit" else answer
    driver = shelf.driver()
    with pytest.raises(OutcomeUnknownError):
        write(driver)
    assert told(shelf) != before
    assert driver.read_optics().transmitting is shelf.module().laser_on  # over a new session


@pytest.mark.parametrize("operation", ["get", "get-config", "lock", "edit-config"])
def test_an_answer_that_breaks_off_before_the_commit_has_changed_nothing(shelf, write, operation):
    before = told(shelf)
    shelf.spoil = lambda asked, answer: answer[: len(answer) // 2] if asked == operation else answer
    with pytest.raises(DeviceUnreachableError):
        write(shelf.driver())
    assert told(shelf) == before


def test_a_no_to_reading_after_the_commit_is_no_refusal_of_the_change(shelf, write):
    before, committed = told(shelf), threading.Event()

    def spoil(operation, answer):
        if operation == "commit":
            committed.set()
        return refusing(answer) if committed.is_set() and operation in {"get", "get-config"} else answer

    shelf.spoil = spoil
    with pytest.raises(OutcomeUnknownError, match="was set just before"):
        write(shelf.driver())
    assert told(shelf) != before


def test_a_silence_after_the_commit_leaves_the_outcome_open(shelf, write):
    committed = threading.Event()

    def spoil(operation, answer):
        if operation == "commit":
            committed.set()
        return b"" if committed.is_set() and operation in {"get", "get-config"} else answer

    shelf.spoil = spoil
    with pytest.raises(OutcomeUnknownError, match="was set just before"):
        write(shelf.driver())


def test_a_slow_device_is_waited_for_no_longer_than_agreed(shelf, call):
    shelf.conduct = Misbehaviour(delay_s=30.0)
    driver = shelf.driver(timeout_s=0.4)
    started = time.monotonic()
    with pytest.raises(DeviceUnreachableError):
        call(driver)
    assert time.monotonic() - started < 5


def test_a_device_that_is_down_is_unreachable(shelf, call):
    driver = shelf.driver(timeout_s=1.0)
    driver.read_optics()
    shelf.server.service.shut()
    with pytest.raises(DeviceUnreachableError):
        call(driver)


def test_a_session_that_has_died_is_replaced(shelf, call):
    driver = shelf.driver()
    driver.read_optics()
    shelf.cut()
    call(driver)


def test_somebody_else_s_lock_is_busy_and_nothing_is_sent_on(shelf, write):
    before = told(shelf)
    shelf.server.datastore.lock(99, "candidate")
    with pytest.raises(DeviceBusyError, match="session-id 99"):
        write(shelf.driver())
    assert told(shelf) == before
    shelf.server.datastore.unlock(99, "candidate")
    write(shelf.driver())


def test_two_threads_take_turns(shelf):
    driver, failures = shelf.driver(), []

    def tune(frequency):
        try:
            driver.set_channel(frequency)
        except InconsistentError:
            pass  # the other was faster between this one's write and its read-back
        except DeviceError as error:
            failures.append(error)

    threads = [threading.Thread(target=tune, args=(193_000_000 + 50_000 * n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert shelf.module().frequency_mhz in {193_000_000 + 50_000 * n for n in range(6)}


FREQUENCY = "{http://openconfig.net/yang/terminal-device}frequency"


@pytest.fixture
def lagging(shelf):
    """A chassis whose modules show their old frequency for so many looks after each change."""

    def lag(looks):
        device, old = shelf.server.datastore.device, str(shelf.module().frequency_mhz)
        truly, left = device.state, [looks]

        def state():
            shown = truly()
            for leaf in shown.iter(FREQUENCY):
                if leaf.text != old and left[0] > 0:
                    left[0] -= 1
                    leaf.text = old
            return shown

        device.state = state
        return shelf

    return lag


def test_a_laser_that_follows_late_is_waited_for(lagging):
    shelf = lagging(3)
    driver = shelf.driver()
    driver.set_channel(WANTED)
    assert driver.read_optics().frequency_mhz == WANTED


def test_a_laser_that_never_follows_is_found_out(lagging):
    shelf = lagging(10**6)
    with pytest.raises(InconsistentError, match=f"frequency was set to '{WANTED}'.*its state shows '193100000'"):
        shelf.driver(timeout_s=2.0).set_channel(WANTED)
