"""A store that cannot be written can still be read: a full or read-only disk must not blind whoever looks at a rack."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from lumctl.store.migrations import bring_up_to_date, version_of
from lumctl.store.schema import SCHEMA_VERSION

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})
_NO_LEAVE = frozenset({errno.EACCES, errno.EPERM})
_NO_WRITING = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM}
)


def open_unwritable(file: Path, error: Exception, *, timeout_s: float) -> Engine | None:
    """A read-only engine for a database that could not be opened for writing; ``None`` where that is no help.

    Where there is no database yet and no room to make one, the store is as empty as it would be. A place that may not
    be written at all is another matter: there the operator has to name a better one.
    """
    reason = _reason(error)
    if reason is None:
        return None
    empty = True
    for source in _sources(file):
        engine = _engine(source, timeout_s, reason)
        try:
            with engine.connect() as connection:
                if (version := version_of(connection)) is not None:
                    # The tables of an older version are read as they would be, had they been brought up to date.
                    found = engine if version >= SCHEMA_VERSION else _in_memory(timeout_s, reason, connection)
                    return found.execution_options(place=str(file))
        except SQLAlchemyError:
            empty = False
        engine.dispose()
    if not empty or _forbidden(error):
        return None
    return _in_memory(timeout_s, reason).execution_options(place=str(file))


def _sources(file: Path) -> Iterator[str]:
    """How to open a file for reading only, best first."""
    if not os.path.exists(file):  # noqa: PTH110 - unlike Path.exists, False also where the folder may not be entered
        return
    yield f"file:{quote(str(file))}?mode=ro"
    log = file.with_name(f"{file.name}-wal")
    if not log.exists() or log.stat().st_size == 0:
        # Without room for its shared memory SQLite reads a file only if told that nobody writes it.
        yield f"file:{quote(str(file))}?immutable=1"


def _in_memory(timeout_s: float, reason: str, original: Connection | None = None) -> Engine:
    """A store in memory that nobody writes: an empty one, or a copy that was brought up to date."""
    source = f"file:lumctl-{uuid4().hex}?mode=memory&cache=shared"
    made = create_engine("sqlite://", creator=_connector(source, timeout_s), poolclass=QueuePool)
    with made.connect() as connection:
        if original is not None:
            original.connection.cursor().connection.backup(connection.connection.cursor().connection)
        with connection.begin():
            bring_up_to_date(connection)
        engine = _engine(source, timeout_s, reason)
        engine.connect().close()  # into its pool: the database lives as long as a connection to it
    made.dispose()
    return engine


def _engine(source: str, timeout_s: float, reason: str) -> Engine:
    engine = create_engine(
        "sqlite://",
        creator=_connector(source, timeout_s),
        poolclass=QueuePool,
        execution_options={"unwritable": reason},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.execute("PRAGMA query_only=ON")

    return engine


def _connector(source: str, timeout_s: float) -> Callable[[], sqlite3.Connection]:
    return lambda: sqlite3.connect(source, uri=True, timeout=timeout_s, check_same_thread=False)


def _reason(error: Exception) -> str | None:
    """Why nothing can be written, if that is what the error says."""
    cause = _root(error)
    if isinstance(cause, OSError) and cause.errno in _NO_ROOM | _NO_LEAVE:
        return cause.strerror
    if isinstance(cause, sqlite3.Error) and _code(cause) in _NO_WRITING:
        return str(cause)
    return None


def _forbidden(error: Exception) -> bool:
    cause = _root(error)
    return isinstance(cause, OSError) and cause.errno in _NO_LEAVE


def _code(error: sqlite3.Error) -> int | None:
    """The primary result code, without the details in its upper bits."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _root(error: BaseException) -> BaseException:
    """What lies behind the wrapping of SQLAlchemy and of the store."""
    inner = getattr(error, "orig", None) or (None if isinstance(error, OSError) else error.__cause__)
    return _root(inner) if isinstance(inner, BaseException) else error
