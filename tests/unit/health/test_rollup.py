"""A place is as bad as the worst of what it holds."""

import pytest

from lumctl.health.observation import rolled_up
from lumctl.health.states import State


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((State.OK, State.FAILED, State.DEGRADED), State.FAILED),
        ((State.OK, State.UNKNOWN), State.UNKNOWN),
        ((State.OK, State.DISABLED), State.OK),
        ((State.DISABLED, State.DISABLED), State.DISABLED),
        ((), State.UNKNOWN),
    ],
)
def test_it_is_as_bad_as_the_worst_in_service(states, expected):
    assert rolled_up(states) is expected
