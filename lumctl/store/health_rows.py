"""The rows about a rack's health: memory, acknowledgements, cleared events, maintenance windows and transitions.

Racks may share one database, so every row names its rack.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import Connection, delete, func, insert, select, update

from lumctl.health.acknowledgements import Acknowledgement, EventClear, MaintenanceWindow, covered_from
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.store.schema import acknowledgements, event_clears, health_memory, transitions, windows

EVERY_RULE = ""
"""The rule in a row that applies to all findings of a component: a key cannot be null."""

CLOCK_MAY_ERR_S = 3600.0
"""The clocks of two processes of one rack differ by less than this, in seconds."""


def memory(connection: Connection, rack: str) -> tuple[float, dict[str, Any]] | None:
    """The time and the content of the stored memory; ``None`` if there is none, or it cannot be read."""
    row = connection.execute(select(health_memory).where(health_memory.c.rack == rack)).first()
    if row is None:
        return None
    try:
        document = json.loads(row.document)
    except ValueError:
        return None
    return (row.at, document) if isinstance(document, dict) else None


def remember(connection: Connection, rack: str, document: Mapping[str, Any], *, now: float) -> bool:
    """Store a memory, unless the memory of a later observation is stored; return whether it was stored.

    A memory with a time far ahead was written by a wrong clock. It is replaced too; otherwise it would stay forever.
    """
    kept = connection.execute(select(health_memory.c.at).where(health_memory.c.rack == rack)).scalar()
    if kept is not None and now < kept <= now + CLOCK_MAY_ERR_S:
        return False
    connection.execute(delete(health_memory).where(health_memory.c.rack == rack))
    connection.execute(insert(health_memory).values(rack=rack, at=now, document=json.dumps(document)))
    return True


def acknowledge(connection: Connection, rack: str, said: Acknowledgement) -> None:
    """Store an acknowledgement, which replaces an earlier one of the same findings; delete expired ones."""
    connection.execute(_deleted(rack, said.component, said.rule))
    over = (acknowledgements.c.rack == rack, acknowledgements.c.until <= said.at)
    connection.execute(delete(acknowledgements).where(*over))
    connection.execute(
        insert(acknowledgements).values(
            rack=rack,
            component=said.component,
            rule=said.rule or EVERY_RULE,
            by=said.by,
            comment=said.comment,
            at=said.at,
            until=said.until,
            covers=None if said.covers is None else json.dumps(said.covers),
        )
    )


def acknowledged(connection: Connection, rack: str) -> tuple[Acknowledgement, ...]:
    """All stored acknowledgements, oldest first."""
    table = acknowledgements.c
    rows = connection.execute(select(acknowledgements).where(table.rack == rack).order_by(table.at))
    return tuple(acknowledgement_of(row) for row in rows)


def acknowledgement_of(row: Any) -> Acknowledgement:
    """Parse a row of the table."""
    covers = None if row.covers is None else covered_from(json.loads(row.covers))
    return Acknowledgement(row.component, row.rule or None, row.by, row.comment, row.at, row.until, covers)


def unacknowledge(connection: Connection, rack: str, component: str, rule: str | None) -> int:
    """Delete the acknowledgements of a component, of one rule or of all; return how many there were."""
    table = acknowledgements.c
    statement = delete(acknowledgements).where(table.rack == rack, table.component == component)
    return connection.execute(statement if rule is None else statement.where(table.rule == rule)).rowcount


def forget_spent(connection: Connection, rack: str, spent: Iterable[Acknowledgement]) -> None:
    """Delete acknowledgements whose findings have cleared; one that was given again in the meantime stays."""
    for said in spent:
        statement = _deleted(rack, said.component, said.rule)
        connection.execute(statement.where(acknowledgements.c.at == said.at))


def _deleted(rack: str, component: str, rule: str | None) -> Any:
    table = acknowledgements.c
    return delete(acknowledgements).where(
        table.rack == rack, table.component == component, table.rule == (rule or EVERY_RULE)
    )


def clear_events(connection: Connection, rack: str, clear: EventClear) -> None:
    """Store that an operator cleared events; this replaces an earlier time, and the journal keeps all times."""
    table = event_clears.c
    same = (table.rack == rack, table.component == clear.component, table.rule == (clear.rule or EVERY_RULE))
    connection.execute(delete(event_clears).where(*same))
    said = {"component": clear.component, "by": clear.by, "reason": clear.reason, "at": clear.at}
    connection.execute(insert(event_clears).values(rack=rack, rule=clear.rule or EVERY_RULE, **said))


def cleared_events(connection: Connection, rack: str) -> tuple[EventClear, ...]:
    """The events that operators cleared, oldest first."""
    rows = connection.execute(
        select(event_clears).where(event_clears.c.rack == rack).order_by(event_clears.c.at, event_clears.c.component)
    )
    return tuple(EventClear(row.component, row.rule or None, row.by, row.reason, row.at) for row in rows)


def add_window(connection: Connection, rack: str, window: MaintenanceWindow) -> str:
    """Store a maintenance window and return its id; a window without an id gets a new one."""
    window_id = window.id or f"maintenance-{uuid4().hex[:8]}"
    connection.execute(
        insert(windows).values(
            id=window_id,
            rack=rack,
            component=window.component,
            by=window.by,
            comment=window.comment,
            starts=window.starts,
            ends=window.ends,
        )
    )
    return window_id


def open_windows(connection: Connection, rack: str, *, now: float) -> tuple[MaintenanceWindow, ...]:
    """Windows that have not ended, the earliest first; some may not have begun."""
    table = windows.c
    rows = connection.execute(
        select(windows).where(table.rack == rack, table.ends > now).order_by(table.starts, table.id)
    )
    return tuple(MaintenanceWindow(row.id, row.component, row.by, row.comment, row.starts, row.ends) for row in rows)


def end_window(connection: Connection, rack: str, window_id: str, *, now: float) -> bool:
    """End a window now, even if it has not begun; return whether there was one to end."""
    table = windows.c
    still_open = (table.rack == rack, table.id == window_id, table.ends > now)
    return connection.execute(update(windows).where(*still_open).values(ends=now)).rowcount == 1


def add_transitions(
    connection: Connection, rack: str, rows: Iterable[Transition], *, keep: int, keep_s: float
) -> tuple[Transition, ...]:
    """Add the state changes that the history does not yet have, and delete old rows; return the added changes.

    Several processes may see the same change: only the first row is kept. The state before a change is the last one in
    the history, if the component has any.
    """
    last = last_states(connection, rack)
    added: list[Transition] = []
    for row in rows:
        before = last.get((row.component, row.kind))
        known = before.state if before else row.before
        # A component that is new and ok is no change. A row older than the last one comes from a slower observer.
        if row.after is known or (known is None and row.after is State.OK) or (before and before.at > row.at):
            continue
        added.append(replace(row, before=known))
        last[row.component, row.kind] = Last(row.after, row.at)
    if added:
        # Numbered by rack: the writers of two racks hold separate locks and could draw the same number.
        seq = connection.execute(select(func.max(transitions.c.seq)).where(transitions.c.rack == rack)).scalar() or 0
        numbered = [{"rack": rack, "seq": seq + n, **_values(row)} for n, row in enumerate(added, start=1)]
        connection.execute(insert(transitions), numbered)
        _drop_old(connection, rack, keep=keep, before=max(row.at for row in added) - keep_s)
    return tuple(added)


class Last(NamedTuple):
    """The last state in the history of a component, and its time."""

    state: State
    at: float


def last_states(connection: Connection, rack: str) -> dict[tuple[str, str], Last]:
    """The last state of each component in the history, by its id and its kind."""
    table = transitions.c
    newest = select(func.max(table.seq)).where(table.rack == rack).group_by(table.component, table.kind)
    rows = connection.execute(select(transitions).where(table.rack == rack, table.seq.in_(newest)))
    return {(row.component, row.kind): Last(State(row.after), row.at) for row in rows}


def _drop_old(connection: Connection, rack: str, *, keep: int, before: float) -> None:
    """Delete rows older than ``before``, and those beyond the newest ``keep``.

    A component that is not ok keeps its last row, which shows the start of its state. Without it, the component would
    appear ok, and the next observation would report its fault as new.
    """
    table = transitions.c
    surplus = select(table.seq).where(table.rack == rack).order_by(table.seq.desc()).offset(keep).limit(1)
    newest_surplus = connection.execute(surplus).scalar() or 0
    ends = select(func.max(table.seq)).where(table.rack == rack).group_by(table.component, table.kind)
    still_ill = table.seq.in_(ends.scalar_subquery()) & (table.after != State.OK.value)
    too_old = (table.at < before) | (table.seq <= newest_surplus)
    connection.execute(delete(transitions).where(table.rack == rack, too_old, ~still_ill))


def _values(row: Transition) -> dict[str, Any]:
    return {
        "at": row.at,
        "component": row.component,
        "kind": row.kind,
        "before": row.before.value if row.before else None,
        "after": row.after.value,
        "rules": json.dumps(row.rules),
        "evidence": row.evidence,
    }


def history(
    connection: Connection, rack: str, *, component: str | None, since: float | None, limit: int
) -> tuple[Transition, ...]:
    """The newest transitions, oldest first."""
    table = transitions.c
    statement = select(transitions).where(table.rack == rack).order_by(table.seq.desc()).limit(limit)
    if component is not None:
        statement = statement.where(table.component == component)
    if since is not None:
        statement = statement.where(table.at >= since)
    return tuple(
        Transition(
            row.at,
            row.component,
            row.kind,
            State(row.before) if row.before else None,
            State(row.after),
            tuple(json.loads(row.rules)),
            row.evidence,
        )
        for row in reversed(connection.execute(statement).all())
    )
