"""Lengths and moments of time as operators type them: ``90s``, ``2h``; ``18:00``, ``2026-11-21T18:00``; as they read.

They read them to the second: what is looked for in other logs is found by it.
"""

import re
from datetime import UTC, datetime, timedelta

from lumctl.errors import UsageError
from lumctl.inventory.durations import length_s

NIGHT_S = 12 * 3600.0
"""The longest work whose end may be a time of day before that of its beginning: longer looks like a slip."""
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})")


def to_the_second(at: float) -> str:
    """A time (seconds since the epoch) as it is printed, in the time zone of the reader."""
    return datetime.fromtimestamp(at, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def moment(text: str, now: float) -> float:
    """Parse a time into seconds since the epoch, in the reader's time zone unless it names one.

    A time of day without a date is the next one to come.

    Raises:
        UsageError: the text is not a time.
    """
    here = datetime.fromtimestamp(now).astimezone()
    clock = _CLOCK.fullmatch(text.strip())
    try:
        if clock:
            # Set again, not shifted: the day on which clocks change has another length.
            today = here.replace(tzinfo=None, hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
            found = today.timestamp()
            return found if found > now else (today + timedelta(days=1)).timestamp()
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{text!r} is no moment in time", hint="for example 18:00, 2026-11-21T18:00 or 2026-11-21T18:00+01:00"
        ) from None


def ending(length: str | None, until: str | None, *, starts: float, now: float) -> float | None:
    """When something ends that begins at ``starts``; ``None`` if neither a length nor a moment is given.

    Raises:
        UsageError: both are given, or it would end before it begins or in the past.
    """
    if length is not None and until is not None:
        raise UsageError("--for and --until both say when it ends: give one of them")
    if length is not None:
        ends = starts + length_s(length)
    elif until is not None:
        ends = moment(until, now)
        after = moment(until, starts) if starts > now and _CLOCK.fullmatch(until.strip()) else ends
        if ends <= starts < after <= starts + NIGHT_S:
            # Work from 22:00 until 02:00, entered at one in the morning, belongs to the coming night.
            ends = after
    else:
        return None
    if ends <= starts:
        raise UsageError(f"it would end before it begins: --until {until}", hint="give the day too: 2026-11-22T02:00")
    if ends <= now:
        raise UsageError("it would be over already")
    return ends
