"""Intercepts a driver's connection path, shell or address to inject faults, if the author supplies none."""

from __future__ import annotations

import contextlib
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from lumctl.devices.errors import DeviceError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.faults import FaultyWay, Trouble, WayFault
from lumctl.devices.testing.shell_faults import FaultyShell, ShellFault
from lumctl.devices.testing.time_limit import bounded, closing
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
            # Any free port at first; later the same one, because drivers know the address.
            listener = socket.create_server(("127.0.0.1", getattr(self, "_port", 0)))
            self._port = listener.getsockname()[1]
        else:
            self._path = Path(self._folder.name) / "s"
            # A Unix-domain socket stays in the file system when it is closed.
            self._path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self._path))
            listener.listen()
        # accept() must not wait, because it holds the lock that gone() needs.
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
        # With a linger time of 0 the kernel sends a reset instead of an orderly end.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


Opens = Callable[[DriverContext], Any]
_PARTS = 8
_ANSWER_FAULTS = (WayFault.BROKEN_ANSWER, WayFault.CUT_ANSWER, WayFault.SILENT, WayFault.GARBAGE)
_NO_ANSWERS = (b"?\n", b"\n", b"error 42: busy\r\n")


@dataclass(frozen=True)
class Fault:
    """One fault: its description and its settings."""

    text: str
    trouble: Trouble | None = None
    command: tuple[ShellFault, int] | None = None


class Interception:
    """A connection path and a shell that inject faults.

    Drivers opened with ``context`` use them; ``unhurried`` does too, but keeps the device's own time limit.
    """

    def __init__(
        self, context: DriverContext, way: FaultyWay, shell: FaultyShell | None, bridge: Bridge | None = None
    ) -> None:
        self.way, self.shell, self.context = way, shell, context
        self.unhurried = context
        self._bridge = bridge

    @property
    def passed(self) -> bool:
        """Whether a driver has used this way."""
        return self.way.opened > 0 or (self.shell is not None and self.shell.ran > 0)

    @property
    def attempts(self) -> int:
        """Connections and commands so far."""
        return self.way.opened + (self.shell.ran if self.shell is not None else 0)

    def hurry(self, timeout_s: float) -> None:
        """Set how long drivers of ``context`` wait for a silent device."""
        self.context = replace(self.context, timeout_s=timeout_s)

    def heal(self) -> None:
        """End all faults, and release the calls that wait."""
        self.way.trouble = None
        if self._bridge is not None:
            self._bridge.gone(gone=False)
        self.way.over.set()
        self.way.over.clear()
        if self.shell is not None:
            self.shell.set(None)
            hung, self.shell.hung = self.shell.hung, None
            if hung is not None:
                hung.set()

    def set(self, fault: Fault) -> None:
        """Start a fault."""
        self.way.trouble = fault.trouble
        if self._bridge is not None:
            self._bridge.gone(gone=fault.trouble is not None and fault.trouble.fault is WayFault.REFUSED)
        if self.shell is not None and fault.command is not None:
            self.shell.set(fault.command[0], after=fault.command[1])

    def gone(self) -> Fault:
        """The device cannot be reached at all."""
        return Fault("the device does not answer", Trouble(WayFault.REFUSED), (ShellFault.LOST_BEFORE, 0))

    def faults_of(self, act: Callable[[], object], *, sending: bool) -> list[Fault]:
        """The faults to try on an act; the act runs once without faults to count its bytes and commands."""
        sent, came, ran = self.way.sent, self.way.came, self.shell.ran if self.shell else 0
        act()
        found = []
        if self.shell is not None and self.shell.ran > ran:
            found = [
                Fault(f"{fault} at command {at + 1}", command=(fault, at))
                for at in range(min(self.shell.ran - ran, _PARTS))
                for fault in ShellFault
            ]
        sent, came = self.way.sent - sent, self.way.came - came
        if came:
            found += [
                Fault(f"{fault} after {after} bytes of the answer", Trouble(fault, after))
                for fault in _ANSWER_FAULTS
                if self._bridge is None or fault is not WayFault.SILENT  # on a bridge it takes the whole time limit
                for after in _spread(came)
            ]
            found += [Fault(f"the answer is {text!r}", Trouble(WayFault.GARBAGE, text=text)) for text in _NO_ANSWERS]
        if sending and sent:
            found += [
                Fault(f"the connection breaks after {after} sent bytes", Trouble(WayFault.CUT_SENDING, after))
                for after in _spread(sent)
            ]
        return [*found, self.gone()]

    def silent(self, after: int = 0) -> Fault:
        """The device accepts connections and never answers."""
        return Fault("the device is silent", Trouble(WayFault.SILENT, after, lasts=True))

    def endless(self) -> Fault:
        """The device answers byte by byte without end."""
        return Fault("the answer never ends", Trouble(WayFault.DRIPPING, lasts=True))


def _spread(count: int) -> list[int]:
    """Positions from the first byte to the last."""
    return sorted({0, count - 1, *(count * part // _PARTS for part in range(1, _PARTS))})


@contextmanager
def intercepted(context: DriverContext, opens: Opens, probe: Callable[[Any], object]) -> Iterator[Interception | None]:
    """Intercept traffic between drivers and their device; ``None`` if the kit does not know how they reach it.

    ``probe`` reads from the device with a driver. If no traffic is seen then, the driver connects by itself, and a
    server on loopback replaces its address.
    """
    shell = FaultyShell(context.shell) if context.shell is not None else None
    way = FaultyWay(context.way)
    direct = Interception(replace(context, way=way, shell=shell), way, shell)
    if _passes(direct, opens, probe):
        yield _cleared(direct)
        return
    own = way_of(context.address)
    if own is None:
        yield None
        return
    way = FaultyWay(own)
    with Bridge(context.address, way) as bridge:
        beside = Interception(replace(context, address=bridge.address), way, None, bridge)
        yield _cleared(beside) if _passes(beside, opens, probe) else None
        # Releases what still waits on the bridge, so that its threads end.
        way.over.set()


def _passes(interception: Interception, opens: Opens, probe: Callable[[Any], object]) -> bool:
    with closing(bounded(lambda: opens(interception.context))) as driver, contextlib.suppress(DeviceError):
        bounded(lambda: probe(driver))
    return interception.passed


def _cleared(interception: Interception) -> Interception:
    interception.heal()
    return interception
