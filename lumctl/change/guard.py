"""The revert guard as the engine sees it: a separate process that serves as revert timer for devices without one.

It is armed before a run begins and dismissed when the run ends. If the engine dies, or is silent for too long, the
guard undoes the run from the journal (:mod:`lumctl.change.guard_action`).
"""

import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from lumctl.change import guard_watch
from lumctl.context import Context
from lumctl.devices.endpoints import Endpoints
from lumctl.errors import LumctlError, RefusedError
from lumctl.files import make_private
from lumctl.inventory.model import Inventory
from lumctl.store import Lease

LOG_NAME = "revert-guard.log"
MOST_LOG_BYTES = 65536
TAKEN_BACK_WITHIN_S = 120.0
"""How long an engine that lost its lease waits for its guard's report."""

_BLOCKED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
# pickle raises TypeError and AttributeError for an object that it cannot write.
_NOT_STARTED = (OSError, subprocess.SubprocessError, pickle.PicklingError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class Order:
    """The data that a guard needs to open the engine's rack, as it was when the run began.

    ``stores`` gives, by rack, the store's address and the folder of its files. The lease follows it in the file.
    """

    inventory: Inventory
    target: str
    endpoints: Endpoints
    stores: Mapping[str, tuple[str, Path]]


class Guard:
    """A guard process. It waits from its start and can be armed once."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: int, order: IO[bytes]) -> None:
        self._process = process
        self._pipe: int | None = pipe
        self._order = order

    @property
    def alive(self) -> bool:
        """Whether its process still runs."""
        return self._process.poll() is None

    @property
    def has_hung_up(self) -> bool:
        """Whether the guard ignores the pipe, because it is undoing the run or was killed. Takes a microsecond."""
        if self._pipe is None:
            return False
        poll = select.poll()
        # With an empty mask poll reports only an error: no process holds the reading end any more.
        poll.register(self._pipe, 0)
        return bool(poll.poll(0))

    def arm(self, lease: Lease, silent_s: float) -> None:
        """Arm the guard for the run that is about to begin under a lease.

        Raises:
            RefusedError: its order could not be completed, so it was dismissed; the caller must not write to any
                device.
        """
        try:
            with self._order:
                _complete(self._order, lease)
            self.allow(silent_s)
        except BaseException as error:
            self.dismiss()
            raise _none_armed(error) from error

    def allow(self, seconds: float) -> None:
        """Report that the engine is alive, and how long it may be silent from now on."""
        self._say(f"{seconds:.3f}".encode())

    def dismiss(self) -> None:
        """Report that the run has ended, or will not begin. A guard that has begun to act ignores the report."""
        self._order.close()
        self._say(guard_watch.END)
        if self._hang_up():
            # After a run of a few milliseconds the guard may still be starting: do not wait, but reap it when it ends.
            threading.Thread(target=self._process.wait, name="revert guard", daemon=True).start()

    def finish(self) -> None:
        """Wait until a guard that took over the run has undone it."""
        if self._hang_up():
            try:
                self._process.wait(TAKEN_BACK_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.returncode = 0  # it continues alone; without a return code Popen would warn

    def _say(self, word: bytes) -> None:
        if self._pipe is not None:
            # The guard always reads, so the pipe is never full for long. If it was killed, the journal still names
            # every step that may have acted.
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(self._pipe, word + b"\n")

    def _hang_up(self) -> bool:
        """Close the pipe; return false if it was already closed."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)
        return pipe is not None


Arm = Callable[[Context, Lease, float], Guard]


def arm(
    context: Context, lease: Lease, silent_s: float, *, start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
) -> Guard:
    """Start a guard for the run that is about to begin under a lease; it acts once the engine is silent for this long.

    Raises:
        RefusedError: it cannot be started; the caller must not write to any device.
    """
    return _started(context, lease.rack, start, lease, silent_s)


def stand_by(context: Context, rack: str, *, start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen) -> Guard:
    """Start a guard for a later run of a rack.

    Raises:
        RefusedError: it cannot be started.
    """
    return _started(context, rack, start)


def _started(
    context: Context,
    rack: str,
    start: Callable[..., subprocess.Popen[bytes]],
    lease: Lease | None = None,
    silent_s: float = 0.0,
) -> Guard:
    pipe, ours = os.pipe()
    os.set_blocking(ours, False)
    order = _nameless()
    try:
        order.write(_order_of(context))
        if lease is not None:
            # Written before it starts: if the engine dies now, the guard releases the lease.
            _complete(order, lease)
            os.write(ours, f"{silent_s:.3f}\n".encode())
        with _log(context.store(rack).files) as log, _kept_back():
            process = start(
                # Isolated, without site: it starts faster, and no file of the working folder can replace a module.
                [sys.executable, "-I", "-S", guard_watch.__file__, str(pipe), str(order.fileno()), rack],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=(pipe, order.fileno()),
                # Ctrl-C and a lost terminal reach the engine's session only.
                start_new_session=True,
            )
    except BaseException as error:
        os.close(ours)
        order.close()
        raise _none_armed(error) from error
    finally:
        # Only the guard may hold the reading end: `has_hung_up` sees that the guard has closed it.
        os.close(pipe)
    if lease is not None:
        order.close()
    return Guard(process, ours, order)


def _complete(order: IO[bytes], lease: Lease) -> None:
    """Append the lease to the guard's file and rewind it: the guard reads from the position that it inherits."""
    order.write(pickle.dumps(lease))
    order.flush()
    order.seek(0)


def _none_armed(error: BaseException) -> BaseException:
    if not isinstance(error, _NOT_STARTED):
        return error
    return RefusedError(
        f"cannot start a revert guard: {error}",
        hint="without a guard the run would not be rolled back if this command were killed; nothing was changed",
    )


@contextmanager
def _kept_back() -> Iterator[None]:
    """Block signals that would end the guard while it starts; the guard unblocks them when it is ready."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _order_of(context: Context) -> bytes:
    """The order for the guard, with the present text of the inventory: the file may be edited during the run."""
    stores = {rack: context.store(rack) for rack in context.inventory.racks}
    order = Order(
        inventory=context.inventory,
        target=context.target,
        endpoints=context.endpoints,
        stores={rack: (store.place, store.files) for rack, store in stores.items()},
    )
    # The path comes first: the guard can import lumctl, and so read the order, only once it has set it.
    return pickle.dumps(sys.path) + pickle.dumps(order)


def _nameless() -> IO[bytes]:
    """An unnamed file that the guard inherits."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("lumctl-order"), "w+b")
    return tempfile.TemporaryFile()


def _log(folder: Path) -> IO[bytes]:
    """The log of guards, next to the store; it is truncated when it has grown too large."""
    path = folder / LOG_NAME
    make_private(folder)
    grown = path.exists() and path.stat().st_size > MOST_LOG_BYTES
    # A link in the log's place, which another user of a shared folder could make, is not followed.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | (os.O_TRUNC if grown else 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


class Standby:
    """One waiting guard per rack, because starting a process takes time that a run should not wait for.

    :meth:`ready` starts the next one. Use it as a context manager.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._guards: dict[str, Guard] = {}

    def ready(self, rack: str) -> None:
        """Start a guard for the next run of a rack; if none can be started, that run reports it."""
        guard = self._guards.get(rack)
        if guard is None or not guard.alive:
            self._dismiss(rack)
            with suppress(LumctlError):
                self._guards[rack] = stand_by(self._context, rack)

    def arm(self, context: Context, lease: Lease, silent_s: float) -> Guard:
        """Arm the waiting guard, or one that is started now.

        Raises:
            RefusedError: none can be started; the caller must not write to any device.
        """
        self.ready(lease.rack)
        guard = self._guards.pop(lease.rack, None) or stand_by(context, lease.rack)
        guard.arm(lease, silent_s)
        return guard

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Dismiss the waiting guards."""
        for rack in list(self._guards):
            self._dismiss(rack)

    def _dismiss(self, rack: str) -> None:
        if guard := self._guards.pop(rack, None):
            guard.dismiss()
