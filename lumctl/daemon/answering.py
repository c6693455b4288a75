"""The daemon's side of its socket: the newest look for whoever asks, and may enter this user's own folder."""

import json
import os
import socketserver
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from lumctl.daemon.autopilot.orders import SCHEMA as ORDERS
from lumctl.daemon.autopilot.orders import obeyed
from lumctl.daemon.autopilot.pilot import Pilot
from lumctl.daemon.bounded import POLL_S, Bounded
from lumctl.daemon.newest import Newest
from lumctl.daemon.wire import SCHEMA, encode
from lumctl.site.observation import Observation
from lumctl.sockets import bound

_MOST_BYTES = 4096
_PATIENCE_S = 5.0


class Answering:
    """Serves the newest look on a unix-domain socket until it is closed, and hands orders to the autopilot."""

    def __init__(self, path: Path, newest: Newest, pilot: Pilot | None = None) -> None:
        """Begin to answer; a socket file that a killed daemon left is replaced.

        Raises:
            UsageError: no socket can be made there.
        """
        self._path = path
        self._server = bound(
            path,
            lambda made: _Server(made, newest, pilot),
            hint="set $XDG_RUNTIME_DIR to a folder of yours with a short name",
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), name="lumctl-answering", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Answer no more, and take the socket away."""
        with suppress(OSError):  # its folder may only be read by now: the next daemon replaces what is left
            self._path.unlink(missing_ok=True)
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(Bounded, socketserver.UnixStreamServer):
    def __init__(self, path: str, newest: Newest, pilot: Pilot | None) -> None:
        self.newest = newest
        self.pilot = pilot
        self._encoded: tuple[Observation, bytes] | None = None
        self._encoding = threading.Lock()
        super().__init__(path, _Handler)

    def body(self, observation: Observation) -> bytes:
        """An observation as bytes, made once however many ask for it."""
        with self._encoding:
            if self._encoded is None or self._encoded[0] is not observation:
                self._encoded = (observation, encode(observation))
            return self._encoded[1]


class _Handler(socketserver.StreamRequestHandler):
    timeout = _PATIENCE_S
    server: _Server

    def handle(self) -> None:
        """One request, one answer: a header in one line of JSON, then as many bytes as it says."""
        asked = json.loads(self.rfile.readline(_MOST_BYTES))
        if asked["schema"] == ORDERS:
            self.wfile.write(json.dumps(obeyed(asked, self.server.pilot)).encode() + b"\n")
            return
        look = self.server.newest.look
        age_s = self.server.newest.age_s()
        fits = (
            look is not None
            and age_s is not None
            and asked["schema"] == SCHEMA
            and asked["digest"] == look.inventory.digest
            and age_s <= float(asked["max_age_s"])
        )
        body = self.server.body(look) if look is not None and fits else b""
        header = {"schema": SCHEMA, "pid": os.getpid(), "age_s": age_s, "length": len(body)}
        self.wfile.write(json.dumps(header).encode() + b"\n" + body)
