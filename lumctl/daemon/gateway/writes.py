"""Writes of a gateway: one request at a time for each device, behind the fence, each with a line in the log."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lumctl.daemon.gateway.fencing import Fence
from lumctl.devices.errors import DeviceError, DeviceRefusedError
from lumctl.devices.gateway.wire import GatewaySubject
from lumctl.sockets import Peer

T = TypeVar("T")

LOG_FILE = "gateway.log"
MAX_LOG_BYTES = 4 * 1024 * 1024
"""The size at which the log is renamed to gateway.log.1 and a new one begins."""


class GatewayLog:
    """A log file with a JSON line for each write, sent or refused. A full disk is reported once and blocks no write."""

    def __init__(self, path: Path, say: Callable[[str], None], max_bytes: int = MAX_LOG_BYTES) -> None:
        self._path = path
        self._say = say
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._told = False
        self.sent = 0
        self.refused = 0

    def add(self, line: Mapping[str, Any], *, refused: bool) -> None:
        """Log a write."""
        text = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            self.sent, self.refused = self.sent + (not refused), self.refused + refused
            try:
                self._append(text)
                self._told = False
            except OSError as error:
                if not self._told:
                    self._say(f"{self._path} cannot be written: {error.strerror}")
                self._told = True

    def _append(self, text: bytes) -> None:
        # A link that another user made would lead the log into a file of theirs.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        try:
            size = os.fstat(file).st_size
            os.write(file, text)
        finally:
            os.close(file)
        if size + len(text) > self._max_bytes:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))


class FencedWrites:
    """Sends writes to devices under the numbers of leases, and logs them. Thread-safe."""

    def __init__(self, fence: Fence, log: GatewayLog, *, now: Callable[[], float], say: Callable[[str], None]) -> None:
        self._fence = fence
        self._log = log
        self._now = now
        self._say = say
        self._lock = threading.Lock()
        self._turns: dict[GatewaySubject, threading.Lock] = {}

    @contextmanager
    def turn(self, subject: GatewaySubject) -> Iterator[None]:
        """Serve one request at a time, so that a new lease reads the result of the older lease's last write."""
        with self._lock:
            turn = self._turns.setdefault(subject, threading.Lock())
        with turn:
            yield

    def write(self, line: Mapping[str, Any], peer: Peer, number: Callable[[], int | None], send: Callable[[], T]) -> T:
        """Send one write and return its result; call it within the device's turn.

        ``line`` is its line in the log, with the keys ``device`` and ``call``. ``number`` gives the number of the lease
        under which it is sent, or refuses it.

        Raises:
            DeviceError: any error of ``number``, ``send`` or the fence.
        """
        line = {**line, "fence": None, "peer": {"pid": peer.pid, "uid": peer.uid}}
        sent, outcome = False, "done"
        try:
            line["fence"] = number()
            with self._fence.writing(line["fence"]):
                require_there(peer)  # the client may have disconnected while it waited for an older lease's write
                # From here on something may have reached the device, even if the driver raises.
                sent, at, began = True, self._now(), time.perf_counter()
                try:
                    return send()
                except Exception as error:
                    outcome = _named(error)
                    raise
                finally:
                    took = round(time.perf_counter() - began, 6)
                    self._log.add({"at": at, **line, "took": took, "outcome": outcome}, refused=False)
        except DeviceError as error:
            if not sent:
                self._log.add({"at": self._now(), **line, "outcome": _named(error)}, refused=True)
                what = f"{line['call']} of {line['device']}"
                self._say(f"refused: {what} by process {peer.pid} (user {peer.uid}): {error.message}")
            raise


def require_there(peer: Peer) -> None:
    """Refuse a request whose client has disconnected.

    Raises:
        DeviceRefusedError: it has; nothing was sent.
    """
    if not peer.waits():
        raise DeviceRefusedError("the client disconnected; nothing was sent")


def _named(error: Exception) -> str:
    return type(error).__name__
