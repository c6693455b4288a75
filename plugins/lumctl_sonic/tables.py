"""Parses SONiC's state database: the last values that its transceiver daemon read from a module, and their time.

``sonic-db-cli STATE_DB HGETALL KEY`` prints one line, a dictionary in Python's syntax; ``{}`` if there is no such key.
A text with an apostrophe is in double quotes; nothing is escaped.
"""

import calendar
import re
import shlex

from lumctl_sonic.facts import Facts

_TABLES = ("TRANSCEIVER_INFO", "TRANSCEIVER_DOM_SENSOR", "TRANSCEIVER_DOM_THRESHOLD", "TRANSCEIVER_STATUS")
_QUOTED = r"(?:'([^']*)'|\"([^\"]*)\")"
_PAIR = re.compile(rf"{_QUOTED}: {_QUOTED}(?=, ['\"]|\}}$)")
_UPDATED = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def command_for(port: str) -> str:
    """The command that prints the tables of one port, one line each."""
    keys = (shlex.quote(f"{table}|{port}") for table in _TABLES)
    return " && ".join(f"sonic-db-cli STATE_DB HGETALL {key}" for key in keys)


def facts_of(text: str) -> Facts | None:
    """All facts of the tables; empty if there is no module, ``None`` if the text is not the output of the command.

    ``last_update_time`` is the time of the readings.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) != len(_TABLES) or not all(line.startswith("{") and line.endswith("}") for line in lines):
        return None
    tables = [_table(line) for line in lines]
    if not tables[0]:
        return {}
    # The readings override the rest, so that no text of a module's maker passes for one. Older releases keep the limits
    # there.
    info, sensor, threshold, status = tables
    return {**info, **status, **threshold, "last_update_time": "", **sensor}


def updated_at(facts: Facts) -> float | None:
    """When the readings were taken, in epoch seconds of the host's clock; older releases do not say."""
    match = _UPDATED.fullmatch(facts.get("last_update_time", ""))
    if match is None or match[1] not in _MONTHS:
        return None
    day, hour, minute, second, year = (int(match[at]) for at in (2, 3, 4, 5, 6))
    return float(calendar.timegm((year, _MONTHS.index(match[1]) + 1, day, hour, minute, second)))


def _table(line: str) -> dict[str, str]:
    return {match[1] or match[2] or "": match[3] or match[4] or "" for match in _PAIR.finditer(line)}
