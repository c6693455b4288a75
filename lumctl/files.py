"""Files that are there whole or not at all, and folders that only their owner may enter."""

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

from lumctl.errors import UsageError


def write_whole(path: Path, content: str | bytes, *, mode: int | None = 0o600) -> None:
    """Write a file that is there whole or not at all, whenever the process or the power fails.

    The content goes into a file beside ``path``, onto the disk, and then into its place; until then the old content
    stays. ``mode`` is the file's whatever the umask is; with ``None`` it is what the umask leaves of 0o666.

    Raises:
        OSError: it cannot be written; the old content is still there, unless only the folder could not be synchronised.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(beside, flags, 0o666 if mode is None else mode), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
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
        UsageError: it cannot be written.
    """
    try:
        write_whole(path, content, mode=mode)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    """Put a folder's entries on the disk: without it the power can take a new name, though its content is there."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # one may write into the folder and not read it: it cannot be synchronised then
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # some file systems cannot, and need not
            raise
    finally:
        os.close(opened)


def make_private(folder: Path) -> None:
    """Make a folder, and what is missing above it, that only this user may enter, whatever the umask is.

    ``Path.mkdir`` applies its mode to the last folder only; a user who can write to a parent folder could replace it.

    Raises:
        OSError: it cannot be made.
    """
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
