"""The switch that stops the autopilot: stop files, journal, running daemons. Each is tried even if others fail.

The inventory may be unreadable, the database down and the disk full: one file in any of several places is enough to
stop. A place that cannot be checked counts as stopped. Starting again requires all places.
"""

import os
import select
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lumctl.change.approval import AUTOPILOT
from lumctl.daemon import client
from lumctl.daemon.autopilot.memory import REMARK, Event
from lumctl.devices.endpoints import private_runtime_folder
from lumctl.errors import LumctlError, RefusedError
from lumctl.files import make_private
from lumctl.store import Store, StoredRun, state_folder

FOLDER, ALL = "autopilot-stop", "all"
SYSTEM = Path("/run/lumctl")
"""The folder for stop files that apply to all users of this machine, if an administrator has made it."""
FILE = "autopilot.stop"
"""The name of the stop file next to a rack's store, for all daemons that share the store."""


@dataclass(frozen=True, slots=True)
class StopResult:
    """The result of one way to stop; ``trouble`` is empty if that way worked."""

    way: str
    trouble: str = ""


def places(racks: Iterable[str], files: Iterable[Path] = (), *, alone: bool = False) -> tuple[Path, ...]:
    """Every stop file that stops some racks, including those for all racks unless ``alone``.

    ``files`` are the folders of the racks' stores. Racks of the same names on the other target are stopped too: a stop
    is urgent.
    """
    folders = [_runtime() / FOLDER, state_folder() / FOLDER, SYSTEM / FOLDER]
    names = list(racks) if alone else [ALL, *racks]
    found = (*(folder / name for folder in folders for name in names), *(folder / FILE for folder in files))
    return tuple(dict.fromkeys(found))


def thrown(where: Iterable[Path]) -> str | None:
    """Why the autopilot is stopped: a stop file exists or cannot be checked. ``None`` if no stop file exists."""
    for path in where:
        try:
            # lstat: a broken link stops, too, and an error is not taken for a file that is absent.
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return f"the stop file {path} cannot be checked: {error.strerror}"
        return f"by the file {path}{_said_in(path)}"
    return None


def throw(where: Iterable[Path], said: str) -> list[StopResult]:
    """Create stop files, as many as possible; existing ones stay unchanged."""
    return [_made(path, said) for path in where if path.parent.parent != SYSTEM or SYSTEM.is_dir()]


def release(where: Iterable[Path]) -> list[StopResult]:
    """Remove stop files; a result with ``trouble`` is a file that could not be removed."""
    done = []
    for path in where:
        try:
            path.unlink()
            done.append(StopResult(str(path)))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            done.append(StopResult(str(path), error.strerror or str(error)))
    return done


def _made(path: Path, said: str) -> StopResult:
    try:
        make_private(path.parent)
        opened = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    except OSError as error:
        return StopResult(str(path), error.strerror or str(error))
    # The file's existence counts: a full disk has room for a name, but not for a line of text.
    with suppress(OSError):
        if os.fstat(opened).st_size == 0:
            os.write(opened, said.encode()[:1000])
            os.fsync(opened)
    os.close(opened)
    return StopResult(str(path))


def _said_in(path: Path) -> str:
    with suppress(OSError):
        text = path.read_bytes()[:1000].decode(errors="replace").strip()
        return f" ({text})" if text else ""
    return ""


def _runtime() -> Path:
    try:
        return private_runtime_folder()
    except LumctlError:  # without a private folder, the other places remain
        return state_folder()


ENDS_S = 10.0
"""How long a daemon may take to end."""
STORE_S = 10.0
"""How long a database may take before it counts as unreachable."""
OPEN, RUNNING, STOPPED = "open", "running", "stopped"
JOB_RUN = "job run "
"""Prefix of a recovery run's name. The operator approved its swaps when starting the job."""


def stop_by_files(where: Sequence[Path], said: str) -> list[StopResult]:
    """Stop by files, which need neither inventory nor database."""
    return [StopResult(f"file {each.way}", each.trouble) for each in throw(where, said)]


def order_daemons(sockets: Sequence[Path], do: str, who: str) -> list[StopResult]:
    """Send an order to daemons directly; sockets without a running daemon are skipped."""
    done = []
    for path in sockets:
        try:
            answer = client.send_order(path, do, who=who)
        except (FileNotFoundError, ConnectionRefusedError):
            continue
        except (OSError, ValueError) as error:
            done.append(StopResult(f"daemon at {path}", str(error) or type(error).__name__))
        else:
            done.append(StopResult(f"daemon {answer['pid']}"))
    return done


def stop_in_store(open_one: Callable[[], Store], rack: str, *, who: str, comment: str, at: float) -> StopResult:
    """Stop by a remark in the journal, for daemons on other machines. A database that hangs is abandoned soon."""

    def remark() -> None:
        store = open_one()
        try:
            store.journal.remark(REMARK, {"event": Event.STOP.value, "comment": comment}, at=at, who=who)
        finally:
            with suppress(LumctlError):  # the remark is written, even if closing fails
                store.close()

    trouble = within(remark, STORE_S)
    return StopResult(f"store of {rack}", trouble)


def end_daemon(pid: int) -> StopResult:
    """End a daemon by its process id, if no other way has worked. The daemon first finishes its run."""
    way = f"daemon {pid}: its end"
    try:
        # The descriptor stays with this process, even if its number is given to another one meanwhile.
        process = os.pidfd_open(pid)
    except OSError as error:
        return StopResult(way, error.strerror or str(error))
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        # A pidfd becomes readable when its process has ended.
        ended, _, _ = select.select([process], [], [], ENDS_S)
    except OSError as error:
        return StopResult(way, error.strerror or str(error))
    finally:
        os.close(process)
    return StopResult(way, "" if ended else f"it has not ended within {ENDS_S:g} s")


def start_in_store(store: Store, *, who: str, comment: str, at: float) -> None:
    """Start the autopilot again by a remark in the journal.

    Raises:
        StoreError: the remark cannot be written; the autopilot stays stopped.
    """
    store.journal.remark(REMARK, {"event": Event.START.value, "comment": comment}, at=at, who=who)


def release_files(where: Sequence[Path]) -> list[Path]:
    """Remove stop files; return those that existed.

    Raises:
        RefusedError: a file cannot be removed; the autopilot stays stopped.
    """
    done = release(where)
    for each in done:
        if each.trouble:
            raise RefusedError(f"{each.way} cannot be removed: {each.trouble}", hint="remove it as its owner")
    return [Path(each.way) for each in done]


def own_runs(store: Store, *, now: float) -> list[StoredRun]:
    """The runs in progress that no operator started, except interrupted ones. Their engines finish or undo them."""
    cut, unasked = set(store.runs.unfinished(now=now)), (AUTOPILOT, JOB_RUN)
    return [r for r in store.runs.all() if r.state == "running" and r.id not in cut and r.who.startswith(unasked)]


def within(work: Callable[[], None], seconds: float) -> str:
    """Do work that may hang; return the reason if it was not done in time, or an empty text if it was done."""
    trouble: list[str] = [f"no answer within {seconds:g} s"]

    def run() -> None:
        try:
            work()
        except LumctlError as error:
            trouble[0] = error.message
        except Exception as error:  # noqa: BLE001 - the other ways must be tried in any case
            trouble[0] = f"{type(error).__name__}: {error}"
        else:
            trouble[0] = ""

    # A daemon thread: one that hangs must not keep the command from ending.
    thread = threading.Thread(target=run, name="lumctl-autopilot-stop", daemon=True)
    thread.start()
    thread.join(seconds)
    return trouble[0]
