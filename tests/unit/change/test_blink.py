"""The proof by blinking: the receiver must go dark and come back with the transmitter, and with nothing else."""

import math
from collections.abc import Callable

import pytest

from lumctl.change.light_proof import BlinkError, blink
from lumctl.devices.types import OpticsReading


class Pair:
    """A transmitter and a receiver whose power is a function of whether the transmitter is on."""

    def __init__(self, power: Callable[[bool], float | None]) -> None:
        self.power, self.on, self.time, self.switched = power, True, 0.0, []

    def set_transmit(self, enabled: bool) -> None:
        self.on = enabled
        self.switched.append(enabled)

    def read_optics(self) -> OpticsReading:
        return OpticsReading(self.time, rx_power_dbm=self.power(self.on))

    def pause(self, seconds: float) -> None:
        self.time += seconds

    def blink(self) -> None:
        blink(self, self, name="r from t", deadline_s=2.0, clock=lambda: self.time, pause=self.pause)


def test_power_that_follows_is_the_proof() -> None:
    pair = Pair(lambda on: -5.0 if on else -math.inf)
    pair.blink()
    assert pair.switched == [True, False, True]


@pytest.mark.parametrize(
    ("power", "says"),
    [
        (lambda _: -5.0, "did not go dark"),  # another transmitter's light
        (lambda on: -5.0 if on else -9.0, "did not go dark"),  # crosstalk only
        (lambda _: -math.inf, "is dark"),
        (lambda _: None, "is dark"),
    ],
)
def test_power_that_does_not_follow_is_no_proof_and_the_transmitter_is_on_again(power, says) -> None:
    pair = Pair(power)
    with pytest.raises(BlinkError, match=says):
        pair.blink()
    assert pair.on


def test_light_that_does_not_come_back_is_said() -> None:
    pair = Pair(lambda on: -5.0 if on and False not in pair.switched else -math.inf)
    with pytest.raises(BlinkError, match="did not light up again"):
        pair.blink()
