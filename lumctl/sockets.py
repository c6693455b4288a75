"""Unix-domain sockets of programs that serve: made beside their place, closed to others from the start, moved there."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lumctl.errors import UsageError
from lumctl.files import make_private

Server = TypeVar("Server")


def listening(path: Path, backlog: int, *, hint: str) -> socket.socket:
    """A stream socket that listens at a path, as :func:`bound` makes it; ``backlog`` may wait to be accepted.

    Raises:
        UsageError: it cannot be made there; ``hint`` says what helps.
    """

    def bind(where: str) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(where)
            made.listen(backlog)
        except BaseException:
            made.close()
            raise
        return made

    return bound(path, bind, hint=hint)


def bound(path: Path, bind: Callable[[str], Server], *, hint: str, group: int | None = None) -> Server:
    """A server at a path; what a killed one left there is replaced. Only its user may connect, or a ``group`` too.

    ``bind`` makes the server at the place that it is given.

    Raises:
        UsageError: no socket can be made there; ``hint`` says what helps.
    """
    made = path.with_name(f"{path.name}.new")
    try:
        make_private(path.parent)
        made.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            server = bind(str(made))
        finally:
            os.umask(before)
        if group is not None:
            os.chown(made, -1, group)
            made.chmod(0o660)
        made.rename(path)
    except OSError as error:
        raise UsageError(f"no socket can be had at {path}: {error.strerror or error}", hint=hint) from error
    return server
