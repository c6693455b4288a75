"""Waits for a device that completes a change after its answer, or after its answer was lost.

A driver with :attr:`Capability.PROGRESS` reports whether its device is still working on a change. Until it reports
none, values read from the device are provisional and are ignored.
"""

import threading
import time
from collections.abc import Callable

from lumctl.devices.errors import DeviceBusyError, DeviceError, OutcomeUnknownError
from lumctl.devices.protocols import MeshDriver, SwitchDriver
from lumctl.devices.types import Capability, Progress

TIMEOUTS = 6
"""Time limit for a change, in multiples of the limit for one call, if the driver does not state its own."""
_TIMEOUT_S = 5.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0
"""Seconds between polls. Devices do not notify us, and most finish at once: poll quickly at first, then more slowly."""

Watch = Callable[[Progress], object]
"""Called with each new progress."""


def goes_on_for_s(driver: MeshDriver | SwitchDriver) -> float:
    """Seconds that the device may work on a change after its answer; 0 if the driver cannot report the end.

    The driver's own ``slow_calls["commit"]``, if stated.
    """
    if Capability.PROGRESS not in driver.capabilities:
        return 0.0
    # A driver behind a gateway has neither of these attributes: only the driver in the gateway process has them.
    timeout_s = float(getattr(getattr(driver, "context", None), "timeout_s", _TIMEOUT_S))
    return float(getattr(driver, "slow_calls", {}).get("commit", TIMEOUTS * timeout_s))


def await_idle(
    driver: MeshDriver | SwitchDriver,
    watch: Watch = lambda _: None,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] | None = None,
) -> None:
    """Poll until nothing is in progress. A device that stops answering while it works is polled until the deadline.

    Raises:
        OutcomeUnknownError: at the deadline the device is still working or does not report its progress; or it never
            answered.
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
        # A device that has not reported progress once may be idle: nothing shows that waiting would help.
        if left_s <= 0 or shown is None:
            said = "does not report whether it is still working on a change" if progress is None else in_words(progress)
            waited = f", {within_s:g} s after the change" if left_s <= 0 else ""
            raise OutcomeUnknownError(
                f"{_name(driver)} {said}{waited}" + (f": {failure.message}" if failure else ""),
                hint="wait until the device has finished, then read it: until then its readings are not final",
            ) from failure
        wait(min(pause_s, left_s))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def require_idle(driver: MeshDriver | SwitchDriver) -> None:
    """Require that no change is in progress, so that the device's readings are final.

    Raises:
        DeviceBusyError: it is still working on an earlier change.
        DeviceError: it does not report its progress.
    """
    if Capability.PROGRESS in driver.capabilities and (progress := driver.read_progress()) is not None:
        raise DeviceBusyError(
            f"{_name(driver)} {in_words(progress)}; its state is not read until that ends",
            hint="wait until the device has finished, then try again",
        )


def _name(driver: MeshDriver | SwitchDriver) -> str:
    return str(getattr(getattr(driver, "context", None), "device", "")) or "the device"


def in_words(progress: Progress) -> str:
    """A progress for a message: ``is still at work: 12 of 40 cells; text``."""
    if progress.done is None:
        counted = "" if progress.total is None else f"{progress.total} cells to write"
    else:
        counted = f"{progress.done}" + ("" if progress.total is None else f" of {progress.total}") + " cells"
    said = "; ".join(part for part in (counted, progress.text) if part)
    return f"is still at work: {said}" if said else "is still at work"
