"""What an object of a mesh may give for a state, a power and a temperature, and what is none."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lumctl_smartlight.object_mesh import StrangeValueError, powers_of, settings_of, state_of, temperature_of

from lumctl.devices.types import PucState

GOOD = dict.fromkeys(range(4), (0.0, 0.0))


def test_settings_are_taken_in_any_form_of_numbers():
    given = {0: (0, 1), 1: [1.0, -2.5], 2: (Fraction(1, 2), 7.0)}
    assert settings_of(given) == {0: (0.0, 1.0), 1: (1.0, -2.5), 2: (0.5, 7.0)}
    assert settings_of({}) == {}


@pytest.mark.parametrize(
    "states",
    [
        None,
        True,
        "xxxx",
        list(GOOD.items()),
        GOOD | {3: None},
        GOOD | {3: (None, 0.0)},
        GOOD | {3: (math.nan, 0.0)},
        GOOD | {3: (0.0, math.inf)},
        GOOD | {3: (0.0,)},
        GOOD | {3: (0.0, 0.0, 0.0)},
        GOOD | {3: "01"},
        GOOD | {3: b"01"},
        GOOD | {3: (True, 0.0)},
        GOOD | {3: (2.0, 0.0)},
        GOOD | {3: (-0.5, 0.0)},
        GOOD | {3: iter(int, 1)},
        GOOD | {"4": (0.0, 0.0)},
        GOOD | {4.0: (0.0, 0.0)},
        {True: (0.0, 0.0)},
    ],
)
def test_settings_that_are_none_are_refused(states):
    with pytest.raises(StrangeValueError, match="it returned"):
        settings_of(states)


@pytest.mark.parametrize(
    ("coupling", "state"),
    [
        (0.0, PucState.BAR),
        (1.0, PucState.CROSS),
        (0.01, PucState.BAR),
        (-0.01, PucState.BAR),
        (0.5, None),
        (0.02, None),
    ],
)
def test_a_coupling_near_an_end_is_that_end(coupling, state):
    assert state_of((coupling, 0.0)) is state


@given(st.floats(0, 1), st.floats(0, 1))
def test_no_coupling_is_both_and_the_nearer_to_an_end_is_never_less_certain(one, other):
    nearer, farther = sorted((one, other), key=lambda k: min(k, 1 - k))
    assert state_of((nearer, 0.0)) is not None or state_of((farther, 0.0)) is None


@pytest.mark.parametrize("degrees", [None, "31", True, math.nan, math.inf, [31.0], 1j])
def test_a_temperature_that_is_none_is_refused(degrees):
    with pytest.raises(StrangeValueError):
        temperature_of(degrees)


@pytest.mark.parametrize(
    "powers", [None, [], [0.0], [0.0] * 3, "12", [0.0, None], [0.0, math.nan], [0.0, math.inf], {0: 0.0}, 0.0]
)
def test_powers_that_are_none_are_refused(powers):
    with pytest.raises(StrangeValueError):
        powers_of(powers, (0, 1))


def test_powers_come_in_the_order_asked_for_or_by_port():
    assert powers_of((-1.5, -math.inf), (4, 2)) == {4: -1.5, 2: -math.inf}
    assert powers_of({2: -2, 4: -4, 5: None}, (4, 2)) == {4: -4.0, 2: -2.0}
    assert powers_of([], ()) == {}
