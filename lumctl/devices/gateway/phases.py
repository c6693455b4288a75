"""The client for phases: lights a phase of a job that a plan permits to change light while it runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lumctl.devices.errors import OutcomeUnknownError
from lumctl.devices.gateway.client import Gateway
from lumctl.json_lines import connect

PHASE = "phase"
"""The name of the request."""


@dataclass(frozen=True, slots=True)
class PhaseWrite:
    """One device that holds the states of a phase: ``cells`` are those of the phase there, unchanged ones included.

    ``read_back``: a reading of the device confirmed the states. Without one, the device only acknowledged them.
    ``seconds`` is the time that the gateway needed for it, reading and writing.
    """

    cells: int
    read_back: bool
    seconds: float


class PhaseGateway:
    """Lights phases through the gateway of a rack. Thread-safe; requests for different devices run at the same time."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @classmethod
    def at(cls, path: Path, *, rack: str, target: str) -> Self:
        """The gateway that serves a rack at a socket of this machine; it is connected on first use."""
        return cls(Gateway(rack, target, str(path), lambda within_s: connect(path, within_s)))

    def light(self, job: str, plan: str, device: str, phase: str) -> PhaseWrite:
        """Write one device to the states of a phase of a plan; return when the device has confirmed them.

        Raises:
            RackLeasedError: a run may be changing the rack; nothing was sent, and the job may ask again later.
            DeviceRefusedError: the plan does not permit it, or no longer, or the device refused; nothing changed.
            DeviceUnreachableError: the gateway or the device does not answer; nothing was sent.
            InconsistentError: the device holds other states than those of the phase.
            OutcomeUnknownError: the device may hold any states.
        """
        request = {"call": PHASE, "job": job, "plan": plan, "device": device, "phase": phase}
        answer = self._gateway.ask(request, about=device, writes=True)
        try:
            return PhaseWrite(int(answer["cells"]), bool(answer["read_back"]), float(answer["seconds"]))
        except (TypeError, KeyError, ValueError) as error:
            raise OutcomeUnknownError(f"{device}: the gateway's answer cannot be interpreted: {error}") from error

    def close(self) -> None:
        """Close the connections; the next call connects again."""
        self._gateway.close()
