"""The switch that stops the autopilot: stop files, the journal, running daemons; each is tried whatever the others do.

An operator who stops it may have no readable inventory, no database and no room on the disk: one file in any of
several places is enough. A place that cannot be checked counts as stopped. Starting again needs all places.
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
"""For the daemons of all users of this machine, if an administrator has made this folder."""
FILE = "autopilot.stop"
"""Beside a rack's store, for all who share it."""


@dataclass(frozen=True, slots=True)
class StopResult:
    """The result of one way to stop; ``trouble`` is empty if it worked."""

    way: str
    trouble: str = ""


def places(racks: Iterable[str], files: Iterable[Path] = (), *, alone: bool = False) -> tuple[Path, ...]:
    """Every stop file that stops some racks, including those for all racks unless ``alone``.

    ``files`` are the folders of the racks' stores. Racks of these names on the other target are stopped too: a stop
    is urgent.
    """
    folders = [_runtime() / FOLDER, state_folder() / FOLDER, SYSTEM / FOLDER]
    names = list(racks) if alone else [ALL, *racks]
    found = (*(folder / name for folder in folders for name in names), *(folder / FILE for folder in files))
    return tuple(dict.fromkeys(found))


def thrown(where: Iterable[Path]) -> str | None:
    """Why the autopilot is stopped: a stop file exists, or cannot be checked; ``None`` if there is none."""
    for path in where:
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return f"the stop file {path} cannot be looked for: {error.strerror}"
        return f"by the file {path}{_said_in(path)}"
    return None


def throw(where: Iterable[Path], said: str) -> list[StopResult]:
    """Create stop files, as many as possible; existing ones stay as they are."""
    return [_made(path, said) for path in where if path.parent.parent != SYSTEM or SYSTEM.is_dir()]


def release(where: Iterable[Path]) -> list[StopResult]:
    """Remove stop files; results with a ``trouble`` could not be removed."""
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
    # Its existence counts: a full disk has room for a name, though not for a line.
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
    except LumctlError:  # no private folder: the other places remain
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
    """Order daemons directly. Those that do not run are left out."""
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
    """Stop by a remark in the journal, for daemons on other machines; a database that hangs is given up soon."""

    def remark() -> None:
        store = open_one()
        try:
            store.journal.remark(REMARK, {"event": Event.STOP.value, "comment": comment}, at=at, who=who)
        finally:
            with suppress(LumctlError):  # the remark is written, whatever closing says
                store.close()

    trouble = within(remark, STORE_S)
    return StopResult(f"store of {rack}", trouble)


def end_daemon(pid: int) -> StopResult:
    """End a daemon by its process id, if no other way has worked. It finishes its run first."""
    way = f"daemon {pid}: its end"
    try:
        process = os.pidfd_open(pid)
    except OSError as error:
        return StopResult(way, error.strerror or str(error))
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        ended, _, _ = select.select([process], [], [], ENDS_S)
    except OSError as error:
        return StopResult(way, error.strerror or str(error))
    finally:
        os.close(process)
    return StopResult(way, "" if ended else f"it has not ended within {ENDS_S:g} s")


def start_in_store(store: Store, *, who: str, comment: str, at: float) -> None:
    """Start again, by a remark in the journal.

    Raises:
        StoreError: it cannot be written; the autopilot stays stopped.
    """
    store.journal.remark(REMARK, {"event": Event.START.value, "comment": comment}, at=at, who=who)


def release_files(where: Sequence[Path]) -> list[Path]:
    """Remove stop files; return those that existed.

    Raises:
        RefusedError: one cannot be removed; the autopilot stays stopped.
    """
    done = release(where)
    for each in done:
        if each.trouble:
            raise RefusedError(f"{each.way} cannot be removed: {each.trouble}", hint="remove it as its owner")
    return [Path(each.way) for each in done]


def own_runs(store: Store, *, now: float) -> list[StoredRun]:
    """The runs under way that no operator started. Their engines finish or undo them; interrupted runs are left out."""
    cut, unasked = set(store.runs.unfinished(now=now)), (AUTOPILOT, JOB_RUN)
    return [r for r in store.runs.all() if r.state == "running" and r.id not in cut and r.who.startswith(unasked)]


def within(work: Callable[[], None], seconds: float) -> str:
    """Do something that may hang; the reason if it was not done, empty if it was."""
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

    thread = threading.Thread(target=run, name="lumctl-autopilot-stop", daemon=True)
    thread.start()
    thread.join(seconds)
    return trouble[0]
