"""SQLite behind a store: WAL mode, and every commit synced to disk before anybody is told that it is done."""

import errno
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

from lumctl.files import make_private
from lumctl.store.errors import StoreError

BUSY_TIMEOUT_S = 5.0
FILE_NAME = "lumctl.db"
_FILE = "file"
"""Under which name a connection keeps which file it opened."""
DAMAGED_HINT = "if its file is damaged, put a copy in its place, or move it away and begin anew"


def sqlite_in(folder: Path) -> Engine:
    """The database in a folder, both made where they are not there, for their owner only.

    Raises:
        OSError: it cannot be made, or may not be written.
    """
    make_private(folder)
    file = folder / FILE_NAME
    _make_private(file)
    return sqlite_at(URL.create("sqlite", database=str(file)))


def sqlite_at(url: URL) -> Engine:
    """The database at an SQLite URL."""
    timeout = {} if "timeout" in url.query else {"timeout": BUSY_TIMEOUT_S}
    engine = create_engine(url, connect_args=timeout)

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not guessed by the sqlite3 module
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        if url.database and url.database != ":memory:" and "uri" not in url.query:
            record.info[_FILE] = (url.database, _identity(url.database))

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A writer reads before it writes: it must hold the write lock from its first statement. A reader never waits.
        writing = connection.get_execution_options().get("writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def require_in_place(connection: Connection) -> None:
    """Require that what was committed is in the file that the next process opens, not in one that was taken away.

    SQLite goes on writing to a file that was moved or deleted, and nobody would ever read it.

    Raises:
        StoreError: the file is gone, or another one has its name.
    """
    if not is_in_place(connection.info):
        raise StoreError(
            f"the store cannot be written: its file is gone from {connection.info[_FILE][0]}, or was replaced",
            hint="put it back where it was; what devices hold is not certain until a look at: lumctl swap list",
        )


def is_in_place(info: Mapping[str, Any]) -> bool:
    """Whether a connection, by what is kept of it, has the file open that is found under its name."""
    file, opened = info.get(_FILE, (None, None))
    return file is None or _identity(file) == opened


def _identity(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - after every commit: as cheap as can be
    except OSError:
        return None
    return found.st_dev, found.st_ino


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


def is_damaged(error: Exception) -> bool:
    """Whether an error says that the file is no database, or not a whole one."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
