"""A server on loopback in front of a device, for drivers that connect by themselves: faults befall what passes."""

import contextlib
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lumctl.devices.ways import Direct, Stream, Way

POLL_S = 0.02
PIECE = 65536
_UNIX = "unix:"


class UnixSocket:
    """The way to a socket in the file system."""

    def __init__(self, path: str) -> None:
        self._path = path

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Connect to it; there are no ports."""
        del default_port
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(timeout_s)
        try:
            connected.connect(self._path)
        except OSError:
            connected.close()
            raise
        return connected

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Not this way."""
        return Direct(self._path).subsystem(name, default_port, timeout_s)


def way_of(address: str) -> Way | None:
    """The way that a driver goes by itself to an address (``[scheme://]host:port`` or ``unix:PATH``), if it has one."""
    if address.startswith(_UNIX):
        return UnixSocket(address.removeprefix(_UNIX))
    place = address.rpartition("://")[2]
    return Direct(place) if place.rpartition(":")[2].isdecimal() else None


@contextmanager
def bridged(address: str, way: Way) -> Iterator[str]:
    """An address of the same form at which whoever connects is led along a way."""
    with contextlib.ExitStack() as held:
        if address.startswith(_UNIX):
            path = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="lumctl-"))) / "s"
            listener = held.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(path))
            listener.listen()
            shown = f"{_UNIX}{path}"
        else:
            listener = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            scheme, mark, _ = address.rpartition("://")
            shown = f"{scheme}{mark}127.0.0.1:{listener.getsockname()[1]}"
        over = threading.Event()
        accepting = threading.Thread(target=_accept, args=(listener, way, over), daemon=True)
        accepting.start()
        try:
            yield shown
        finally:
            over.set()
            accepting.join()


def _accept(listener: socket.socket, way: Way, over: threading.Event) -> None:
    listener.settimeout(POLL_S)
    while not over.is_set():
        try:
            client, _ = listener.accept()
        except OSError:
            continue
        threading.Thread(target=_lead, args=(client, way, over), daemon=True).start()


def _lead(client: socket.socket, way: Way, over: threading.Event) -> None:
    try:
        stream = way.tcp(0, 5.0)
    except Exception:  # noqa: BLE001 - whatever it is, nobody is there
        _reset(client)
        return
    gone = threading.Event()
    sending = threading.Thread(target=_pump, args=(client, stream, gone, over), daemon=True)
    sending.start()
    _pump(stream, client, gone, over)
    sending.join()
    with contextlib.suppress(OSError):
        stream.close()
        client.close()


def _pump(
    source: Stream | socket.socket, target: Stream | socket.socket, gone: threading.Event, over: threading.Event
) -> None:
    """Pass on what comes until either end has gone; a break is passed on as a break."""
    while not (gone.is_set() or over.is_set()):
        try:
            source.settimeout(POLL_S)
            piece = source.recv(PIECE)
        except (TimeoutError, BlockingIOError):
            continue
        except OSError:
            piece = None
        try:
            if piece:
                target.sendall(piece)
                continue
        except OSError:
            pass
        gone.set()
        if piece is None and isinstance(target, socket.socket):
            _reset(target)


def _reset(client: socket.socket) -> None:
    """Close a connection as one that broke."""
    with contextlib.suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
