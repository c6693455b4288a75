"""Errors in the log of NVIDIA's fabric manager, whose lines bear the host's local time without a zone."""

import re
from datetime import UTC, datetime

from lumctl.fleet.host_readings import FabricError
from lumctl.fleet.parsers.lines import lines_of

_WRITTEN = re.compile(r"([0-9]{1,11})(?:\.[0-9]{1,10})? ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2})")
_LINE = re.compile(
    r"\[([A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2})\] \[(?:ERROR|FATAL|CRITICAL)\] "
    r"(?:\[tid [0-9]{1,10}\] )?(\S.*)"
)
_ZONE_STEP_S = 900
"""Zones differ by quarters of an hour."""
_MOST, _MOST_CHARACTERS = 32, 400


def parse_fabric_log(text: str) -> tuple[FabricError, ...] | None:
    """The errors in the end of a log, the newest last; ``None`` where its first line does not say when it was written.

    The first line is the time of the last write twice, as seconds since the epoch and as local time: their difference
    is the host's zone.
    """
    first, *lines = lines_of(text) or [""]
    written = _WRITTEN.fullmatch(first)
    local_s = None if written is None else _seconds(written[2], "%Y-%m-%dT%H:%M")
    if written is None or local_s is None:
        return None
    zone_s = round((int(written[1]) - local_s) / _ZONE_STEP_S) * _ZONE_STEP_S
    found: list[FabricError] = []
    for line in lines:
        match = _LINE.fullmatch(line)
        at = _seconds(match[1], "%b %d %Y %H:%M:%S") if match is not None else None
        if match is not None and at is not None:
            found.append(FabricError(at + zone_s, match[2][:_MOST_CHARACTERS]))
    return tuple(found[-_MOST:])


def _seconds(text: str, form: str) -> float | None:
    """A local time as if it were UTC, in seconds since the epoch."""
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
