"""The readings over time in a rack's store: a row for each component and hour, with a value for each minute."""

from collections.abc import Iterator, Mapping
from itertools import islice

from sqlalchemy import bindparam, delete, func, insert, select, update

from lumctl.store import packed_hours
from lumctl.store.database import writing
from lumctl.store.packed_hours import HOUR_S, MINUTE_S, MINUTES, Hour, Point, Values
from lumctl.store.rack_rows import RackRows
from lumctl.store.schema import readings

KEEP_READINGS_S = 7 * 86_400.0
_AT_ONCE = 500
"""How many components are written in one transaction: a swap must not wait for thousands of rows."""

Minutes = Mapping[int, Mapping[str, Mapping[str, Values]]]
"""By minute (counted since the epoch), then component, then name of the reading."""


class Readings:
    """Readings of one rack."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows

    def add(self, minutes: Minutes, *, keep_s: float = KEEP_READINGS_S) -> None:
        """Add minutes, and drop hours that ended more than ``keep_s`` before the newest of them.

        Adding a minute again changes nothing, so a caller that does not know whether a write succeeded repeats it.

        Raises:
            StoreError: the store cannot be written; some of the minutes may have been.
        """
        if not minutes:
            return
        by_hour = _by_hour(minutes)
        for hour, components in by_hour.items():
            waiting = iter(components.items())
            while some := dict(islice(waiting, _AT_ONCE)):
                self._add(hour, some)
        oldest = (max(minutes) * MINUTE_S - keep_s) // HOUR_S
        over = (readings.c.rack == self._rows.rack, readings.c.hour < oldest)
        # Reading first: the write lock is taken once an hour, not every minute.
        with self._rows.engine.connect() as connection:
            is_over = connection.execute(select(readings.c.hour).where(*over).limit(1)).first() is not None
        if is_over:  # once an hour
            with writing(self._rows.engine) as connection:
                connection.execute(delete(readings).where(*over))

    def of(self, component: str, *, since: float, until: float) -> dict[str, tuple[Point, ...]]:
        """The stored readings of a component between two times (seconds since the epoch), by name, oldest first."""
        hours = range(int(since // HOUR_S), int(until // HOUR_S) + 1)
        mine = (self._rows.of(readings), readings.c.component == component, readings.c.hour.in_(hours))
        statement = select(readings.c.hour, readings.c.body).where(*mine).order_by(readings.c.hour)
        with self._rows.engine.connect() as connection:
            rows = connection.execute(statement).all()
        found: dict[str, list[Point]] = {}
        for hour, body in rows:
            for name, minutes in _unpacked(body).items():
                of_it = found.setdefault(name, [])
                for minute, values in minutes.items():
                    at = float(hour * HOUR_S + minute * MINUTE_S)
                    # A minute that began before `since` and reaches into it counts.
                    if since - MINUTE_S < at <= until:
                        of_it.append(Point(at, *values))
        return {name: tuple(points) for name, points in found.items() if points}

    def oldest(self) -> float | None:
        """The begin of the oldest hour with readings (seconds since the epoch); ``None`` if there are none."""
        with self._rows.engine.connect() as connection:
            hour = connection.execute(select(func.min(readings.c.hour)).where(self._rows.of(readings))).scalar()
        return None if hour is None else float(hour * HOUR_S)

    def _add(self, hour: int, components: Mapping[str, Hour]) -> None:
        """Write components of an hour, merged with what a daemon wrote before a restart, or another daemon wrote."""
        this = (readings.c.rack == self._rows.rack, readings.c.hour == hour)
        with writing(self._rows.engine) as connection:
            asked = select(readings.c.component, readings.c.body).where(*this)
            kept = dict(connection.execute(asked.where(readings.c.component.in_(components))).all())
            fresh, more = [], []
            for component, added in components.items():
                if component in kept:
                    body = packed_hours.pack(packed_hours.merged(_unpacked(kept[component]), added))
                    more.append({"of_component": component, "packed": body})
                else:
                    row = {"rack": self._rows.rack, "hour": hour, "component": component}
                    fresh.append({**row, "body": packed_hours.pack(added)})
            if fresh:
                connection.execute(insert(readings), fresh)
            if more:
                one = update(readings).where(*this, readings.c.component == bindparam("of_component"))
                connection.execute(one.values(body=bindparam("packed")), more)


def _by_hour(minutes: Minutes) -> dict[int, dict[str, dict[str, dict[int, Values]]]]:
    by_hour: dict[int, dict[str, dict[str, dict[int, Values]]]] = {}
    for minute, component, name, values in _flat(minutes):
        hour = by_hour.setdefault(minute // MINUTES, {})
        hour.setdefault(component, {}).setdefault(name, {})[minute % MINUTES] = values
    return by_hour


def _flat(minutes: Minutes) -> Iterator[tuple[int, str, str, Values]]:
    for minute, components in minutes.items():
        for component, named in components.items():
            for name, values in named.items():
                yield minute, component, name, values


def _unpacked(body: bytes) -> Hour:
    """Unpack an hour; empty if it is damaged, or in the format of a newer version."""
    try:
        return packed_hours.unpack(body)
    except ValueError:
        return {}
