"""Writes files atomically, and makes folders that only their owner may enter."""

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

from lumctl.errors import UsageError


def write_whole(path: Path, content: str | bytes, *, mode: int | None = 0o600) -> None:
    """Write a file atomically: if the process or the power fails, it has its old or its new content.

    The content is written to a file next to ``path``, synchronised to the disk, and then renamed to ``path``. The umask
    does not affect ``mode``; with ``None`` the mode is 0o666 reduced by the umask.

    Raises:
        OSError: the file cannot be written. It has its old content, unless only synchronising the folder failed.
    """
    # In the same folder, because a rename cannot cross file systems.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    # O_EXCL and O_NOFOLLOW: in a shared folder another user may have put a link there.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(beside, flags, 0o666 if mode is None else mode), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            # Before the rename: otherwise a power failure can leave the new name with an empty file.
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def put(path: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Write a file that a user asked for: see :func:`write_whole`.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        write_whole(path, content, mode=mode)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    """Synchronise a folder's entries to the disk: otherwise a power failure can lose the name of a new file."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # a folder that may be written but not read cannot be synchronised
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # some file systems do not support this and do not need it
            raise
    finally:
        os.close(opened)


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents; only this user may enter them, whatever the umask is.

    ``Path.mkdir`` applies its mode to the last folder only; a user who can write to a parent folder could replace it.

    Raises:
        OSError: the folder cannot be made.
    """
    for each in reversed((folder, *folder.parents)):
        # ``exist_ok``: another process may make the folder between the two calls.
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
