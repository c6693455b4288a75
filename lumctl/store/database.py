"""Opening the database behind a store: SQLite in a folder by default, any SQLAlchemy URL when the inventory names one.

SQLite runs in WAL mode with every commit synced to disk: a journal entry is on disk before a device is written.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import SQLAlchemyError

from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.store.migrations import bring_up_to_date, version_of
from lumctl.store.schema import SCHEMA_VERSION
from lumctl.store.unwritable import open_unwritable

BUSY_TIMEOUT_S = 5.0
FILE_NAME = "lumctl.db"
_DAMAGED_HINT = "if its file is damaged, put a copy in its place, or move it away and begin anew"


def open_engine(place: Path | str) -> Engine:
    """Open the database at a folder or a URL; make it on first use, and bring an older one up to date.

    A file that cannot be written, for want of room or of leave, is opened for reading: every write is then refused.

    Raises:
        UsageError: the folder cannot be made or read, or the database does not answer.
        RefusedError: the database was written by a newer version of the program.
    """
    try:
        engine = _sqlite_in(place) if isinstance(place, Path) else create_engine(place)
        if engine.dialect.name == "sqlite":
            _prepare_sqlite(engine)
        _ensure_schema(engine)
    except (OSError, SQLAlchemyError, StoreError) as error:
        file = _file_of(place)
        readable = open_unwritable(file, error, timeout_s=BUSY_TIMEOUT_S) if file is not None else None
        if readable is not None:
            _refuse_newer(readable)
            _say_when_unreadable(readable, place)
            return readable
        reason = getattr(error, "strerror", None) or str(getattr(error, "orig", None) or error)
        raise UsageError(
            f"the store at {_without_secret(place)} cannot be opened: {reason}",
            hint=_DAMAGED_HINT
            if _is_damaged(error)
            else "set $LUMCTL_STATE or the rack's `store:` to a place that can be written",
        ) from error
    _say_when_unreadable(engine, place)
    return engine


def _say_when_unreadable(engine: Engine, place: Path | str) -> None:
    """Have a read that fails told in our words; :func:`writing` tells of writes itself."""

    @event.listens_for(engine, "handle_error")
    def _tell(context: ExceptionContext) -> None:
        if context.connection is None or not context.connection.get_execution_options().get("writing", False):
            raise StoreError(
                f"the store at {_without_secret(place)} cannot be read: {context.original_exception}",
                hint=_DAMAGED_HINT,
            )


def _is_damaged(error: Exception) -> bool:
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _file_of(place: Path | str) -> Path | None:
    """The file of an SQLite database; ``None`` for any other."""
    if isinstance(place, Path):
        return place / FILE_NAME
    url = make_url(place)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _sqlite_in(folder: Path) -> Engine:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / FILE_NAME
    _make_private(file)
    return create_engine(URL.create("sqlite", database=str(file)), connect_args={"timeout": BUSY_TIMEOUT_S})


def _make_private(file: Path) -> None:
    """SQLite gives its WAL and shared-memory files the mode of the main file: make that one private from the start.

    One that is there is never opened here: closing a file drops all locks that this process holds on it, SQLite's own
    as well, and then another process takes the WAL away that ours still writes to.

    Raises:
        OSError: it cannot be made, or may not be written.
    """
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if not os.access(file, os.R_OK | os.W_OK):
            frozen = os.statvfs(file).f_flag & os.ST_RDONLY
            number = errno.EROFS if frozen else errno.EACCES
            raise OSError(number, os.strerror(number), str(file)) from None


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not guessed by the sqlite3 module
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A writer reads before it writes: it must hold the write lock from its first statement. A reader never waits.
        writing = connection.get_execution_options().get("writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


class StoreError(LumctlError):
    """The store cannot be read or written: it is damaged, gone, or held too long, or the disk is full."""


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that holds the write lock from its start and commits when the block ends without an error."""
    if (reason := engine.get_execution_options().get("unwritable")) is not None:
        raise StoreError(f"the store cannot be written: {reason}")
    try:
        with engine.connect().execution_options(writing=True) as connection, connection.begin():
            yield connection
    except SQLAlchemyError as error:
        raise StoreError(f"the store cannot be written: {getattr(error, 'orig', None) or error}") from error


def _ensure_schema(engine: Engine) -> None:
    _refuse_newer(engine)
    if _schema_version(engine) != SCHEMA_VERSION:
        with writing(engine) as connection:
            bring_up_to_date(connection)


def _refuse_newer(engine: Engine) -> None:
    found = _schema_version(engine)
    if found is not None and found > SCHEMA_VERSION:
        raise RefusedError(
            f"the store has schema {found}, this version of lumctl knows {SCHEMA_VERSION}",
            hint="use the newer lumctl that wrote it",
        )


def _schema_version(engine: Engine) -> int | None:
    with engine.connect() as connection:
        return version_of(connection)


def _without_secret(place: Path | str) -> str:
    """A store's place with no password in it."""
    if isinstance(place, Path):
        return str(place)
    return make_url(place).render_as_string(hide_password=True)
