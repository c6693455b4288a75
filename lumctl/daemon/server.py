"""The daemon's side of its socket: its newest observation for any process of this user, and orders to the autopilot."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lumctl.daemon.autopilot.pilot import Pilot
from lumctl.daemon.client import ORDER_SCHEMA, SCHEMA, encode
from lumctl.site.observation import Observation
from lumctl.sockets import LineServer, Peer


class LatestObservation:
    """Holds the newest observation and its age by the monotonic clock. One reference is exchanged: it needs no lock."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._held: tuple[Observation, float] | None = None
        self._encoded: tuple[Observation, bytes] | None = None
        self._encoding = threading.Lock()

    def put(self, look: Observation) -> None:
        """Take an observation that was made just now."""
        self._held = (look, self._monotonic())

    @property
    def look(self) -> Observation | None:
        """The newest observation; ``None`` before the first."""
        held = self._held
        return held[0] if held else None

    def age_s(self) -> float | None:
        """How long ago it was made; ``None`` before the first."""
        held = self._held
        return self._monotonic() - held[1] if held else None

    def encoded(self, look: Observation) -> bytes:
        """An observation as bytes, made once however many ask for it."""
        with self._encoding:
            if self._encoded is None or self._encoded[0] is not look:
                self._encoded = (look, encode(look))
            return self._encoded[1]


def observation_server(path: Path, newest: LatestObservation, pilot: Pilot | None = None) -> LineServer:
    """Serve the newest observation until the server is closed, and pass orders to the autopilot.

    The answer to a request for the observation is a line with its length, followed by so many bytes.

    Raises:
        UsageError: no socket can be made there.
    """

    def answer(request: Mapping[str, Any], peer: Peer) -> tuple[dict[str, Any], bytes]:
        del peer
        if request["schema"] == ORDER_SCHEMA:
            return obey(request, pilot), b""
        look, age_s = newest.look, newest.age_s()
        fits = (
            look is not None
            and age_s is not None
            and request["schema"] == SCHEMA
            and request["digest"] == look.inventory.digest
            and age_s <= float(request["max_age_s"])
        )
        body = newest.encoded(look) if look is not None and fits else b""
        return {"schema": SCHEMA, "pid": os.getpid(), "age_s": age_s, "length": len(body)}, body

    hint = "set $XDG_RUNTIME_DIR to a folder of yours with a short name"
    return LineServer(path, answer, name="lumctl-observations", hint=hint)


def obey(order: Mapping[str, Any], pilot: Pilot | None) -> dict[str, Any]:
    """Carry out an order to the autopilot; the answer gives its state after that."""
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
