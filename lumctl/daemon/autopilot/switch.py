"""The switch that stops it all: files in well-known places, looked at before every act.

Whoever wants it stopped may have no inventory that can be read, no database and no room on the disk: one file that can
be made anywhere is enough. A place that cannot be looked at counts as stopped.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lumctl.devices.endpoints import private_runtime_folder
from lumctl.errors import LumctlError
from lumctl.files import make_private
from lumctl.store import state_folder

FOLDER, ALL = "autopilot-stop", "all"
SYSTEM = Path("/run/lumctl")
"""Of the machine, where an administrator has made it: it is for the daemons of all users."""
FILE = "autopilot.stop"
"""Beside a rack's store, for whoever shares it."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one way to stop: ``trouble`` is empty where it worked."""

    way: str
    trouble: str = ""


def places(racks: Iterable[str], files: Iterable[Path] = (), *, alone: bool = False) -> tuple[Path, ...]:
    """Every stop file that speaks of some racks; those for all racks as well, unless they ``alone`` are meant.

    ``files`` are the folders of the racks' stores. The other target's racks of these names are stopped along with
    them: whoever stops is in a hurry.
    """
    folders = [_runtime() / FOLDER, state_folder() / FOLDER, SYSTEM / FOLDER]
    names = list(racks) if alone else [ALL, *racks]
    found = (*(folder / name for folder in folders for name in names), *(folder / FILE for folder in files))
    return tuple(dict.fromkeys(found))


def thrown(where: Iterable[Path]) -> str | None:
    """Why nothing may be done: a stop file is there, or it cannot be known; ``None`` if none is."""
    for path in where:
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return f"the stop file {path} cannot be looked for: {error.strerror}"
        return f"by the file {path}{_said_in(path)}"
    return None


def throw(where: Iterable[Path], said: str) -> list[Written]:
    """Make stop files, as many as can be made; a file that is there already stays as it is."""
    return [_made(path, said) for path in where if path.parent.parent != SYSTEM or SYSTEM.is_dir()]


def release(where: Iterable[Path]) -> list[Written]:
    """Remove stop files; what is left could not be removed."""
    done = []
    for path in where:
        try:
            path.unlink()
            done.append(Written(str(path)))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            done.append(Written(str(path), error.strerror or str(error)))
    return done


def _made(path: Path, said: str) -> Written:
    try:
        make_private(path.parent)
        opened = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    except OSError as error:
        return Written(str(path), error.strerror or str(error))
    # That it is there is what counts: a disk without room for a line has room for a name.
    with suppress(OSError):
        if os.fstat(opened).st_size == 0:
            os.write(opened, said.encode()[:1000])
            os.fsync(opened)
    os.close(opened)
    return Written(str(path))


def _said_in(path: Path) -> str:
    with suppress(OSError):
        text = path.read_bytes()[:1000].decode(errors="replace").strip()
        return f" ({text})" if text else ""
    return ""


def _runtime() -> Path:
    try:
        return private_runtime_folder()
    except LumctlError:  # none that is ours alone: the other places remain
        return state_folder()
