"""From the schema of an older version to that of this one, inside one transaction: all of it or nothing."""

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, insert, inspect, select, update

from lumctl.store.schema import (
    SCHEMA_VERSION,
    acknowledgements,
    health_memory,
    meta,
    metadata,
    transitions,
    windows,
)


def _to_2(connection: Connection) -> None:
    """Health: what it remembers, what operators said of findings, and the history of states."""
    # The tables as they are today: whoever changes one of them writes down here what it was in version 2.
    metadata.create_all(connection, tables=[health_memory, acknowledgements, windows, transitions])


STEPS: Mapping[int, Callable[[Connection], None]] = {1: _to_2}
"""What brings a store of a version to the next one."""


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
