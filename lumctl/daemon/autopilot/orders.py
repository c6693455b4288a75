"""Orders to the autopilot of a running daemon, over its socket: one line of JSON each way."""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumctl.devices.endpoints import private_runtime_folder
from lumctl.errors import LumctlError

if TYPE_CHECKING:
    from lumctl.daemon.autopilot.pilot import Pilot

SCHEMA = "lumctl/daemon/autopilot-order/v1"
TIMEOUT_S = 2.0
_MOST_BYTES = 4096


def obeyed(order: Mapping[str, Any], pilot: "Pilot | None") -> dict[str, Any]:
    """Do what an order says, in the daemon; the answer says how things stand after that."""
    if pilot is not None:
        if order.get("do") == "stop":
            pilot.stop(f"by {order.get('who', 'somebody')}")
        elif order.get("do") == "start":
            pilot.start()
    return {
        "schema": SCHEMA,
        "pid": os.getpid(),
        "stopped": pilot.stopped if pilot is not None else "it has no autopilot",
        "busy": bool(pilot is not None and pilot.busy),
    }


def sockets() -> Iterator[Path]:
    """The sockets of all daemons of this user, whatever they watch: for when no inventory can be read."""
    try:
        folder = private_runtime_folder()
    except LumctlError:
        return
    yield from sorted(folder.glob("watch-*/state.sock"))


def send(path: Path, do: str, *, who: str = "", timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Order the daemon at a socket to ``stop``, ``start``, or only tell its ``status``.

    Raises:
        OSError: no daemon is there, or it does not answer in time.
        ValueError: what it answers is no answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(json.dumps({"schema": SCHEMA, "do": do, "who": who[:200]}).encode() + b"\n")
        received = b""
        while b"\n" not in received:
            piece = connection.recv(_MOST_BYTES)
            if not piece:
                raise ConnectionError("the daemon hung up")
            received += piece
    answer = json.loads(received)
    if not isinstance(answer, dict) or answer.get("schema") != SCHEMA:
        raise ValueError("a daemon of another version")
    return answer
