"""A server on loopback that injects faults in front of a device, for drivers that connect by themselves."""

import contextlib
import socket
import struct
import tempfile
import threading
from pathlib import Path
from typing import Self

from lumctl.devices.ways import Direct, Stream, Way

POLL_S = 0.02
PIECE = 65536
_UNIX = "unix:"


class UnixSocket:
    """The route to a socket in the file system."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)

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
        """Not supported on this route."""
        return Direct(self._path).subsystem(name, default_port, timeout_s)


def way_of(address: str) -> Way | None:
    """The route by which a driver itself connects to an address (``[scheme://]host:port`` or ``unix:PATH``), if any."""
    if address.startswith(_UNIX):
        return UnixSocket(address.removeprefix(_UNIX))
    place = address.rpartition("://")[2]
    return Direct(place) if place.rpartition(":")[2].isdecimal() else None


class Bridge:
    """A server whose address has the form of another one; it forwards each connection along a route.

    While it is :meth:`gone`, nothing listens there. Use it as a context manager.
    """

    def __init__(self, address: str, way: Way) -> None:
        self._way = way
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="lumctl-") if address.startswith(_UNIX) else None
        self._listener: socket.socket | None = self._listen()
        scheme, mark, _ = address.rpartition("://")
        self.address = f"{_UNIX}{self._path}" if self._folder else f"{scheme}{mark}127.0.0.1:{self._port}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def gone(self, *, gone: bool) -> None:
        """Close the listener, or open it again at the same address."""
        with self._lock:
            if gone and self._listener is not None:
                self._listener.close()
                self._listener = None
            elif not gone and self._listener is None:
                self._listener = self._listen()

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._accepting.join()
        self.gone(gone=True)
        if self._folder is not None:
            self._folder.cleanup()

    def _listen(self) -> socket.socket:
        if self._folder is None:
            listener = socket.create_server(("127.0.0.1", getattr(self, "_port", 0)))
            self._port = listener.getsockname()[1]
        else:
            self._path = Path(self._folder.name) / "s"
            self._path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self._path))
            listener.listen()
        listener.settimeout(0)
        return listener

    def _accept(self) -> None:
        while not self._over.wait(POLL_S / 4):
            with self._lock:
                try:
                    client = self._listener.accept()[0] if self._listener is not None else None
                except OSError:
                    client = None
            if client is not None:
                threading.Thread(target=_lead, args=(client, self._way, self._over), daemon=True).start()


def _lead(client: socket.socket, way: Way, over: threading.Event) -> None:
    try:
        stream = way.tcp(0, 5.0)
    except Exception:  # noqa: BLE001 - any error means that nothing answers
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
    """Forward data until either end closes; forward a broken connection as a broken connection."""
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
    """Close a connection as if it broke."""
    with contextlib.suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
