"""The ids of runs, such as ``swap-0007``: numbered as they come, never given twice in one store."""

from sqlalchemy import ColumnElement, Connection, func, select

from lumctl.store.schema import runs


def new_run_id(connection: Connection, kind: str, mine: ColumnElement[bool]) -> str:
    """The next id, under the write lock; ``mine`` says which runs are this store's."""
    number = connection.execute(select(func.count()).select_from(runs).where(mine)).scalar() or 0
    while True:  # rows may be missing, if somebody took them away: the journal shows that, and the next run still runs
        number += 1
        run_id = f"{kind}-{number:04d}"
        if connection.execute(select(runs.c.id).where(runs.c.id == run_id, mine)).first() is None:
            return run_id
