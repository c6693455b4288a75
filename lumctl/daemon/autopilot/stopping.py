"""Stopping by every way at once, each tried whatever became of the others; and starting again, which needs them all."""

import os
import select
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from lumctl.change.approval import AUTOPILOT
from lumctl.daemon.autopilot import orders, switch
from lumctl.daemon.autopilot.memory import REMARK, Event
from lumctl.daemon.autopilot.switch import Written
from lumctl.errors import LumctlError, RefusedError
from lumctl.store import Run, Store

ENDS_S = 10.0
"""How long a daemon may take to end."""
STORE_S = 10.0
"""How long a database may take before it counts as gone."""
OPEN, RUNNING, STOPPED = "open", "running", "stopped"
JOB_RUN = "job run "
"""Prefix of a recovery run's name. The operator approved its swaps when starting the job."""


def stop_by_files(where: Sequence[Path], said: str) -> list[Written]:
    """Stop files: they need neither inventory nor database."""
    return [Written(f"file {each.way}", each.trouble) for each in switch.throw(where, said)]


def order_daemons(sockets: Sequence[Path], do: str, who: str) -> list[Written]:
    """Tell daemons directly. One that does not run needs no telling, and is left out."""
    done = []
    for path in sockets:
        try:
            answer = orders.send(path, do, who=who)
        except (FileNotFoundError, ConnectionRefusedError):
            continue
        except (OSError, ValueError) as error:
            done.append(Written(f"daemon at {path}", str(error) or type(error).__name__))
        else:
            done.append(Written(f"daemon {answer['pid']}"))
    return done


def stop_in_store(open_one: Callable[[], Store], rack: str, *, who: str, comment: str, at: float) -> Written:
    """Remark it in the journal, for daemons on other machines; a database that hangs is not waited for for long."""

    def remark() -> None:
        with _opened(open_one) as store:
            store.remark(REMARK, {"event": Event.STOP.value, "comment": comment}, at=at, who=who)

    trouble = within(remark, STORE_S)
    return Written(f"store of {rack}", trouble)


def end_daemon(pid: int) -> Written:
    """End a daemon by its process id: for when no other way has worked. It finishes first what it does."""
    way = f"daemon {pid}: its end"
    try:
        process = os.pidfd_open(pid)
    except OSError as error:
        return Written(way, error.strerror or str(error))
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        ended, _, _ = select.select([process], [], [], ENDS_S)
    except OSError as error:
        return Written(way, error.strerror or str(error))
    finally:
        os.close(process)
    return Written(way, "" if ended else f"it has not ended within {ENDS_S:g} s")


def start_in_store(store: Store, *, who: str, comment: str, at: float) -> None:
    """Remark that it may act again.

    Raises:
        StoreError: it cannot be written down: then it does not start.
    """
    store.remark(REMARK, {"event": Event.START.value, "comment": comment}, at=at, who=who)


def release_files(where: Sequence[Path]) -> list[Path]:
    """Remove stop files; gives those that were there.

    Raises:
        RefusedError: one cannot be removed: the autopilot goes on doing nothing.
    """
    done = switch.release(where)
    for each in done:
        if each.trouble:
            raise RefusedError(f"{each.way} cannot be removed: {each.trouble}", hint="remove it as its owner")
    return [Path(each.way) for each in done]


def own_runs(store: Store, *, now: float) -> list[Run]:
    """The running runs that no operator started. Their engines finish or undo them; runs that were cut are left out."""
    cut, unasked = set(store.unfinished(now=now)), (AUTOPILOT, JOB_RUN)
    return [r for r in store.runs() if r.state == "running" and r.id not in cut and r.who.startswith(unasked)]


def within(work: Callable[[], None], seconds: float) -> str:
    """Do something that may hang; why it was not done, empty if it was."""
    trouble: list[str] = [f"no answer within {seconds:g} s"]

    def run() -> None:
        try:
            work()
        except LumctlError as error:
            trouble[0] = error.message
        except Exception as error:  # noqa: BLE001 - whatever it is, the other ways are to be tried
            trouble[0] = f"{type(error).__name__}: {error}"
        else:
            trouble[0] = ""

    thread = threading.Thread(target=run, name="lumctl-autopilot-stop", daemon=True)
    thread.start()
    thread.join(seconds)
    return trouble[0]


class _opened:  # noqa: N801 - used as a function, in a with statement
    def __init__(self, open_one: Callable[[], Store]) -> None:
        self._open_one = open_one

    def __enter__(self) -> Store:
        self._store = self._open_one()
        return self._store

    def __exit__(self, *_: object) -> None:
        with suppress(LumctlError):
            self._store.close()
