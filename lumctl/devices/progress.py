"""Waiting for a device that goes on with a change after its answer, or after no answer came.

A driver with :attr:`Capability.PROGRESS` says whether its device is still at work. Until it says that nothing is in
progress, what the device shows is on its way to something else, and is taken for nothing.
"""

import threading
import time
from collections.abc import Callable

from lumctl.devices.errors import DeviceBusyError, DeviceError, OutcomeUnknownError
from lumctl.devices.protocols import MeshDriver, SwitchDriver
from lumctl.devices.types import Capability, Progress

TIMEOUTS = 6
"""A driver that does not state how long a change takes is given so many times what a single call may take."""
_TIMEOUT_S = 5.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0
"""No device calls us when it is done. Asked soon at first, for most need no time, and then at longer distances."""

Watch = Callable[[Progress], object]
"""Told of each new progress."""


def goes_on_for_s(driver: MeshDriver | SwitchDriver) -> float:
    """How long the device may go on with a change after its answer; 0 where the driver cannot say when it has ended.

    The driver's own ``slow_calls["commit"]``, if it states that.
    """
    if Capability.PROGRESS not in driver.capabilities:
        return 0.0
    # A driver behind a gateway has neither: these are the gateway's.
    timeout_s = float(getattr(getattr(driver, "context", None), "timeout_s", _TIMEOUT_S))
    return float(getattr(driver, "slow_calls", {}).get("commit", TIMEOUTS * timeout_s))


def await_idle(
    driver: MeshDriver | SwitchDriver,
    watch: Watch = lambda _: None,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] | None = None,
) -> None:
    """Ask until nothing is in progress. One that was at work and cannot be asked now is asked again until the deadline.

    Raises:
        OutcomeUnknownError: the deadline has passed, and the device is still at work or does not say; or it cannot be
            asked at all.
    """
    if Capability.PROGRESS not in driver.capabilities:
        return
    wait = pause or threading.Event().wait
    within_s, pause_s = goes_on_for_s(driver), _FIRST_PAUSE_S
    deadline = clock() + within_s
    shown: Progress | None = None
    while True:
        failure: DeviceError | None = None
        progress: Progress | None = None
        try:
            progress = driver.read_progress()
            if progress is None:
                return
            if progress != shown:
                watch(progress)
                shown = progress
        except DeviceError as error:
            failure = error
        left_s = deadline - clock()
        if left_s <= 0 or shown is None:
            said = "does not say whether it is still at work" if progress is None else in_words(progress)
            waited = f", {within_s:g} s after the change" if left_s <= 0 else ""
            raise OutcomeUnknownError(
                f"{_name(driver)} {said}{waited}" + (f": {failure.message}" if failure else ""),
                hint="nothing that it shows is certain before it has come to an end",
            ) from failure
        wait(min(pause_s, left_s))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def require_idle(driver: MeshDriver | SwitchDriver) -> None:
    """Require that what the device shows now is not on its way to something else.

    Raises:
        DeviceBusyError: it is still at work on an earlier change.
        DeviceError: it does not say.
    """
    if Capability.PROGRESS in driver.capabilities and (progress := driver.read_progress()) is not None:
        raise DeviceBusyError(
            f"{_name(driver)} {in_words(progress)}: what it holds is not read before that has ended",
            hint="wait until it has ended, and try again",
        )


def _name(driver: MeshDriver | SwitchDriver) -> str:
    return str(getattr(getattr(driver, "context", None), "device", "")) or "the device"


def in_words(progress: Progress) -> str:
    """A progress as narration has it: ``is still at work: 12 of 40 cells; text``."""
    if progress.done is None:
        counted = "" if progress.total is None else f"{progress.total} cells to write"
    else:
        counted = f"{progress.done}" + ("" if progress.total is None else f" of {progress.total}") + " cells"
    said = "; ".join(part for part in (counted, progress.text) if part)
    return f"is still at work: {said}" if said else "is still at work"
