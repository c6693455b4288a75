"""A vendor-style object that raises, lies about types, or never returns: each has its error, within the deadline."""

import math
import sys
import threading
import time
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from lumctl_smartlight import SmartlightObjectMesh, session

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucState

BAR, CROSS = PucState.BAR, PucState.CROSS
GOOD = dict.fromkeys(range(8), (0.0, 0.0))


class Scripted:
    """An object whose methods do what a test says: a value is returned, an exception raised, a function called."""

    def __init__(self, script) -> None:
        self._script = script

    def __getattr__(self, name):
        def method(*arguments):
            said = self._script[name]
            if isinstance(said, BaseException):
                raise said
            return said(*arguments) if callable(said) else said

        return method


@pytest.fixture
def script():
    return {"connect": None, "disconnect": None, "get_puc_states": GOOD, "set_puc_states": None, "get_temp": 31.0}


@pytest.fixture
def made():
    return []


@pytest.fixture
def opened(monkeypatch, script, made):
    def maker(_address, _way):
        made.append(Scripted(script))
        return made[-1]

    monkeypatch.setitem(sys.modules, "vendor", SimpleNamespace(opened=maker))
    points = [EntryPoint("vendor", "vendor:opened", session.GROUP)]
    monkeypatch.setattr(session, "entry_points", lambda group: points if group == session.GROUP else [])
    return lambda timeout_s=5.0: SmartlightObjectMesh(
        DriverContext(device="m1", address="m1.example:4000", puc_count=8, port_count=8, timeout_s=timeout_s)
    )


@pytest.fixture
def released():
    """Lets calls that hang return with the test."""
    event = threading.Event()
    yield event
    event.set()
    for thread in threading.enumerate():
        if thread.name == "smartlight object":
            thread.join(5)


class Unprintable(Exception):  # noqa: N818 - no error of ours
    def __str__(self) -> str:
        raise RuntimeError("not even this")


RAISED = [
    OSError(5, "Input/output error"),
    ValueError("two\nlines \x1b[31m"),
    KeyError(),
    SystemExit(3),
    KeyboardInterrupt(),
    Unprintable(),
    RecursionError("x" * 10_000),
]
STRANGE_STATES = [None, "x" * 8, GOOD | {3: None}, GOOD | {3: (math.nan, 0.0)}, GOOD | {"8": (0.0, 0.0)}]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("method", ["connect", "get_puc_states", "set_puc_states"])
def test_whatever_is_raised_becomes_one_line(opened, script, method, error):
    driver = opened()
    staged = driver.stage({3: CROSS})
    driver.close()
    script[method] = error
    wanted = OutcomeUnknownError if method == "set_puc_states" else DeviceUnreachableError
    with pytest.raises(wanted) as caught:
        driver.commit(staged)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 400
    assert type(error).__name__ in caught.value.message


@pytest.mark.parametrize("states", STRANGE_STATES, ids=range(len(STRANGE_STATES)))
def test_states_that_are_none_are_not_believed(opened, script, states):
    written = []
    driver = opened()
    staged = driver.stage({3: CROSS})
    script |= {"get_puc_states": states, "set_puc_states": written.append}
    for call in (driver.identify, driver.read_states, lambda: driver.compare(staged), lambda: driver.commit(staged)):
        with pytest.raises(DeviceUnreachableError, match="states could not be read"):
            call()
    assert written == []


@pytest.mark.parametrize("given", [None, math.nan, "31"])
def test_readings_that_are_none_are_not_believed(opened, script, given):
    script |= {"get_temp": given, "get_output_power": lambda _ports: [0.0, given]}
    with pytest.raises(DeviceUnreachableError, match="temperature could not be read"):
        opened().read_temperature()
    with pytest.raises(DeviceUnreachableError, match="powers could not be read"):
        opened().read_powers((0, 1))


@pytest.mark.parametrize(
    ("method", "error"), [("connect", DeviceUnreachableError), ("set_puc_states", OutcomeUnknownError)]
)
def test_false_is_no_yes(opened, script, method, error):
    script[method] = False
    driver = opened()
    with pytest.raises(error, match="gave False"):
        driver.commit(driver.stage({3: CROSS}))


def test_an_object_that_has_died_between_two_calls_is_replaced(opened, script, made):
    driver = opened()
    staged = driver.stage({3: CROSS})
    written, answers = [], iter([ConnectionResetError()])

    def states():
        error = next(answers, None)
        if error is not None:
            raise error
        return GOOD

    script |= {"get_puc_states": states, "set_puc_states": written.append}
    driver.commit(staged)
    assert len(made) == 2
    assert len(written) == 1


def test_a_write_is_never_sent_twice(opened, script, made):
    written = []

    def failing(states):
        written.append(states)
        raise ConnectionResetError

    script["set_puc_states"] = failing
    driver = opened()
    staged = driver.stage({3: CROSS})
    with pytest.raises(OutcomeUnknownError, match="may or may not have changed"):
        driver.commit(staged)
    assert len(written) == 1
    assert driver.read_temperature() == 31.0
    assert len(made) == 2, "an object that failed is not used again"


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("connect", DeviceUnreachableError),
        ("get_puc_states", DeviceUnreachableError),
        ("set_puc_states", OutcomeUnknownError),
    ],
)
def test_a_call_that_hangs_is_given_up_and_nothing_is_called_before_it_returns(
    opened, script, made, released, method, error
):
    driver = opened(timeout_s=0.2)
    staged = driver.stage({3: CROSS})
    driver.close()
    well, calls = script[method], []

    def hanging(*_):
        calls.append(threading.current_thread())
        released.wait()
        return well

    script[method] = hanging
    began = time.monotonic()
    with pytest.raises(error):
        driver.commit(staged)
    assert time.monotonic() - began < 2
    for call in (driver.identify, driver.read_temperature, lambda: driver.commit(staged)):
        with pytest.raises(DeviceUnreachableError, match="has not returned"):
            call()
    assert len(calls) == 1
    script[method] = well
    released.set()
    calls[0].join(5)
    driver.commit(staged)
    assert len(made) == 3, "the object that hung is not used again"


def test_many_slow_calls_share_one_deadline(opened, script, released):
    def slow():
        released.wait(0.3)
        return GOOD

    script |= {"connect": slow, "get_puc_states": slow}
    with pytest.raises(DeviceUnreachableError, match="in time"):
        opened(timeout_s=0.45).identify()


def test_a_disconnect_that_hangs_holds_nobody_up(opened, script, released):
    script["disconnect"] = lambda: released.wait(10)
    driver = opened(timeout_s=0.2)
    driver.identify()
    began = time.monotonic()
    driver.close()
    assert time.monotonic() - began < 2


def test_threads_take_turns(opened, script):
    inside, most = [], []

    def counted():
        inside.append(1)
        most.append(len(inside))
        threading.Event().wait(0.01)
        inside.pop()
        return GOOD

    script["get_puc_states"] = counted
    driver = opened()
    threads = [threading.Thread(target=driver.read_states) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5
