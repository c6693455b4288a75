"""Files that are there whole or not at all, and folders that only their owner may enter."""

from contextlib import suppress
from pathlib import Path

from lumctl.errors import UsageError


def put(path: Path, data: bytes) -> None:
    """Write beside a file and then into its place: what stood there is whole until the new one is.

    Raises:
        UsageError: it cannot be written.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


def make_private(folder: Path) -> None:
    """Make a folder, and what is missing above it, that only this user may enter, whatever the umask is.

    ``Path.mkdir`` applies its mode to the last folder only; a user who can write to a parent folder could replace it.

    Raises:
        OSError: it cannot be made.
    """
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
