"""Read a file of an inventory: its bytes, up to a limit, and their text."""

import os
import pwd
import re
import stat
from itertools import islice
from pathlib import Path

from lumctl.inventory.problems import Mark, Problems
from lumctl.printable import printable

MOST_BYTES = 4 * 1024 * 1024
_BEGINNING_BYTES = 64 * 1024
_MOST_FILES = 100
_KEYS = re.compile(rb"^lumctl:[ \t]*1[ \t]*(?:#.*)?\r?$", re.MULTILINE), re.compile(rb"^(?:racks|hosts):", re.MULTILINE)
"""Lines of an inventory that no runbook, plan or mesh file has together."""


def read_bytes(path: Path) -> bytes | str:
    """The content of the file, or the error as a text that continues a message after the file's name."""
    try:
        with path.open("rb") as file:
            # One byte more shows that the file is too large, even if it grows meanwhile.
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    return f"is larger than {MOST_BYTES // 1024 // 1024} MiB" if len(content) > MOST_BYTES else content


def likely_inventories(folder: Path) -> list[Path]:
    """YAML files of a folder that begin like an inventory, by name; only such as no other user may write.

    At most the first hundred YAML files are looked at, and not the folders in it.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                islice((each.name for each in entries if each.name.endswith((".yaml", ".yml"))), _MOST_FILES)
            )
    except OSError:
        return []
    return [folder / name for name in names if _begins_like_inventory(folder / name)]


def _begins_like_inventory(path: Path) -> bool:
    # A name that is not printed as it is could not be typed.
    if printable(path.name) != path.name or not path.is_file() or writable_by_others(path):
        return False
    try:
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING_BYTES)
    except OSError:
        return False
    return all(key.search(beginning) for key in _KEYS)


def writable_by_others(path: Path) -> str | None:
    """Why another user may write the file, links followed; ``None`` if only this user and root may."""
    try:
        whole = path.resolve(strict=True)
        return _opens(whole) or _opens(whole.parent)
    except OSError:
        return None  # reading the file reports the error


def folder_writable_by_others(folder: Path) -> str | None:
    """Why another user can replace a file in a folder, links followed; ``None`` if only this user and root can."""
    try:
        return _opens(folder.resolve(strict=True))
    except OSError:
        return None  # lumctl makes it private, or fails with an error


def _opens(path: Path) -> str | None:
    """Why another user can write a file or replace files in a folder. In a sticky folder other users cannot."""
    status = path.stat()
    if status.st_uid not in {0, os.geteuid()}:
        return f"{path} is owned by {_user(status.st_uid)}"
    if status.st_mode & stat.S_IWOTH and not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
        return f"every user may write {path}"
    return None


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def decoded(content: bytes, problems: Problems) -> str | None:
    """The content as text; ``None`` if it is not UTF-8, which is reported."""
    try:
        # Some editors begin a file with a byte order mark.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", errors="replace")
        mark = Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))
        problems.add(mark, f"found byte 0x{content[error.start]:02x}, expected UTF-8 text")
        return None
