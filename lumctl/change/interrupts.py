"""Signals during a run: a run that is asked to stop is undone, and an undo is not interrupted."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STOPPING = (signal.SIGTERM, signal.SIGHUP)
"""What a service manager and a lost terminal send; Ctrl-C (SIGINT) raises by itself."""


@contextmanager
def stopping_undoes() -> Iterator[None]:
    """While inside, a request to stop is raised as Ctrl-C is, so that it is not the end of the process."""
    with _handled(_STOPPING, _raise):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """While inside, requests to stop are passed over: half an undo is worse than a late end."""
    with _handled((*_STOPPING, signal.SIGINT), signal.SIG_IGN):
        yield


@contextmanager
def _handled(signals: tuple[signal.Signals, ...], handler: Callable[..., Any] | signal.Handlers) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals, and only it may set handlers
        return
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
