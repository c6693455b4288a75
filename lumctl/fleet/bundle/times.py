"""When a capture was made, by what its files themselves say."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise

_HEAD = 80
"""How far into a line its time may stand."""
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?", re.ASCII)
_CALENDAR = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\w{3}) {1,2}(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})", re.ASCII
)
_SMI_TIMESTAMP = re.compile(r"<timestamp>([^<]{1,60})</timestamp>|^Timestamp\s+: (.{1,60})$", re.MULTILINE)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_APART_S = 86400.0


def log_time(text: str) -> float | None:
    """The newest time of a log, in seconds since the epoch; ``None`` where its lines bear none, or only since boot.

    A time that stands a day or more above all others is a clock that jumped, or damage: it would make everything else
    look long past, so it is passed over.
    """
    times = sorted(_line_times(text.splitlines()), reverse=True)
    close = next((newer for newer, older in pairwise(times) if newer - older <= _APART_S), None)
    return close if close is not None else min(times, default=None)


def smi_time(text: str) -> float | None:
    """The time that nvidia-smi printed, the last where there are several."""
    stated = [found[1] or found[2] for found in _SMI_TIMESTAMP.finditer(text)]
    times = [time for said in stated if (time := _time(said)) is not None]
    return times[-1] if times else None


def _line_times(lines: Iterable[str]) -> Iterator[float]:
    for line in lines:
        time = _time(line[:_HEAD])
        if time is not None:
            yield time


def _time(said: str) -> float | None:
    """A time without a zone is taken as UTC, as it is everywhere in the program."""
    try:
        if found := _CALENDAR.search(said):
            month, day, hour, minute, second, year = found.groups()
            at = _MONTHS.index(month) + 1
            return datetime(int(year), at, int(day), int(hour), int(minute), int(second), 0, UTC).timestamp()
        if found := _ISO.search(said):
            when = datetime.fromisoformat(found[0].replace(",", "."))
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return None
