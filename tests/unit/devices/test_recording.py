"""Recording a driver and replaying it: what was asked and answered comes back, and nothing else does."""

import contextlib
import json
import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceError,
    DeviceLoginError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import PROTOCOLS, DriverContext
from lumctl.devices.recorded_calls import need
from lumctl.devices.recorded_values import decode, encode
from lumctl.devices.recording import record
from lumctl.devices.replay import ReplayMesh, ReplayPower, ReplaySwitch, ReplayTransponder
from lumctl.devices.types import (
    Alarm,
    Capability,
    JoinChange,
    Neighbour,
    OpticsReading,
    PortReading,
    PowerReading,
    Progress,
    PucChange,
    PucState,
    Receipt,
    Staged,
)

REPLAYS = {each.kind: each for each in (ReplayMesh, ReplaySwitch, ReplayTransponder, ReplayPower)}
numbers, texts = st.integers(0, 40), st.text(max_size=12)
decibels = st.floats(-60, 20) | st.sampled_from([-math.inf, math.inf, 0.0, -0.0])
maybe = decibels | st.none()
states = st.sampled_from(PucState)
CHANGES = {
    "mesh": st.builds(PucChange, numbers, states | st.none(), states),
    "switch": st.builds(JoinChange, numbers, numbers | st.none(), numbers | st.none()),
}
ASKED_STATES = {"mesh": states, "switch": numbers | st.none()}
errors = st.builds(
    lambda kind, message, hint: kind(message, hint=hint),
    st.sampled_from([
        DeviceUnreachableError, DeviceLoginError, DeviceRefusedError, DeviceBusyError, OutcomeUnknownError,
        InconsistentError,
    ]),
    texts,
    texts | st.none(),
)  # fmt: skip


def staged(kind):
    return st.builds(Staged, st.lists(CHANGES[kind], max_size=4).map(tuple), texts)


def receipts(kind):
    return st.builds(Receipt, staged(kind), st.booleans(), texts)


def changing(kind):
    """Calls of a mesh or a switch: for each, its arguments and what it may answer."""
    return {
        "identify": (st.just(()), texts),
        "stage": (st.tuples(st.dictionaries(numbers, ASKED_STATES[kind], max_size=4)), staged(kind)),
        "compare": (st.tuples(staged(kind)), st.lists(CHANGES[kind], max_size=3).map(tuple)),
        "commit": (st.tuples(staged(kind)), receipts(kind)),
        "confirm": (st.tuples(receipts(kind)), st.none()),
        "roll_back": (st.tuples(receipts(kind)), st.none()),
        "read_powers": (st.tuples(st.lists(numbers, max_size=3).map(tuple)), st.dictionaries(numbers, decibels)),
        "read_temperature": (st.just(()), decibels),
        "read_alarms": (st.just(()), st.lists(st.builds(Alarm, texts, texts, texts, maybe), max_size=2).map(tuple)),
        "read_progress": (st.just(()), st.none() | st.builds(Progress, numbers, numbers | st.none(), texts)),
    }


OPTICS = st.builds(
    OpticsReading,
    decibels,
    transmitting=st.booleans() | st.none(),
    rx_power_dbm=maybe,
    thresholds=st.dictionaries(texts, decibels, max_size=3),
    vendor=texts | st.none(),
    frequency_mhz=numbers | st.none(),
)
CALLS = {
    "mesh": changing("mesh") | {"read_states": (st.just(()), st.dictionaries(numbers, states))},
    "switch": changing("switch")
    | {
        "read_circuits": (st.just(()), st.dictionaries(numbers, numbers)),
        "read_ports": (
            st.just(()),
            st.dictionaries(numbers, st.builds(PortReading, numbers, st.booleans() | st.none(), st.booleans(), texts)),
        ),
        "set_port": (st.tuples(numbers, st.booleans()), st.none()),
        "set_label": (st.tuples(numbers, texts), st.none()),
    },
    "transponder": {
        "read_optics": (st.just(()), OPTICS),
        "set_transmit": (st.tuples(st.booleans()), st.none()),
        "transmitting": (st.just(()), st.booleans()),
        "set_channel": (st.tuples(numbers), st.none()),
        "set_output_power": (st.tuples(decibels), st.none()),
        "announce": (st.tuples(texts), st.none()),
        "neighbours": (
            st.just(()),
            st.lists(st.builds(Neighbour, texts, texts, decibels, texts | st.none()), max_size=2).map(tuple),
        ),
    },
    "power": {
        "identify": (st.just(()), texts),
        "read_power": (st.just(()), st.builds(PowerReading, decibels, st.booleans() | st.none(), texts, maybe, texts)),
        "set_power": (st.tuples(st.booleans()), st.none()),
        "reset": (st.just(()), st.none()),
    },
}


def one_call(kind):
    def with_outcome(name):
        arguments, answers = CALLS[kind][name]
        return st.tuples(st.just(name), arguments, answers | errors)

    return st.sampled_from(sorted(CALLS[kind])).flatmap(with_outcome)


runs = st.sampled_from(sorted(CALLS)).flatmap(
    lambda kind: st.tuples(
        st.just(kind), st.frozensets(st.sampled_from(Capability)), st.lists(one_call(kind), max_size=12)
    )
)


class Scripted:
    """A driver of a kind that answers, or fails, as it is told; what it does not declare it refuses."""

    api_version, proven = 1, "a script"

    def __init__(self, kind, capabilities, outcomes):
        self.kind, self.capabilities, self._outcomes = kind, capabilities, iter(outcomes)
        self.closed = 0

    def __getattr__(self, name):
        if name not in CALLS[self.kind]:
            raise AttributeError(name)

        def call(*args):
            outcome = next(self._outcomes)
            if need(name, {}) not in {None, *self.capabilities}:
                raise UnsupportedError(f"{args} is not supported")
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return call

    def close(self):
        self.closed += 1


def outcome_of(driver, name, args):
    try:
        return encode(getattr(driver, name)(*args))
    except UnsupportedError:
        return UnsupportedError
    except DeviceError as error:
        return type(error), error.message, error.hint


def test_every_call_of_every_kind_is_tried():
    for kind, protocol in PROTOCOLS.items():
        names = {name for name in dir(protocol) if not name.startswith("_") and callable(getattr(protocol, name))}
        assert names - {"close"} == set(CALLS[kind])


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(run=runs)
def test_a_replay_answers_as_the_driver_did(run, tmp_path_factory):
    kind, capabilities, calls = run
    path = tmp_path_factory.mktemp("run") / "recording.jsonl"
    driver = record(Scripted(kind, capabilities, [outcome for *_, outcome in calls]), path)
    first = [outcome_of(driver, name, args) for name, args, _ in calls]
    driver.close()
    replay = REPLAYS[kind](DriverContext(device="d", address=f"replay:{path}"))
    assert isinstance(replay, PROTOCOLS[kind])
    assert replay.capabilities == capabilities
    assert [outcome_of(replay, name, args) for name, args, _ in calls] == first


@given(st.recursive(st.none() | numbers | texts | decibels | states | OPTICS, lambda each: st.lists(each).map(tuple)))
def test_a_value_comes_back_as_it_was(value):
    again = decode(json.loads(json.dumps(encode(value))))
    assert (again, type(again)) == (value, type(value))


@given(st.recursive(st.none() | st.booleans() | st.floats() | texts, lambda e: st.lists(e) | st.dictionaries(texts, e)))
def test_what_is_no_value_is_a_value_error(said):
    for form in (
        said,
        {"map": said},
        {"OpticsReading": said},
        {"float": said},
        {"PucState": said},
        {"Staged": {"x": 1}},
    ):
        with contextlib.suppress(ValueError):
            decode(form)
