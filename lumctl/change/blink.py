"""Proof by blinking: the transmitter goes dark and bright again, and the far receiver's power must follow."""

from collections.abc import Callable

from lumctl.devices.protocols import TransponderDriver
from lumctl.errors import LumctlError

DROP_DB = 10.0
"""A fall of the received power by this much counts as dark: far more than noise or crosstalk moves it."""
POLL_S = 0.05


class BlinkError(LumctlError):
    """The receiver's power did not follow the transmitter."""


def blink(
    transmitter: TransponderDriver,
    receiver: TransponderDriver,
    *,
    name: str,
    deadline_s: float,
    now: Callable[[], float],
    pause: Callable[[float], object],
) -> None:
    """Switch the transmitter off and on; never used on a circuit that carries a running job.

    Raises:
        BlinkError: the receiver was dark from the start, or did not follow within the deadline.
    """
    bright = _power(receiver)
    if bright == float("-inf"):
        raise BlinkError(f"light was not verified: {name} is dark before the blink")
    transmitter.set_transmit(enabled=False)
    try:
        _until(lambda: _power(receiver) < bright - DROP_DB, f"{name} did not go dark", deadline_s, now, pause)
    finally:
        transmitter.set_transmit(enabled=True)
    _until(lambda: _power(receiver) > bright - DROP_DB / 2, f"{name} did not come back", deadline_s, now, pause)


def _power(receiver: TransponderDriver) -> float:
    power = receiver.read_optics().rx_power_dbm
    return float("-inf") if power is None else power


def _until(
    holds: Callable[[], bool],
    complaint: str,
    deadline_s: float,
    now: Callable[[], float],
    pause: Callable[[float], object],
) -> None:
    started = now()
    while not holds():
        if now() - started > deadline_s:
            raise BlinkError(f"light was not verified by blinking: {complaint} within {deadline_s:.1f} s")
        pause(POLL_S)
