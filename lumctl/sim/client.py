"""Asks a running simulator over its control socket: one JSON line there, one JSON line back."""

import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.permission import require_permission
from lumctl.errors import LumctlError, UsageError
from lumctl.json_lines import JsonLines, connect

_ERRORS: dict[str, type[LumctlError]] = {
    "usage": UsageError,
    "refused": DeviceRefusedError,
    "unreachable": DeviceUnreachableError,
}


def ask(control: Path, do: str, *, timeout_s: float | None = 10.0, **arguments: Any) -> dict[str, Any]:
    """One request and its answer.

    Raises:
        DeviceUnreachableError: no simulator answers; nothing was sent.
        OutcomeUnknownError: it was asked, and no whole answer came in time.
        UsageError, DeviceRefusedError: what the simulator says against the request.
    """
    with closing(_connected(control, timeout_s)) as connection:
        answer = _asked(connection, do, arguments, timeout_s)
        if do == "down":
            connection.settimeout(timeout_s)
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
    try:
        return connect(control, timeout_s)
    except OSError as error:
        raise DeviceUnreachableError(
            f"no simulator answers at {control} ({error.strerror or error})", hint="lumctl sim up --detach"
        ) from None


def _asked(connection: socket.socket, do: str, arguments: Mapping[str, Any], within_s: float | None) -> dict[str, Any]:
    lines = JsonLines(connection)
    try:
        require_permission()
        lines.send({"do": do, **arguments}, within_s)
        answer = lines.receive(within_s)
    except (OSError, ValueError) as error:
        raise OutcomeUnknownError(f"the simulator was asked for {do} and gave no answer ({error})") from None
    if "error" in answer:
        said = answer["error"]
        raise _ERRORS.get(said["kind"], LumctlError)(said["message"], hint=said.get("hint"))
    return answer


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
