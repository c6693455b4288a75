"""How a driver of something simulated asks its simulator: over the control socket that its address names."""

from pathlib import Path
from typing import Any

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Progress
from lumctl.errors import UsageError
from lumctl.sim.client import ask

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
