"""Files that are there whole or not at all."""

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
