"""Whether a policy may act now, and until when that holds."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from lumctl.inventory.policies import DAYS, Hours, Policy

_DAYS_AHEAD = 8


def open_now(policy: Policy, now: float) -> tuple[bool, float | None]:
    """Whether one of a policy's hours is open, and when that changes (seconds since the epoch; ``None``: never)."""
    if not policy.hours:
        return True, None
    zone: tzinfo = UTC if policy.timezone == "UTC" else ZoneInfo(policy.timezone)
    today = datetime.fromtimestamp(now, zone).date()
    spans = sorted(
        span
        for hours in policy.hours
        for ahead in range(-1, _DAYS_AHEAD)
        if (span := _span(hours, today + timedelta(days=ahead), zone)) is not None
    )
    end = None
    for begins, ends in spans:
        if end is None and begins <= now < ends:
            end = ends
        elif end is not None and begins <= end < ends:
            end = ends  # one that follows without a gap
    if end is not None:
        return True, end
    return False, min((begins for begins, _ in spans if begins > now), default=None)


def told(policy: Policy) -> str:
    """The hours in words: ``mon-fri 08:00-18:00 (Europe/Berlin)``."""
    if not policy.hours:
        return "at any time"
    parts = [f"{_days(hours.days)} {_clock(hours.begins)}-{_clock(hours.ends)}" for hours in policy.hours]
    return f"{', '.join(parts)} ({policy.timezone})"


def _span(hours: Hours, day: date, zone: tzinfo) -> tuple[float, float] | None:
    if day.weekday() not in hours.days:
        return None
    midnight = datetime.combine(day, time())
    ends = hours.ends if hours.ends > hours.begins else hours.ends + 24 * 60
    # By the clock on the wall: on the day on which clocks change, 08:00 is still 08:00.
    first, last = (midnight + timedelta(minutes=minutes) for minutes in (hours.begins, ends))
    return first.replace(tzinfo=zone).timestamp(), last.replace(tzinfo=zone).timestamp()


def _days(days: frozenset[int]) -> str:
    in_order = sorted(days)
    if len(in_order) == len(DAYS):
        return "daily"
    if len(in_order) > 2 and in_order == list(range(in_order[0], in_order[-1] + 1)):  # noqa: PLR2004 - a pair is listed
        return f"{DAYS[in_order[0]]}-{DAYS[in_order[-1]]}"
    return ",".join(DAYS[day] for day in in_order)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
