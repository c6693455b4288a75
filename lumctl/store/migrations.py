"""From the schema of an older version to that of this one, inside one transaction: all of it or nothing."""

import json
from collections.abc import Callable, Mapping
from time import time

from sqlalchemy import Connection, Table, func, insert, inspect, select, text, update

from lumctl.errors import RefusedError
from lumctl.store import journal
from lumctl.store.clock import is_alive
from lumctl.store.schema import (
    SCHEMA_VERSION,
    acknowledgements,
    assignment,
    device_states,
    devices,
    event_clears,
    health_memory,
    leases,
    meta,
    metadata,
    plans,
    readings,
    runs,
    transitions,
    windows,
)
from lumctl.store.schema import journal as entries


def _to_2(connection: Connection) -> None:
    """Health: what it remembers, what operators said of findings, and the history of states."""
    # The tables as they are today: the next step copies them once more, which changes nothing.
    metadata.create_all(connection, tables=[health_memory, acknowledgements, windows, transitions])


def _to_3(connection: Connection) -> None:
    """Whose a row is stands in every row, so that racks can share a database; each rack has a journal of its own.

    Raises:
        RefusedError: an engine of the older version is at work: it could not finish on the new tables.
    """
    _require_rest(connection)
    known = {rack for (rack,) in connection.execute(text("SELECT rack FROM runs UNION SELECT rack FROM leases"))}
    sole = {"sole": next(iter(known)) if len(known) == 1 else ""}
    whose = "coalesce((SELECT min(runs.rack) FROM runs WHERE runs.id = {run}), :sole)"
    by_device = f"(SELECT devices.run FROM devices WHERE devices.device = {_KEPT}.device)"  # noqa: S608
    # The rack of a row is that of the run that wrote it, so the tables that say so go last.
    _copied(connection, assignment, sole, rack=whose.format(run=f"{_KEPT}.run"))
    _copied(connection, device_states, sole, rack=whose.format(run=by_device))
    _copied(connection, devices, sole, rack=whose.format(run=f"{_KEPT}.run"))
    _copied(connection, plans, sole, rack=":sole")
    for plan_id, body in connection.execute(select(plans.c.id, plans.c.body)).all():
        rack = json.loads(body).get("rack", sole["sole"])
        connection.execute(update(plans).where(plans.c.id == plan_id).values(rack=rack))
    # A chain cannot be taken apart: where racks have shared one, each goes on from a copy of the whole.
    _copied(connection, entries, sole, rack="racks.rack", over=f", ({_OWNERS}) AS racks")
    for table in (meta, runs, leases, health_memory, acknowledgements, windows, transitions):
        _copied(connection, table, {})
    for rack in connection.execute(select(entries.c.rack).distinct()).scalars().all():
        kept = connection.execute(select(func.count()).where(entries.c.rack == rack)).scalar()
        data = {"from": 2, "to": 3, "entries": kept}
        journal.append(connection, rack=rack, run="", at=time(), kind="migrated", step="", data=data, fence=0)
    metadata.create_all(connection)


def _to_4(connection: Connection) -> None:
    """Readings over time."""
    metadata.create_all(connection, tables=[readings])


def _to_5(connection: Connection) -> None:
    """Leases name the process that holds them."""
    _copied(connection, leases, {})


def _to_6(connection: Connection) -> None:
    """Acknowledgements say which findings they cover; operators end events of kernel logs."""
    _copied(connection, acknowledgements, {})
    metadata.create_all(connection, tables=[event_clears])


STEPS: Mapping[int, Callable[[Connection], None]] = {1: _to_2, 2: _to_3, 3: _to_4, 4: _to_5, 5: _to_6}
"""What brings a store of a version to the next one."""

_KEPT = "as_it_was"
_OWNERS = "SELECT DISTINCT rack FROM runs UNION SELECT :sole WHERE NOT EXISTS (SELECT 1 FROM runs)"


def _copied(connection: Connection, table: Table, values: Mapping[str, str], *, over: str = "", **filled: str) -> None:
    """Make a table anew as it is today, with the rows that it had; ``filled`` are expressions for new columns."""
    names = [column["name"] for column in inspect(connection).get_columns(table.name)]
    connection.execute(text(f'CREATE TABLE {_KEPT} AS SELECT * FROM "{table.name}"'))  # noqa: S608
    table.drop(connection)
    table.create(connection)
    into = ", ".join(f'"{name}"' for name in (*names, *filled))
    rows = ", ".join([*(f'{_KEPT}."{name}"' for name in names), *filled.values()])
    connection.execute(text(f'INSERT INTO "{table.name}" ({into}) SELECT {rows} FROM {_KEPT}{over}'), values)  # noqa: S608
    connection.execute(text(f"DROP TABLE {_KEPT}"))


def _require_rest(connection: Connection) -> None:
    now = time()
    given = connection.execute(select(leases.c.rack, leases.c.expires_at)).all()
    for rack, ends in given:
        if not is_alive(ends, now):
            continue
        raise RefusedError(
            f"rack {rack} is being changed by an older lumctl, and this one would change the form of its store",
            hint=f"wait until that is over, in {ends - now:.0f} s or as long as it is at work",
        )


def version_of(connection: Connection) -> int | None:
    """The version of a store's schema; ``None`` where there is none yet."""
    if not inspect(connection).has_table(meta.name):
        return None
    found = connection.execute(select(meta.c.value).where(meta.c.key == "schema_version")).scalar()
    return None if found is None else int(found)


def bring_up_to_date(connection: Connection) -> None:
    """Make or migrate the schema, under the write lock: another process may have been first."""
    found = version_of(connection)
    if found is None:
        metadata.create_all(connection)
        connection.execute(insert(meta).values(key="schema_version", value=str(SCHEMA_VERSION)))
        return
    for version in range(found, SCHEMA_VERSION):
        STEPS[version](connection)
    if found < SCHEMA_VERSION:
        connection.execute(update(meta).where(meta.c.key == "schema_version").values(value=str(SCHEMA_VERSION)))
