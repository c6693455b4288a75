"""Moments as a person reads them, in the time zone of the reader."""

from datetime import datetime


def clock(at: float, now: float) -> str:
    """The time of day to the second; of another day the date too, to the minute."""
    moment, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    return f"{moment:%H:%M:%S}" if moment.date() == today.date() else f"{moment:%m-%d %H:%M}"
