"""One deadline over a whole call of the NETCONF driver, however slow the switch is, and wherever it falls silent."""

import time
from threading import Event

import pytest
from polatis_bench import Bench

from lumctl.devices.errors import DeviceError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.types import JoinChange, Receipt, Staged
from lumctl.sim.world.misbehaviour import Misbehaviour

TIMEOUT_S, GRACE_S = 1.0, 1.0
STAGED = Staged((JoinChange(0, None, 8), JoinChange(1, None, 9)), "x1")
READS = {
    "identify": lambda driver: driver.identify(),
    "stage": lambda driver: driver.stage({0: 8}),
    "compare": lambda driver: driver.compare(STAGED),
    "circuits": lambda driver: driver.read_circuits(),
    "powers": lambda driver: driver.read_powers((2,)),
    "alarms": lambda driver: driver.read_alarms(),
    "ports": lambda driver: driver.read_ports(),
}
WRITES = {
    "commit": lambda driver: driver.commit(STAGED),
    "roll back": lambda driver: driver.roll_back(Receipt(STAGED, revert_armed=False)),
    "port": lambda driver: driver.set_port(0, enabled=False),
    "label": lambda driver: driver.set_label(0, "h1"),
}


@pytest.fixture(params=[True, False], ids=["candidate", "running only"])
def bench(request, tmp_path):
    made = Bench(tmp_path, inputs=8, candidate=request.param)
    yield made
    made.close()


@pytest.fixture
def silent(bench):
    """Makes the switch silent from its answer to the n-th request of a name on, until the event that it gives."""
    over, left = Event(), {}

    def spoil(operation, answer):
        if operation in left:
            left[operation] -= 1
            if left[operation] == 0:
                over.wait(30)
        return answer

    def fall_silent(name, number):
        left[name] = number
        return over

    bench.server.spoil = spoil  # before there are sessions: each keeps what it finds
    yield fall_silent
    over.set()


def told(bench):
    return dict(bench.state.joins), dict(bench.state.labels), set(bench.state.disabled)


def timed(act):
    """The error of a call, if any, and the seconds that it took."""
    started = time.monotonic()
    try:
        act()
    except DeviceError as error:
        return error, time.monotonic() - started
    return None, time.monotonic() - started


@pytest.mark.parametrize("call", [*READS.values(), *WRITES.values()], ids=[*READS, *WRITES])
def test_the_whole_call_ends_in_time_when_each_answer_takes_a_third_of_it(bench, call):
    driver = bench.driver(timeout_s=TIMEOUT_S)
    driver.read_circuits()
    before = told(bench)
    bench.conduct = Misbehaviour(delay_s=0.3)
    error, took_s = timed(lambda: call(driver))
    assert took_s < TIMEOUT_S + GRACE_S
    if isinstance(error, DeviceUnreachableError):
        assert told(bench) == before
    else:
        assert error is None or isinstance(error, OutcomeUnknownError)


@pytest.mark.parametrize("operation", ["lock", "get"])
def test_a_silence_before_the_write_has_changed_nothing_and_leaves_no_lock(bench, silent, operation):
    driver = bench.driver(timeout_s=TIMEOUT_S)
    driver.identify()
    over = silent(operation, 1)
    error, took_s = timed(lambda: driver.commit(STAGED))
    assert isinstance(error, DeviceUnreachableError)
    assert TIMEOUT_S <= took_s < TIMEOUT_S + GRACE_S
    over.set()
    assert becomes_true(lambda: bench.server.sessions() == 0)
    assert bench.state.joins == {}
    bench.driver().commit(STAGED)
    assert bench.state.joins == {0: 8, 1: 9}


@pytest.mark.parametrize("written", [True, False], ids=["read-back", "write"])
def test_a_silence_after_the_write_was_sent_leaves_the_outcome_open(bench, silent, written):
    driver = bench.driver(timeout_s=TIMEOUT_S)
    driver.identify()
    writes = "commit" if bench.candidate else "edit-config"
    silent(*(("get", 2) if written else (writes, 1)))
    error, took_s = timed(lambda: driver.commit(STAGED))
    assert isinstance(error, OutcomeUnknownError)
    assert TIMEOUT_S <= took_s < TIMEOUT_S + GRACE_S
    assert bench.state.joins == {0: 8, 1: 9}
