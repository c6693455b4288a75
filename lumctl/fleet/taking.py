"""What those who read answers have in common: what they are, when an answer is well, and what a failure means."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from lumctl.devices.formats.complaint import first_line, is_denial
from lumctl.fleet.gathered import Gathered, ProbeAnswer, Verdict
from lumctl.fleet.parsers.complaints import is_missing_tool, said_in
from lumctl.fleet.readings import GpuReading, InfinibandPort, InterfaceReading, NvlinkReading, PortCounters, ProbeStatus

OK: Verdict = (ProbeStatus.OK, "")

R = TypeVar("R", GpuReading, InterfaceReading, InfinibandPort, PortCounters, NvlinkReading)


class Taker(Protocol):
    """Reads the answers of one probe."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read an answer; where it did not end well, older readings stay and grow old."""

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """The last answer came again, to the byte: what it said is true of a later time."""


def failure(answer: ProbeAnswer, *, otherwise: str = "") -> Verdict:
    """Why there is no answer: not allowed, no such tool, or what the tool said."""
    said = said_in(answer.text)
    if is_denial(said):
        return ProbeStatus.DENIED, said
    if is_missing_tool(answer.status, said):
        return ProbeStatus.ABSENT, said or "command not found"
    # Without an exit status against it, what was said is no complaint but an answer that is not understood.
    return ProbeStatus.FAILED, first_line((said if answer.status else "") or otherwise or f"status {answer.status}")


def read_at(readings: Iterable[R], taken_at: float) -> tuple[R, ...]:
    """The same readings, true of a later time."""
    return tuple(replace(reading, taken_at=taken_at) for reading in readings)


def all_read_at(readings: Mapping[str, R], taken_at: float) -> dict[str, R]:
    """The same readings by name, true of a later time."""
    return {name: replace(reading, taken_at=taken_at) for name, reading in readings.items()}
