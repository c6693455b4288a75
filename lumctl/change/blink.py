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
    clock: Callable[[], float],
    pause: Callable[[float], object],
) -> None:
    """Switch the transmitter off and on; never used on a circuit that carries a running job.

    It is switched on first: a blink that was cut may have left it dark.

    Raises:
        BlinkError: the receiver was dark from the start, or did not follow within the deadline.
    """
    transmitter.set_transmit(True)
    _until(lambda: received_dbm(receiver) > float("-inf"), f"{name} is dark", deadline_s, clock, pause)
    bright = received_dbm(receiver)
    transmitter.set_transmit(False)
    try:
        _until(lambda: received_dbm(receiver) < bright - DROP_DB, f"{name} did not go dark", deadline_s, clock, pause)
    finally:
        transmitter.set_transmit(True)
    _until(lambda: received_dbm(receiver) > bright - DROP_DB / 2, f"{name} did not come back", deadline_s, clock, pause)


def received_dbm(receiver: TransponderDriver) -> float:
    """Received power in dBm; no light, and no reading, is minus infinity."""
    power = receiver.read_optics().rx_power_dbm
    return float("-inf") if power is None else power


def _until(
    holds: Callable[[], bool],
    complaint: str,
    deadline_s: float,
    clock: Callable[[], float],
    pause: Callable[[float], object],
) -> None:
    started = clock()
    while not holds():
        if clock() - started > deadline_s:
            raise BlinkError(f"light was not verified by blinking: {complaint} within {deadline_s:.1f} s")
        pause(POLL_S)
