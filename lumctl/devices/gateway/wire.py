"""What passes between a program and the gateway of a rack: a line of JSON each way, after a line of greeting.

A line that is not whole is never acted on: who could not send all of it knows that nothing was done.
"""

from collections.abc import Mapping
from typing import Any

from lumctl.devices import errors
from lumctl.devices.errors import DeviceError, OutcomeUnknownError
from lumctl.devices.recorded_calls import WRITES
from lumctl.devices.recorded_values import encode_error
from lumctl.errors import LumctlError, UsageError

SCHEMA = "lumctl/daemon/gateway/v1"
FENCED = WRITES - {"announce"}
"""The calls that need a lease. A host may always say who it is: that moves no light, and is asked before any lease."""


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
