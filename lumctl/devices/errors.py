"""Errors of devices: unreachable, refused, outcome unknown, inconsistent, not supported.

A driver raises only these errors. ``OutcomeUnknownError`` is never retried blindly: see
:mod:`lumctl.devices.transaction`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from lumctl.errors import ExitCode, LumctlError


class DeviceError(LumctlError):
    """The root of device errors."""


class DeviceUnreachableError(DeviceError):
    """The device does not answer; nothing was sent."""

    exit_code = ExitCode.UNREACHABLE


class DeviceLoginError(DeviceUnreachableError):
    """The device answers but rejects our login, or we have no secret for it; nothing was sent."""


class DriverFaultError(DeviceUnreachableError):
    """The device cannot be read because its driver misbehaves or is missing; nothing was changed."""


class GatewayUnreachableError(DeviceUnreachableError):
    """The gateway of the device's rack does not answer, so nothing was sent to the device."""


class DeviceRefusedError(DeviceError):
    """The device refused; nothing changed."""

    exit_code = ExitCode.REFUSED


class DeviceBusyError(DeviceRefusedError):
    """Another client has locked the device, or the device is making another change; nothing changed."""


class StaleFenceError(DeviceRefusedError):
    """The gateway of the device's rack has seen a newer lease than the lease of this write; nothing was sent."""


class RackLeasedError(DeviceRefusedError):
    """A process holds the lease of the device's rack and may be changing light; nothing was sent. Ask again later."""


class WrongGatewayError(DeviceRefusedError):
    """The gateway that answers serves another rack or has another inventory; nothing was sent to the device."""


class NotTakenError(DeviceRefusedError):
    """No clear answer came; reading back showed that the device's state did not change."""


class OutcomeUnknownError(DeviceError):
    """A request was sent but no clear answer came: the device may or may not have acted."""

    exit_code = ExitCode.UNREACHABLE


class InconsistentError(DeviceError):
    """The device does not report the state that was written to it.

    ``pucs`` are the PUCs that did not take their states, if it has taken the rest of the change.
    """

    exit_code = ExitCode.HALF_DONE

    def __init__(self, message: str, *, hint: str | None = None, pucs: Iterable[int] = ()) -> None:
        super().__init__(message, hint=hint)
        self.pucs = tuple(pucs)


class UnsupportedError(DeviceError):
    """The driver does not have this capability."""

    exit_code = ExitCode.REFUSED


@contextmanager
def after_sending() -> Iterator[None]:
    """Within the block, turn device errors into OutcomeUnknownError, because part of a change was already sent.

    Raises:
        OutcomeUnknownError: reading back, or waiting for the device to finish, failed.
    """
    try:
        yield
    # These two already say that something was sent.
    except (OutcomeUnknownError, InconsistentError):
        raise
    except DeviceError as error:
        raise OutcomeUnknownError(
            f"{error.message}; a change was sent before this and may or may not have been applied",
            hint="read the device before you send anything again",
        ) from error
