"""The daemon's side of its socket: the newest look for whoever asks, and may enter this user's own folder."""

import json
import os
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lumctl.daemon.autopilot.pilot import Pilot
from lumctl.daemon.client import ORDER_SCHEMA, SCHEMA, encode
from lumctl.site.observation import Observation
from lumctl.sockets import bound


class LatestObservation:
    """Holds one look and knows its age by a clock that nobody sets. A single reference is exchanged: no lock."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._held: tuple[Observation, float] | None = None

    def put(self, look: Observation) -> None:
        """A look that was taken just now."""
        self._held = (look, self._monotonic())

    @property
    def look(self) -> Observation | None:
        """The newest look; ``None`` before the first."""
        held = self._held
        return held[0] if held else None

    def age_s(self) -> float | None:
        """How long ago it was taken; ``None`` before the first."""
        held = self._held
        return self._monotonic() - held[1] if held else None


MOST_AT_ONCE = 16
POLL_S = 0.1
"""How long an end may take to be noticed."""


class Bounded(socketserver.ThreadingMixIn):
    """Mixed into a ``socketserver.BaseServer``: it hangs up on whoever comes when all places are taken."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(*arguments, **options)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, or hang up."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)  # type: ignore[attr-defined]

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and free the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asks nonsense, or leaves before the answer, is no trouble of the daemon's."""


_MOST_BYTES = 4096
_PATIENCE_S = 5.0


class ObservationServer:
    """Serves the newest look on a unix-domain socket until it is closed, and hands orders to the autopilot."""

    def __init__(self, path: Path, newest: LatestObservation, pilot: Pilot | None = None) -> None:
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
    def __init__(self, path: str, newest: LatestObservation, pilot: Pilot | None) -> None:
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
        if asked["schema"] == ORDER_SCHEMA:
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


def obeyed(order: Mapping[str, Any], pilot: Pilot | None) -> dict[str, Any]:
    """Do what an order says, in the daemon; the answer says how things stand after that."""
    if pilot is not None:
        if order.get("do") == "stop":
            pilot.stop(f"by {order.get('who', 'somebody')}")
        elif order.get("do") == "start":
            pilot.start()
    return {
        "schema": ORDER_SCHEMA,
        "pid": os.getpid(),
        "stopped": pilot.stopped if pilot is not None else "it has no autopilot",
        "busy": bool(pilot is not None and pilot.busy),
    }
