"""SQLite behind a store: WAL mode, and every commit synced to disk before success is reported."""

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, PoolProxiedConnection, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from lumctl.files import make_private
from lumctl.store.errors import StoreError
from lumctl.store.schema import make_tables, version_of

BUSY_TIMEOUT_S = 5.0
HELD_TIMEOUT_S = 0.25
"""How long writes wait after one has timed out: a command whose every write waits in full would take minutes."""
FILE_NAME = "lumctl.db"
_FILE = "file"
"""The key under which a connection stores the identity of the file that it opened."""
WRITES = "writes"
"""The key under which a connection stores that its next transaction writes."""
_PATIENCE = "patience"
"""The key under which a connection stores how long it waits for the write lock, in seconds."""
_HELD = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
"""``SQLITE_PROTOCOL`` means that another process has not finished creating the shared memory."""
DAMAGED_HINT = "if its file is damaged, replace it by a copy, or move it away and start with an empty store"


def sqlite_in(folder: Path) -> Engine:
    """The database in a folder.

    Raises:
        OSError: it may not be written.
    """
    file = folder / FILE_NAME
    _require_writable(file)
    return sqlite_at(URL.create("sqlite", database=str(file)))


def make_whole(file: Path, fill: Callable[[Engine], None]) -> None:
    """Create a database and its folder, for their owner only. If another process creates it first, that one stays.

    The file gets its name only when its content is complete: a file without content is therefore a damaged store, never
    a new one.

    Raises:
        OSError: it cannot be created.
    """
    make_private(file.parent)
    draft = file.with_name(f".{file.name}.{uuid4().hex}")
    # SQLite gives its WAL and shared-memory files the mode of the main file, so that one is created private.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        engine = sqlite_at(URL.create("sqlite", database=str(draft)))
        try:
            fill(engine)
        finally:
            engine.dispose()  # closing the last connection merges the WAL into the file
        # A link fails where the name exists. A rename would replace a store that another process created meanwhile.
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        for name in ("", "-wal", "-shm"):
            draft.with_name(f"{draft.name}{name}").unlink(missing_ok=True)


def require_undamaged(file: Path) -> None:
    """Refuse an empty file, and a write-ahead log whose database file is missing: neither is a new store.

    Raises:
        StoreError: the store is in one of these states.
    """
    log = file.with_name(f"{file.name}-wal")
    hint = f"replace it by a copy; or move it away (mv {file.parent} {file.parent}.damaged), and: lumctl store adopt"
    size = _size(file)
    if size == 0:
        raise StoreError(
            f"the store's file {file} is empty, so it was damaged: even a new store has content", hint=hint
        )
    if size is None and _size(log):
        raise StoreError(f"the store's file {file} is missing, but {log.name} with its last entries exists", hint=hint)


def _size(file: Path) -> int | None:
    """The size of a file in bytes; ``None`` if it does not exist, or its folder may not be entered."""
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
        # Some builds of SQLite default to NORMAL in WAL mode: a power cut could undo the last commits.
        connection.execute("PRAGMA synchronous=FULL")
        if url.database and url.database != ":memory:" and "uri" not in url.query:
            record.info[_FILE] = (url.database, _identity(url.database))

    def begin(connection: PoolProxiedConnection) -> None:
        # A writer reads before it writes: it must hold the write lock from its first statement. A reader never waits.
        driver = cast("sqlite3.Connection", connection.driver_connection)
        if not connection.info.pop(WRITES, False):
            driver.execute("BEGIN")
            return
        patience_s = min(HELD_TIMEOUT_S, timeout_s) if waited_in_vain.is_set() else timeout_s
        if connection.info.get(_PATIENCE, timeout_s) != patience_s:
            driver.execute(f"PRAGMA busy_timeout={patience_s * 1000:.0f}")
            connection.info[_PATIENCE] = patience_s
        try:
            driver.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if is_held(error):
                waited_in_vain.set()
            raise
        waited_in_vain.clear()

    # No listener of the event: an engine that has one asks all kinds of listeners at every statement.
    engine.dialect.do_begin = begin  # type: ignore[method-assign,assignment]
    return engine


def require_in_place(connection: Connection) -> None:
    """Require that committed data is in the file that the next process opens, not in a file that was moved away.

    SQLite continues to write to a file that was moved or deleted, and no process would read it again.

    Raises:
        StoreError: the file is missing, or another one has its name.
    """
    if not is_in_place(connection.info):
        raise StoreError(
            f"the store cannot be written: its file was removed from {connection.info[_FILE][0]}, or was replaced",
            hint="move it back to its place; the state of devices is uncertain until you check it: lumctl swap list",
        )


def is_in_place(info: Mapping[str, Any]) -> bool:
    """Whether the file that a connection opened still has its name; ``info`` is the connection's own data."""
    file, opened = info.get(_FILE, (None, None))
    return file is None or _identity(file) == opened


def _identity(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - called after every commit, so it must be cheap
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _require_writable(file: Path) -> None:
    """Require that a file may be read and written, without opening it.

    Closing the file would drop all locks that this process holds on it, also SQLite's. Another process could then
    remove the WAL to which this process still writes.

    Raises:
        OSError: it may not be written.
    """
    if not os.access(file, os.R_OK | os.W_OK):
        frozen = os.statvfs(file).f_flag & os.ST_RDONLY
        number = errno.EROFS if frozen else errno.EACCES
        raise OSError(number, os.strerror(number), str(file))


def is_damaged(error: Exception) -> bool:
    """Whether an error means that the file is not a complete database."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_full(error: Exception) -> bool:
    """Whether an error means that the disk is full, or the file may not grow."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    # The upper bits of an extended code say where the error arose.
    return code is not None and code & 0xFF == sqlite3.SQLITE_FULL


def is_held(error: Exception) -> bool:
    """Whether an error means that another process held a lock for too long."""
    code = getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _HELD


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})
_NO_LEAVE = frozenset({errno.EACCES, errno.EPERM})
_NO_WRITING = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM}
)


def open_unwritable(file: Path, error: Exception, *, timeout_s: float) -> Engine | None:
    """A read-only engine for a database that could not be opened for writing; ``None`` if reading does not help.

    If there is no database and no room to create one, the engine reads an empty store. If there is no database and the
    user may not write there at all, the result is ``None``: the operator must set another place.
    """
    reason = _reason(error)
    if reason is None:
        return None
    empty = True
    for source in _sources(file):
        engine = _engine(source, timeout_s, reason)
        try:
            with engine.connect() as connection:
                if version_of(connection) is not None:
                    return engine.execution_options(place=str(file))
        except SQLAlchemyError:
            empty = False
        engine.dispose()
    if not empty or _forbidden(error):
        return None
    return _in_memory(timeout_s, reason).execution_options(place=str(file))


def _sources(file: Path) -> Iterator[str]:
    """The URIs that open a file for reading only, best first."""
    if not os.path.exists(file):  # noqa: PTH110 - unlike Path.exists, False also where the folder may not be entered
        return
    yield f"file:{quote(str(file))}?mode=ro"
    log = file.with_name(f"{file.name}-wal")
    # An immutable file is read without its log, so a log with entries would hide the newest state.
    if not log.exists() or log.stat().st_size == 0:
        # Without room for its shared memory SQLite reads a file only if it is declared immutable.
        yield f"file:{quote(str(file))}?immutable=1"


def _in_memory(timeout_s: float, reason: str) -> Engine:
    """An empty read-only store in memory."""
    # Shared by the connections of the pool, and under a name that no other store has.
    source = f"file:lumctl-{uuid4().hex}?mode=memory&cache=shared"
    made = create_engine("sqlite://", creator=_connector(source, timeout_s), poolclass=QueuePool)
    with made.connect() as connection:
        with connection.begin():
            make_tables(connection)
        engine = _engine(source, timeout_s, reason)
        engine.connect().close()  # it stays in the pool: the database exists as long as a connection to it
    made.dispose()
    return engine


def _engine(source: str, timeout_s: float, reason: str) -> Engine:
    engine = create_engine(
        "sqlite://",
        creator=_connector(source, timeout_s),
        # The default for a URL without a file is one connection for each thread.
        poolclass=QueuePool,
        execution_options={"unwritable": reason},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
        # A database in memory cannot be opened with mode=ro; writes are refused here for all sources.
        connection.execute("PRAGMA query_only=ON")

    return engine


def _connector(source: str, timeout_s: float) -> Callable[[], sqlite3.Connection]:
    return lambda: sqlite3.connect(source, uri=True, timeout=timeout_s, check_same_thread=False)


def _reason(error: Exception) -> str | None:
    """Why nothing can be written; ``None`` if the error does not mean that."""
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
    """The error inside the wrappers of SQLAlchemy and of the store."""
    inner = getattr(error, "orig", None) or (None if isinstance(error, OSError) else error.__cause__)
    return _root(inner) if isinstance(inner, BaseException) else error
