"""Keep a run from ending early: a request to stop undoes it, nothing interrupts an undo, and its lease is renewed."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from lumctl.errors import LumctlError
from lumctl.store import Lease, Store
from lumctl.store.clock import TERM_S

_STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""What a service manager, a lost terminal and Ctrl-C send."""


class _Once:
    """Raises the first request to stop as KeyboardInterrupt; later requests are ignored."""

    heard = held_back = waits = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self.held_back:
            self.waits = True
        elif not self.heard:
            self.heard = True
            raise KeyboardInterrupt


_handlers: list[_Once] = []
"""The last one in this list is active; only the main thread has any."""


@contextmanager
def stopping_undoes() -> Iterator[None]:
    """While inside, the first request to stop raises KeyboardInterrupt instead of ending the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _handlers.append(_Once())
    try:
        with _handled(_STOPPING, _handlers[-1]):
            yield
    finally:
        _handlers.pop()


def hold_back_interrupts() -> None:
    """Hold back requests to stop until :func:`let_interrupts_in`: the run that begins cannot be ended properly yet."""
    if (handler := _at_work()) is not None:
        handler.held_back = True


def let_interrupts_in() -> None:
    """Raise a request to stop that was held back. After this, a request to stop takes effect at once.

    Raises:
        KeyboardInterrupt: a request was held back.
    """
    if (handler := _at_work()) is not None:
        handler.held_back = False
        if handler.waits and not handler.heard:
            handler.heard = True
            raise KeyboardInterrupt


def pass_over_interrupts() -> None:
    """Ignore requests to stop until :func:`stopping_undoes` ends: the run is at its end.

    A request that came just before is raised here at the latest.
    """
    if (handler := _at_work()) is not None:
        handler.heard = True


def _at_work() -> _Once | None:
    return _handlers[-1] if _handlers and threading.current_thread() is threading.main_thread() else None


@contextmanager
def undisturbed() -> Iterator[None]:
    """While inside, requests to stop are ignored: half an undo is worse than a late end."""
    with _handled(_STOPPING, signal.SIG_IGN):
        yield


@contextmanager
def _handled(signals: tuple[signal.Signals, ...], handler: Callable[..., Any] | signal.Handlers) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread only, and only it may set handlers
        return
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


LEASE_TERM_S = TERM_S
"""How long a rack stays locked after its engine has died."""


@contextmanager
def kept_alive(store: Store, lease: Lease, now: Callable[[], float]) -> Iterator[None]:
    """Renew a lease three times per term in a thread, until the block ends.

    A failed renewal is not reported here: the next journal entry checks the lease and is refused.
    """
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(LEASE_TERM_S / 3):
            with suppress(LumctlError):
                store.leases.renew(lease, term_s=LEASE_TERM_S, now=now())

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        # A renewal that is still under way would extend the lease after its release.
        thread.join()
