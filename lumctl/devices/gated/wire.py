"""What passes between a program and the gateway of a rack: a line of JSON each way, after a line of greeting.

A line that is not whole is never acted on: who could not send all of it knows that nothing was done.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from lumctl.devices import errors
from lumctl.devices.errors import DeviceError, OutcomeUnknownError
from lumctl.devices.recorded_calls import WRITES
from lumctl.devices.recorded_values import encode_error
from lumctl.devices.ways import Stream
from lumctl.errors import LumctlError, UsageError

SCHEMA = "lumctl/daemon/gateway/v1"
MOST_BYTES = 16 * 1024 * 1024
"""The longest line: a change of a hundred thousand cells fits."""
FENCED = WRITES - {"announce"}
"""The calls that need a lease. A host may always say who it is: that moves no light, and is asked before any lease."""
_PIECE = 65536


class Lines:
    """Lines over a stream. One thread at a time."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._pending = bytearray()

    def send(self, said: Mapping[str, Any], within_s: float) -> None:
        """Send a line.

        Raises:
            OSError: not all of it was sent.
        """
        self.stream.settimeout(within_s)
        self.stream.sendall(json.dumps(said, separators=(",", ":")).encode() + b"\n")

    def receive(self, within_s: float, *, begins_within_s: float | None = 0.0) -> dict[str, Any]:
        """The next line; it may be waited for longer (``None``: for ever) than it may take once it has begun.

        Raises:
            OSError: it did not come in time, or the other side has closed.
            ValueError: it is too long, or not what this program says.
        """
        deadline = time.monotonic() + within_s
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            searched = len(self._pending)
            if len(self._pending) > MOST_BYTES:
                raise ValueError(f"a line of more than {MOST_BYTES} bytes")
            waits_to_begin = not self._pending and begins_within_s != 0.0
            self.stream.settimeout(begins_within_s if waits_to_begin else _left(deadline))
            piece = self.stream.recv(_PIECE)
            if not piece:
                raise ConnectionError("the other side has closed")
            if waits_to_begin:
                deadline = time.monotonic() + within_s
            self._pending += piece
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        try:
            said = json.loads(line)
        except RecursionError:
            said = None
        if not isinstance(said, dict):
            raise ValueError("an object of JSON was expected")  # noqa: TRY004 - what came is wrong, not who called
        return said

    def close(self) -> None:
        """Hang up."""
        self.stream.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def error_said(error: Exception) -> dict[str, Any]:
    """An error as it goes over the wire."""
    return {"error": encode_error(error)}


def error_heard(said: Mapping[str, Any], *, wrote: bool) -> LumctlError:
    """The error behind an answer, of the class it had there.

    One that no driver may raise says nothing of what it left: after a write, the outcome is not known.
    """
    kind, message = str(said["kind"]), str(said["message"])
    hint = None if said.get("hint") is None else str(said["hint"])
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, DeviceError):
        return found(message, hint=hint)
    if kind == UsageError.__name__:
        return UsageError(message, hint=hint)
    unexpected = f"the driver behind the gateway failed with {kind}: {message}"
    return OutcomeUnknownError(unexpected, hint=hint) if wrote else DeviceError(unexpected, hint=hint)
