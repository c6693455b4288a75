"""What a revert guard does when its engine is gone or frozen: it undoes the run as the engine would have done.

It takes over the run with a new lease number, so that an engine that wakes up can no longer write. It then
rebuilds the run from the journal, and undoes and ends the run with the engine's own code. A run whose every step was
done and proved is closed as done. If the run has ended, or there is a newer lease (an operator has undone the run by
hand), the guard does nothing.
"""

import pickle
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import IO, TYPE_CHECKING

from lumctl.change.guard_watch import GONE, SILENT
from lumctl.change.interrupts import LEASE_TERM_S, kept_alive
from lumctl.change.run import RunInProgress
from lumctl.change.run_end import rolled_back
from lumctl.context import Context
from lumctl.errors import LumctlError
from lumctl.printable import printable
from lumctl.store import Lease, StoredRun, StoreError, store_at
from lumctl.store.lease_process import LeaseProcess

if TYPE_CHECKING:
    from lumctl.change.guard import Order

NAME = "revert guard of"
ATTEMPTS = 240
PAUSE_S = 1.0
"""How often the guard retries a store that is not writable (locked, disk full, no folder), and the pause in between."""

Say = Callable[[str], None]


def main(order: IO[bytes], why: str, silent_s: float) -> None:
    """Execute the order that the engine wrote."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)  # half an undo is worse than a late end
    with order:
        what: Order = pickle.load(order)  # noqa: S301 - written by our engine, into a file without a name
        lease: Lease = pickle.load(order)  # noqa: S301 - likewise
    with Context(
        what.inventory,
        what.target,
        endpoints=what.endpoints,
        store=lambda rack: store_at(what.stores[rack][0], files=what.stores[rack][1], rack=rack, make=False),
    ) as context:
        try:
            take_over(context, lease, _reason(why, silent_s), say=_say)
        except LumctlError as error:
            _say(error.message)


def take_over(
    context: Context, lease: Lease, reason: str, *, say: Say, pause: Callable[[float], object] = time.sleep
) -> None:
    """Undo the run that is open under a lease, if there is one, and release its lease.

    A frozen engine is killed first: it could write to a device when it wakes up. A running one is not killed, because
    it may be a daemon or a dashboard; once the lease is seized, none of its writes is permitted.
    """
    taken = _seized(context, lease, pause)
    store = context.store(lease.rack)
    if taken is None:
        with suppress(StoreError):
            store.leases.release(lease)  # its engine may have died after the end of its run and before this release
        return
    stored, ours = taken
    say(f"{stored.id}: {reason}")
    try:
        with kept_alive(store, ours, context.now):
            run = RunInProgress.resumed(context, store, ours, stored, f"{NAME} {stored.id}").unasked()
            if run.complete:
                for step in run.to_resume:
                    run.perform(step)
                state = run.close()
                say(f"{stored.id}: every step was done and proved, so the run is closed as {state}")
            else:
                say(rolled_back(run, reason).message)
    finally:
        with suppress(StoreError):
            store.leases.release(ours)


def _seized(context: Context, lease: Lease, pause: Callable[[float], object]) -> tuple[StoredRun, Lease] | None:
    def seize() -> tuple[StoredRun, Lease] | None:
        return context.store(lease.rack).runs.seize(lease, holder=NAME, term_s=LEASE_TERM_S, now=context.now())

    for _ in range(ATTEMPTS):
        _end_frozen_engine(lease)
        try:
            return seize()
        except StoreError:
            pause(PAUSE_S)
    # The last attempt raises, so that the log names the reason.
    return seize()


def _end_frozen_engine(lease: Lease) -> None:
    """End the engine if it is stopped: an engine frozen inside a write to the store would block all other writers."""
    engine = LeaseProcess(lease.process, lease.deadline.at) if lease.process is not None else None
    if engine is not None and (state := engine.state) is not None and state.stopped:
        engine.end()


def _reason(why: str, silent_s: float) -> str:
    if why == GONE:
        return "its engine died"
    if why == SILENT:
        return f"its engine did nothing for {silent_s:.0f} s"
    return "the service was stopped while its engine was still running"


def _say(line: str) -> None:
    at = datetime.now().astimezone().isoformat(timespec="seconds")
    print(f"{at} {printable(line)}", file=sys.stderr, flush=True)  # noqa: T201
