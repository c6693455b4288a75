"""Parsing of durations and times that operators type: ``90s``, ``2h``; ``18:00``, ``2026-11-21T18:00``.

:mod:`lumctl.time_text` prints them.
"""

import re
from datetime import datetime, timedelta

from lumctl.errors import UsageError
from lumctl.time_text import length_s

NIGHT_S = 12 * 3600.0
"""Work up to this length may end at an earlier time of day than it begins; longer work looks like a typing error."""
DAY_S = 24 * 3600.0
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})")


def moment(text: str, now: float) -> float:
    """Parse a time into seconds since the epoch, in the reader's time zone unless the text gives one.

    A time of day without a date is its next occurrence after ``now``.

    Raises:
        UsageError: the text is not a time.
    """
    here = datetime.fromtimestamp(now).astimezone()
    clock = _CLOCK.fullmatch(text.strip())
    try:
        if clock:
            # The time is set, not added to midnight: a day on which clocks change is not 24 hours long.
            today = here.replace(tzinfo=None, hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
            found = today.timestamp()
            return found if found > now else (today + timedelta(days=1)).timestamp()
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{text!r} is not a valid time", hint="examples: 18:00, 2026-11-21T18:00 or 2026-11-21T18:00+01:00"
        ) from None


def beginning(since: str, now: float) -> float:
    """The beginning of a period that lasts until now: a duration ago, or a moment; of a time of day, the last one.

    Raises:
        UsageError: the text is neither.
    """
    try:
        return now - length_s(since)
    except UsageError:
        at = moment(since, now)
    return at - DAY_S if at > now and _CLOCK.fullmatch(since.strip()) else at


def ending(length: str | None, until: str | None, *, starts: float, now: float) -> float | None:
    """The end of work that begins at ``starts``; ``None`` if neither a length nor a time is given.

    Raises:
        UsageError: both are given, or the work would end before it begins or in the past.
    """
    if length is not None and until is not None:
        raise UsageError("--for and --until both set the end: give one of them")
    if length is not None:
        ends = starts + length_s(length)
    elif until is not None:
        ends = moment(until, now)
        after = moment(until, starts) if starts > now and _CLOCK.fullmatch(until.strip()) else ends
        if ends <= starts < after <= starts + NIGHT_S:
            # Work from 22:00 until 02:00 that is entered at 01:00 belongs to the coming night.
            ends = after
    else:
        return None
    if ends <= starts:
        raise UsageError(f"it would end before it begins: --until {until}", hint="also give the day: 2026-11-22T02:00")
    if ends <= now:
        raise UsageError("it would already be over")
    return ends
