"""What the number of spares is computed for: availability, rates and times, read from options and ``--what-if``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest
from lumctl.spares.rates import RateRange, read_rates
from lumctl.time_text import length_s

MOST_ACCELERATORS = 20_000


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is assumed of a pool; ``None`` leaves what is known of it.

    ``failure_rate`` is the probability that an accelerator is down by its own fault, ``host_failure_rate`` that a whole
    host is. ``repair_s`` is the mean length of an outage. With ``horizon_s`` everything is up at first, and the number
    of spares is that for the end of that time.
    """

    availability: float | None = None
    horizon_s: float | None = None
    accelerators: int | None = None
    failure_rate: RateRange | None = None
    host_failure_rate: RateRange | None = None
    repair_s: float | None = None


def read_availability(text: str, option: str) -> float:
    """Parse an availability: ``0.999`` or ``99.9%``.

    Raises:
        UsageError: it is not a number above 0 and below 1; the message begins with ``option``.
    """
    number, per_cent, rest = text.strip().partition("%")
    try:
        found = float(f"{number}e-2" if per_cent else number)  # divided by 100, 99.9 would not become 0.999
    except ValueError:
        found = 0.0
    if rest or not 0.0 < found < 1.0:  # also refuses NaN
        raise UsageError(f"{option}: {text!r} is not above 0 and below 1", hint="examples: 0.999, 99.9%")
    return found


def read_count(text: str, option: str) -> int:
    """Parse a number of accelerators.

    Raises:
        UsageError: it is not a whole number from 1 to :data:`MOST_ACCELERATORS`.
    """
    digits = text.strip()
    is_short = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MOST_ACCELERATORS))
    if not (is_short and 0 < int(digits) <= MOST_ACCELERATORS):
        raise UsageError(f"{option}: {text!r} is not a whole number from 1 to {MOST_ACCELERATORS}")
    return int(digits)


def read_length(text: str, option: str) -> float:
    """Parse a duration into seconds.

    Raises:
        UsageError: it is not a valid duration; the message begins with ``option``.
    """
    try:
        return length_s(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", hint=error.hint) from error


READERS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "availability": ("availability", read_availability),
    "horizon": ("horizon_s", read_length),
    "accelerators": ("accelerators", read_count),
    "failure-rate": ("failure_rate", read_rates),
    "host-failure-rate": ("host_failure_rate", read_rates),
    "repair": ("repair_s", read_length),
}
"""For each assumption, its field and the function that reads it from the text of the option or change."""


def read_change(text: str) -> Assumptions:
    """Parse the value of ``--what-if``: ``repair=10d`` or several changes, ``repair=10d,availability=0.9999``.

    Raises:
        UsageError: a word is not a change.
    """
    found: dict[str, Any] = {}
    for word in text.split(","):
        name, equals, value = word.partition("=")
        name = name.strip()
        if name not in READERS or not equals:
            near = nearest(name, READERS)
            known = f"did you mean {near}=...?" if near else f"NAME=VALUE; names: {', '.join(READERS)}"
            raise UsageError(f"--what-if: {word.strip()!r} is not a change of an assumption", hint=known)
        place, read = READERS[name]
        found[place] = read(value, f"--what-if {name}")
    return Assumptions(**found)
