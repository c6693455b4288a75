"""The queue of a rack: jobs that wait for spares. The journal also records how each demand began and ended."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.problems import nearest
from lumctl.store import journal
from lumctl.store.database import writing
from lumctl.store.rack_rows import RackRows
from lumctl.store.schema import demands

WAITING, SERVED, CANCELLED, NEEDLESS = "waiting", "served", "cancelled", "needless"
"""The states of a demand. It is needless if its accelerators work again, or its job is gone."""


@dataclass(frozen=True, slots=True)
class QueuedDemand:
    """Accelerators of a job that wait for spares, all of them together. Times are seconds since the epoch.

    ``why`` is why no spare served it when it was queued, or why it ended; ``run`` is the run that served it.
    """

    rack: str
    id: str
    job: str
    accelerators: tuple[str, ...]
    who: str
    asked_at: float
    state: str = WAITING
    why: str = ""
    run: str = ""
    ended_at: float | None = None


class Demands:
    """The demands of one rack."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows

    def ask(
        self, rack: str, wanted: Mapping[str, tuple[str, ...]], *, why: str, who: str, at: float
    ) -> tuple[QueuedDemand, ...]:
        """Queue demands in a rack, by job the accelerators that need spares together; all of them, or none.

        One that waits already for the same accelerators, or more, is returned as it is. One that waits for some of them
        becomes part of the new one, which takes its place in the queue.

        Raises:
            RefusedError: a demand waits for one of the accelerators and for others.
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            return tuple(
                self._ask(connection, QueuedDemand(rack, "", job, names, who, at, why=why))
                for job, names in wanted.items()
            )

    def _ask(self, connection: Connection, asked: QueuedDemand) -> QueuedDemand:
        names = set(asked.accelerators)
        parts = []
        # An accelerator runs a rank of one job, so only demands of this job can be about it.
        for other in self._waiting(connection, demands.c.job == asked.job):
            if names <= set(other.accelerators):
                return other
            if names > set(other.accelerators):
                parts.append(other)
            elif shared := names & set(other.accelerators):
                raise RefusedError(
                    f"{other.id} already waits for a spare for {', '.join(sorted(shared))}",
                    hint=f"to ask for it together with others, first cancel: lumctl spare queue cancel {other.id}",
                )
        count = select(func.count()).select_from(demands).where(self._rows.of(demands))
        name = f"demand-{(connection.execute(count).scalar() or 0) + 1:04d}"
        first = min((part.asked_at for part in parts), default=asked.asked_at)
        found = replace(asked, id=name, asked_at=first)
        row = {**asdict(found), "accelerators": json.dumps(found.accelerators)}
        connection.execute(insert(demands).values(**row))
        _remark(connection, found, asked.asked_at, asked.who)
        for part in parts:
            _ended(connection, part, NEEDLESS, why=f"it is part of {name}", who=asked.who, at=asked.asked_at)
        return found

    def end(self, name: str, state: str, *, why: str, who: str, at: float) -> QueuedDemand:
        """Cancel a demand, or end it because it is needless.

        Raises:
            UsageError: there is no such demand. RefusedError: it does not wait any more.
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            found = {each.id: each for each in self._read(connection)}
            if name not in found:
                near = nearest(name, found)
                raise UsageError(
                    f"there is no demand {name!r}", hint=f"did you mean {near}?" if near else "see: lumctl spare queue"
                )
            asked = found[name]
            if asked.state != WAITING:
                by = f" by {asked.run}" if asked.run else ""
                raise RefusedError(f"{name} does not wait any more: it is {asked.state}{by}")
            return _ended(connection, asked, state, why=why, who=who, at=at)

    def waiting(self) -> tuple[QueuedDemand, ...]:
        """The demands that wait, oldest first."""
        return self._rows.known.get("demands", self._waiting)

    def all(self) -> tuple[QueuedDemand, ...]:
        """All demands, oldest first."""
        with self._rows.engine.connect() as connection:
            return self._read(connection)

    def _waiting(self, connection: Connection, *only: ColumnElement[bool]) -> tuple[QueuedDemand, ...]:
        return self._read(connection, demands.c.state == WAITING, *only)

    def _read(self, connection: Connection, *only: ColumnElement[bool]) -> tuple[QueuedDemand, ...]:
        mine = (self._rows.of(demands), *only)
        rows = connection.execute(select(demands).where(*mine).order_by(demands.c.asked_at, demands.c.id))
        return tuple(_demand(row) for row in rows)


def settle(
    connection: Connection, rack: str, run: str, placed: Mapping[str, tuple[str, ...]], *, who: str, at: float
) -> None:
    """End the demands that a run serves, in the transaction that stores where its jobs run now.

    If the run is rolled back, its demands wait again.
    """
    concerned = (demands.c.rack == rack, demands.c.job.in_(placed))
    for row in connection.execute(select(demands).where(*concerned, demands.c.state.in_((WAITING, SERVED)))).all():
        asked = _demand(row)
        there = set(asked.accelerators) & set(placed[asked.job])
        if asked.state == WAITING and not there:
            _ended(connection, asked, SERVED, run=run, who=who, at=at)
        elif asked.state == SERVED and asked.run == run and there:
            _ended(connection, asked, WAITING, why=f"{run} was rolled back", who=who, at=at)


def _ended(
    connection: Connection, asked: QueuedDemand, state: str, *, who: str, at: float, why: str = "", run: str = ""
) -> QueuedDemand:
    after = replace(asked, state=state, why=why or asked.why, run=run, ended_at=None if state == WAITING else at)
    changed = {"state": state, "why": after.why, "run": run, "ended_at": after.ended_at}
    connection.execute(update(demands).where(demands.c.rack == asked.rack, demands.c.id == asked.id).values(**changed))
    _remark(connection, after, at, who)
    return after


def _demand(row: Any) -> QueuedDemand:
    values = row._asdict()
    return QueuedDemand(**{**values, "accelerators": tuple(json.loads(values["accelerators"]))})


def _remark(connection: Connection, asked: QueuedDemand, at: float, who: str) -> None:
    data = {"demand": asked.id, "state": asked.state, "job": asked.job, "accelerators": list(asked.accelerators)}
    journal.append(
        connection,
        rack=asked.rack,
        run="",
        at=at,
        kind="demand",
        step="",
        data={**data, "why": asked.why, "run": asked.run, "who": who},
        fence=journal.NO_FENCE,
    )
