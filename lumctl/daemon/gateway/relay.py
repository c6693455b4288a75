"""Relay between standard input and output and a gateway's socket, for a client that comes over SSH."""

import os
import socket
import threading
from pathlib import Path

from lumctl.devices.gated.client import dial_socket
from lumctl.errors import UnreachableError

_PIECE = 65536
_WITHIN_S = 5.0


def joined(path: Path, source: int = 0, sink: int = 1) -> None:
    """Carry bytes both ways until either side ends: whoever asked and has gone is seen to have gone.

    Raises:
        UnreachableError: no gateway answers there.
    """
    try:
        connection = dial_socket(str(path), _WITHIN_S)
    except OSError as error:
        raise UnreachableError(f"no gateway answers at {path}: {error.strerror or error}") from error
    assert isinstance(connection, socket.socket)  # noqa: S101 - it is dialled so
    connection.settimeout(None)

    def inward() -> None:
        try:
            while piece := os.read(source, _PIECE):
                connection.sendall(piece)
        except OSError:
            pass
        # The other half may wait for an answer that nobody will read: it ends too.
        connection.shutdown(socket.SHUT_RDWR)

    with connection:
        threading.Thread(target=inward, name="asking", daemon=True).start()
        try:
            while piece := connection.recv(_PIECE):
                view = memoryview(piece)
                while view:
                    view = view[os.write(sink, view) :]
        except OSError:
            return
