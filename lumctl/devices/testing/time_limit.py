"""Time limits for calls that may never return, on a clock that stops while the machine is busy elsewhere."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_TICK_S = 0.01


class Call:
    """A call in its own thread; holds what it returned or raised after it ends."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.value: Any = None
        self.error: BaseException | None = None
        self.ended = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self.value = self._call()
        except BaseException as error:  # noqa: BLE001 - a driver may raise anything
            self.error = error
        self.ended.set()


def ended_within(call: Call, seconds: float) -> bool:
    """Whether a call ends within a time limit; time in which this process does not run is not counted."""
    ticks = int(seconds / _TICK_S)
    for _ in range(ticks):
        if call.ended.wait(_TICK_S):
            return True
    return call.ended.is_set()


class NeverEndedError(Exception):
    """A call did not return in time."""


_PATIENCE_S, _LATER_S = 40.0, 5.0
_hung = threading.Event()


def bounded(call: Callable[[], T]) -> T:
    """Run a call in its own thread and return or raise its result; a thread that hangs is abandoned.

    After one call hung, later ones get only a short time.

    Raises:
        NeverEndedError: the call did not return in time.
    """
    context = copy_context()
    running = Call(lambda: context.run(call))
    if not ended_within(running, _LATER_S if _hung.is_set() else _PATIENCE_S):
        _hung.set()
        raise NeverEndedError
    if isinstance(running.error, KeyboardInterrupt):
        raise RuntimeError("KeyboardInterrupt") from running.error  # noqa: TRY004 - the driver raised it, not the user
    if running.error is not None:
        raise running.error
    result: T = running.value
    return result


@contextmanager
def closing(driver: Any) -> Iterator[Any]:
    """A driver that is closed at the end; errors of close are ignored."""
    try:
        yield driver
    finally:
        with contextlib.suppress(Exception):
            bounded(driver.close)
