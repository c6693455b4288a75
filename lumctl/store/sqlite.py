"""SQLite behind a store: WAL mode, and every commit synced to disk before anybody is told that it is done."""

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from lumctl.files import make_private
from lumctl.store.errors import StoreError

BUSY_TIMEOUT_S = 5.0
HELD_TIMEOUT_S = 0.25
"""For the next writes after one has waited in vain: a command whose every write waits in full would take minutes."""
FILE_NAME = "lumctl.db"
_FILE = "file"
"""Under which name a connection keeps which file it opened."""
_PATIENCE = "patience"
"""Under which name a connection keeps how long it waits for the write lock, in seconds."""
_HELD = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
"""The last one: another process makes the shared memory, and does not come to the end of it."""
DAMAGED_HINT = "if its file is damaged, put a copy in its place, or move it away and begin anew"


def sqlite_in(folder: Path) -> Engine:
    """The database in a folder.

    Raises:
        OSError: it may not be written.
    """
    file = folder / FILE_NAME
    _require_writable(file)
    return sqlite_at(URL.create("sqlite", database=str(file)))


def make_whole(file: Path, fill: Callable[[Engine], None]) -> None:
    """Make a database and its folder, for their owner only; unless another process is faster, which is as good.

    It gets its name when all is in it: a file without content is therefore never a new store, but a damaged one.

    Raises:
        OSError: it cannot be made.
    """
    make_private(file.parent)
    draft = file.with_name(f".{file.name}.{uuid4().hex}")
    # SQLite gives its WAL and shared-memory files the mode of the main file: that one is private from the start.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        engine = sqlite_at(URL.create("sqlite", database=str(draft)))
        try:
            fill(engine)
        finally:
            engine.dispose()  # the last connection takes the WAL into the file
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        for name in ("", "-wal", "-shm"):
            draft.with_name(f"{draft.name}{name}").unlink(missing_ok=True)


def require_undamaged(file: Path) -> None:
    """Refuse a file that was emptied, and a log whose file is gone: neither is a new store.

    Raises:
        StoreError: it is one of these.
    """
    log = file.with_name(f"{file.name}-wal")
    hint = f"put a copy in its place; or move it away (mv {file.parent} {file.parent}.damaged), and: lumctl store adopt"
    size = _size(file)
    if size == 0:
        raise StoreError(f"the store's file {file} is empty: it was damaged, for a new store has content", hint=hint)
    if size is None and _size(log):
        raise StoreError(f"the store's file {file} is gone, and {log.name} with its last entries is there", hint=hint)


def _size(file: Path) -> int | None:
    """``None`` where there is no such file, or its folder may not be entered."""
    try:
        return file.stat().st_size
    except OSError:
        return None


def sqlite_at(url: URL) -> Engine:
    """The database at an SQLite URL."""
    timeout_s = float(str(url.query["timeout"])) if "timeout" in url.query else BUSY_TIMEOUT_S
    engine = create_engine(url, connect_args={"timeout": timeout_s})
    waited_in_vain = threading.Event()

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
        if not connection.get_execution_options().get("writing", False):
            connection.exec_driver_sql("BEGIN")
            return
        patience_s = min(HELD_TIMEOUT_S, timeout_s) if waited_in_vain.is_set() else timeout_s
        if connection.info.get(_PATIENCE, timeout_s) != patience_s:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={patience_s * 1000:.0f}")
            connection.info[_PATIENCE] = patience_s
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except DBAPIError as error:
            if is_held(error):
                waited_in_vain.set()
            raise
        waited_in_vain.clear()

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


def _require_writable(file: Path) -> None:
    """Require that a file may be read and written, without opening it.

    To close it would drop all locks that this process holds on it, SQLite's own as well, and then another process takes
    the WAL away that ours still writes to.

    Raises:
        OSError: it may not be written.
    """
    if not os.access(file, os.R_OK | os.W_OK):
        frozen = os.statvfs(file).f_flag & os.ST_RDONLY
        number = errno.EROFS if frozen else errno.EACCES
        raise OSError(number, os.strerror(number), str(file))


def is_damaged(error: Exception) -> bool:
    """Whether an error says that the file is no database, or not a whole one."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_full(error: Exception) -> bool:
    """Whether an error says that the disk has no room, or the file may not grow."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code is not None and code & 0xFF == sqlite3.SQLITE_FULL


def is_held(error: Exception) -> bool:
    """Whether an error says that another process held a lock for too long."""
    code = getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _HELD
