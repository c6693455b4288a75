"""SQLite behind a store: WAL mode, and every commit synced to disk before success is reported."""

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from lumctl.files import make_private
from lumctl.store.errors import StoreError
from lumctl.store.schema import make_tables, version_of

BUSY_TIMEOUT_S = 5.0
HELD_TIMEOUT_S = 0.25
"""For the next writes after one has waited in vain: a command whose every write waits in full would take minutes."""
FILE_NAME = "lumctl.db"
_FILE = "file"
"""Under which name a connection keeps which file it opened."""
_PATIENCE = "patience"
"""Under which name a connection keeps how long it waits for the write lock, in seconds."""
_HELD = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
"""The last one means that another process has not finished creating the shared memory."""
DAMAGED_HINT = "if its file is damaged, put a copy in its place, or move it away and begin again"


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
    # SQLite gives its WAL and shared-memory files the mode of the main file, so that one is created private.
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
    """Require that committed data is in the file that the next process opens, not in a file that was moved away.

    SQLite continues to write to a file that was moved or deleted, and no process would read it again.

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
    """Whether an error means that the file is not a complete database."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_full(error: Exception) -> bool:
    """Whether an error means that the disk is full, or the file may not grow."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
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
                if version_of(connection) is not None:
                    return engine.execution_options(place=str(file))
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
        # Without room for its shared memory SQLite reads a file only if it is declared immutable.
        yield f"file:{quote(str(file))}?immutable=1"


def _in_memory(timeout_s: float, reason: str) -> Engine:
    """An empty read-only store in memory."""
    source = f"file:lumctl-{uuid4().hex}?mode=memory&cache=shared"
    made = create_engine("sqlite://", creator=_connector(source, timeout_s), poolclass=QueuePool)
    with made.connect() as connection:
        with connection.begin():
            make_tables(connection)
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
    """Why nothing can be written, if the error tells that."""
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
