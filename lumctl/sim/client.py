"""Asks a running simulator over its control socket: one JSON line there, one JSON line back."""

import contextlib
import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.permission import require_permission
from lumctl.errors import LumctlError, UsageError

_ERRORS: dict[str, type[LumctlError]] = {
    "usage": UsageError,
    "refused": DeviceRefusedError,
    "unreachable": DeviceUnreachableError,
}
_MOST_BYTES = 8 * 1024 * 1024


def ask(control: Path, do: str, *, timeout_s: float | None = 10.0, **arguments: Any) -> dict[str, Any]:
    """One request and its answer.

    Raises:
        DeviceUnreachableError: no simulator answers; nothing was sent.
        OutcomeUnknownError: it was asked, and no whole answer came in time.
        UsageError, DeviceRefusedError: what the simulator says against the request.
    """
    with contextlib.closing(_connected(control, timeout_s)) as connection:
        answer = _asked(connection, do, arguments, timeout_s)
        if do == "down":
            _await_end(connection)
    return answer


def open_loop(control: Path, host: str, *, timeout_s: float = 10.0) -> socket.socket:
    """A connection whose two directions are the input and the output of ``sh`` on a host.

    Raises:
        LumctlError: as :func:`ask`.
    """
    connection = _connected(control, timeout_s)
    try:
        _asked(connection, "loop", {"host": host}, timeout_s)
    except BaseException:
        connection.close()
        raise
    connection.settimeout(None)
    return connection


def _connected(control: Path, timeout_s: float | None) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        connection.connect(str(control))
    except OSError as error:
        connection.close()
        raise DeviceUnreachableError(
            f"no simulator answers at {control} ({error.strerror or error})", hint="lumctl sim up --detach"
        ) from None
    return connection


def _asked(connection: socket.socket, do: str, arguments: Mapping[str, Any], within_s: float | None) -> dict[str, Any]:
    try:
        require_permission()
        connection.sendall(json.dumps({"do": do, **arguments}).encode() + b"\n")
        answer = _answer(connection, within_s)
    except (OSError, ValueError) as error:
        raise OutcomeUnknownError(f"the simulator was asked for {do} and gave no answer ({error})") from None
    if "error" in answer:
        said = answer["error"]
        raise _ERRORS.get(said["kind"], LumctlError)(said["message"], hint=said.get("hint"))
    return answer


def _answer(connection: socket.socket, within_s: float | None) -> dict[str, Any]:
    received = bytearray()
    ends = time.monotonic() + within_s if within_s is not None else None
    while not received.endswith(b"\n"):
        if ends is not None:  # one deadline for the whole answer, however small its pieces
            left_s = ends - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("timed out")
            connection.settimeout(left_s)
        chunk = connection.recv(65536)
        if not chunk:
            raise ValueError("it closed the connection")
        received += chunk
        if len(received) > _MOST_BYTES:
            raise ValueError("its answer has no end")
    connection.settimeout(within_s)
    found = json.loads(received)
    if not isinstance(found, dict):
        raise ValueError("its answer is no object")  # noqa: TRY004 - one kind of error for every broken answer
    return found


def _await_end(connection: socket.socket) -> None:
    """Wait until the simulator is gone: the kernel closes its end of this socket with the process."""
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        raise OutcomeUnknownError(
            "the simulator was told to end and still runs", hint="see: lumctl sim status"
        ) from None
    except OSError:
        return
