"""What can go wrong at a device. ``OutcomeUnknownError`` is never retried blindly."""

from lumctl.errors import ExitCode, LumctlError


class DeviceError(LumctlError):
    """The root of device errors."""


class DeviceUnreachableError(DeviceError):
    """The device does not answer; nothing was sent."""

    exit_code = ExitCode.UNREACHABLE


class DeviceRefusedError(DeviceError):
    """The device said no; nothing changed."""

    exit_code = ExitCode.REFUSED


class OutcomeUnknownError(DeviceError):
    """Something was sent and no clear answer came: the device may or may not have acted."""

    exit_code = ExitCode.UNREACHABLE


class InconsistentError(DeviceError):
    """The device disagrees with what was written to it."""

    exit_code = ExitCode.HALF_DONE


class UnsupportedError(DeviceError):
    """The driver does not have this capability."""

    exit_code = ExitCode.REFUSED
