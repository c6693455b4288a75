"""Asks a running simulator over its control socket: one JSON line there, one JSON line back."""

import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.permission import require_permission
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Progress
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


_SCHEME = "unix:"


def ask_simulator(context: DriverContext, do: str, **arguments: Any) -> dict[str, Any]:
    """One request about the device of a context, and its answer.

    Raises:
        DeviceUnreachableError: the address is no simulator's, or none answers there; nothing was sent.
        DeviceRefusedError: the simulator says no, or does not know such a device.
        OutcomeUnknownError: it was asked, and no whole answer came in time.
    """
    if not context.address.startswith(_SCHEME):
        raise DeviceUnreachableError(
            f"{context.device} is simulated and {context.address!r} is no simulator's socket",
            hint="aim at the simulator: --target sim",
        )
    control = Path(context.address.removeprefix(_SCHEME))
    try:
        return ask(control, do, timeout_s=context.timeout_s, device=context.device, **arguments)
    except UsageError as error:
        raise DeviceRefusedError(error.message, hint=error.hint) from None


def read_simulator(context: DriverContext, do: str, **arguments: Any) -> dict[str, Any]:
    """A question that changes nothing: that no answer came leaves no doubt about the device's state.

    Raises: as :func:`ask_simulator`, and DeviceUnreachableError in place of OutcomeUnknownError.
    """
    try:
        return ask_simulator(context, do, **arguments)
    except OutcomeUnknownError as error:
        raise DeviceUnreachableError(f"{context.device} does not answer: {error.message}") from None


def read_progress(context: DriverContext) -> Progress | None:
    """Progress of a change that the context's simulated mesh or switch is still making; ``None``: no change.

    Raises: as :func:`read_simulator`.
    """
    said = read_simulator(context, "progress")["progress"]
    return None if said is None else Progress(**said)
