"""Ask a running simulator over its control socket: one JSON line as the request, one as the answer."""

import math
import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from lumctl.devices.endpoints import START_SIMULATOR
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
    """Send one request and return its answer.

    Raises:
        DeviceUnreachableError: no simulator answers, or it did not take the whole request; nothing was done.
        OutcomeUnknownError: the request was sent, but no complete answer came in time.
        UsageError, DeviceRefusedError: the simulator rejects the request.
    """
    with closing(_connected(control, timeout_s)) as connection:
        answer = _asked(connection, do, arguments, timeout_s)
        if do == "down":
            connection.settimeout(timeout_s)
            _await_end(connection)
    return answer


def open_loop(control: Path, host: str, *, timeout_s: float = 10.0) -> socket.socket:
    """Open a connection whose two directions are the input and the output of ``sh`` on a host.

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
            f"no simulator answers at {control} ({error.strerror or error})", hint=f"start it: {START_SIMULATOR}"
        ) from None


def _asked(connection: socket.socket, do: str, arguments: Mapping[str, Any], within_s: float | None) -> dict[str, Any]:
    lines = JsonLines(connection)
    try:
        require_permission()
        lines.send({"do": do, **arguments}, within_s)
    except OSError as error:
        # The simulator acts on no incomplete line.
        raise DeviceUnreachableError(
            f"the request for {do} could not be sent to the simulator ({error}); nothing was done",
            hint="see: lumctl sim status",
        ) from None
    try:
        answer = lines.receive(within_s)
    except (OSError, ValueError) as error:
        raise OutcomeUnknownError(f"the simulator did not answer the request {do} ({error})") from None
    if "error" in answer:
        said = answer["error"]
        raise _ERRORS.get(said["kind"], LumctlError)(said["message"], hint=said.get("hint"))
    return answer


def _await_end(connection: socket.socket) -> None:
    """Wait until the simulator has ended: the kernel then closes its end of this socket."""
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        raise OutcomeUnknownError(
            "the simulator was asked to end but still runs", hint="see: lumctl sim status"
        ) from None
    except OSError:
        return


_SCHEME = "unix:"


def ask_simulator(context: DriverContext, do: str, **arguments: Any) -> dict[str, Any]:
    """Send one request about the device of a context, and return the answer.

    Raises:
        DeviceUnreachableError: the address is not a simulator's, or as for :func:`ask`; nothing was done.
        DeviceRefusedError: the simulator refuses, or does not know the device.
        OutcomeUnknownError: the request was sent, but no complete answer came in time.
    """
    if not context.address.startswith(_SCHEME):
        raise DeviceUnreachableError(
            f"{context.device} is simulated, but {context.address!r} is not a simulator's socket",
            hint="use the simulator: --target sim",
        )
    control = Path(context.address.removeprefix(_SCHEME))
    try:
        return ask(control, do, timeout_s=context.timeout_s, device=context.device, **arguments)
    except UsageError as error:
        raise DeviceRefusedError(error.message, hint=error.hint) from None


def read_simulator(context: DriverContext, do: str, **arguments: Any) -> dict[str, Any]:
    """Send a request that changes nothing, so that a missing answer leaves no doubt about the device's state.

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


def dbm_as_json(dbm: float) -> float | None:
    """A power as answers hold it: JSON has no infinities, so no light is ``None`` (null)."""
    return dbm if dbm > -math.inf else None


def dbm_from_json(said: float | None) -> float:
    """A power from an answer, in dBm; ``-inf`` for no light."""
    return -math.inf if said is None else float(said)
