"""What can go wrong at a device: unreachable, refused, outcome unknown, inconsistent, not supported.

A driver raises these and no others. ``OutcomeUnknownError`` is never retried blindly: see
:mod:`lumctl.devices.transaction`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from lumctl.errors import ExitCode, LumctlError


class DeviceError(LumctlError):
    """The root of device errors."""


class DeviceUnreachableError(DeviceError):
    """The device does not answer; nothing was sent."""

    exit_code = ExitCode.UNREACHABLE


class DeviceLoginError(DeviceUnreachableError):
    """The device answers and does not let us in, or there is no secret to show it; nothing was sent."""


class DriverFaultError(DeviceUnreachableError):
    """The device cannot be asked because its driver misbehaves or is missing; nothing was changed."""


class GatewayUnreachableError(DeviceUnreachableError):
    """The gateway of the device's rack does not answer, so nobody asked the device; nothing was sent to it."""


class DeviceRefusedError(DeviceError):
    """The device said no; nothing changed."""

    exit_code = ExitCode.REFUSED


class DeviceBusyError(DeviceRefusedError):
    """Somebody else has locked the device, or it is at work on another change; nothing changed."""


class StaleFenceError(DeviceRefusedError):
    """The gateway of the device's rack knows a newer lease than the one that the write came under; nothing was sent."""


class WrongGatewayError(DeviceRefusedError):
    """What answers as the gateway serves another rack or has another inventory; the device was not asked."""


class OutcomeUnknownError(DeviceError):
    """Something was sent and no clear answer came: the device may or may not have acted."""

    exit_code = ExitCode.UNREACHABLE


class InconsistentError(DeviceError):
    """The device disagrees with what was written to it."""

    exit_code = ExitCode.HALF_DONE


class UnsupportedError(DeviceError):
    """The driver does not have this capability."""

    exit_code = ExitCode.REFUSED


@contextmanager
def after_sending() -> Iterator[None]:
    """Turn device errors inside into OutcomeUnknownError, because part of a change was already sent.

    Raises:
        OutcomeUnknownError: reading back, or waiting for the device to finish, failed.
    """
    try:
        yield
    except (OutcomeUnknownError, InconsistentError):
        raise
    except DeviceError as error:
        raise OutcomeUnknownError(
            f"{error.message}; a change was sent before this and may or may not have been made",
            hint="read the device before anything is sent again",
        ) from error
