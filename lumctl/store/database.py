"""Opening the database behind a store: SQLite in a folder by default, SQLite or PostgreSQL where a URL names one."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from lumctl import __version__
from lumctl.errors import RefusedError, UsageError
from lumctl.store import postgres, sqlite
from lumctl.store.errors import StoreError, StoreFullError, StoreHeldError, StoreUnreachableError
from lumctl.store.lock_holders import holder_of_file
from lumctl.store.schema import SCHEMA_VERSION, make_tables, version_of
from lumctl.store.sqlite import open_unwritable

_UNREACHABLE_HINT = "see that the database runs and can be reached from here; then say it again"
_LOCK_TIMED_OUT = "55P03"
_BY_STATE = {
    "57014": (
        f"the statement took the database more than {postgres.STATEMENT_WITHIN_S} s",
        "see whether the database is overloaded; then say it again",
    ),
    "25P03": (
        f"this process was suspended for more than {postgres.STANDS_STILL_S} s during the write; the write was undone",
        "see the present state: lumctl swap list",
    ),
    "25006": ("the database is read-only: it is a standby, or was configured so", "use the primary in the store's URL"),
    "42501": ("the database's user lacks the permission", "let it own the tables, or grant it the permission"),
    "53100": ("the database's disk is full", "free space on its disk"),
}
"""The reason and the hint for an error, by its SQLSTATE."""


def told(error: SQLAlchemyError, what: str, source: Engine | Path | None = None) -> StoreError:
    """The store's own error for an error of the database; ``what`` is the failed action, with the store's name.

    ``source`` is the store's engine or its SQLite file. It is used to find the process that holds the lock.
    """
    original = getattr(error, "orig", None) or error
    reason = " ".join(str(original).split())
    state = getattr(original, "sqlstate", None)
    if state == _LOCK_TIMED_OUT or sqlite.is_held(error):
        return _held(what, source)
    if state in _BY_STATE:
        reason, hint = _BY_STATE[state]
        return StoreError(f"{what}: {reason}", hint=hint)
    if is_lost(error):
        return StoreUnreachableError(f"{what}: {reason}", hint=_UNREACHABLE_HINT)
    if sqlite.is_full(error):
        return StoreFullError(f"{what}: {reason}", remedy=f"free space on the disk of {_file(source) or 'the store'}")
    return StoreError(f"{what}: {reason}", hint=sqlite.DAMAGED_HINT if sqlite.is_damaged(error) else None)


def _held(what: str, source: Engine | Path | None) -> StoreHeldError:
    file, holder = _file(source), None
    if file is not None:
        holder = holder_of_file(file)
    elif isinstance(source, Engine) and source.dialect.name == "postgresql":
        holder = postgres.holder(source)
    if holder is not None:
        message = f"{what}: its lock is held by {holder.words}"
        return StoreHeldError(message, remedy=holder.remedy, process=holder.process)
    look = f", or see which process has it open: fuser -v {shlex.quote(str(file))}" if file else ""
    return StoreHeldError(
        f"{what}: its lock was held by another process, which this machine cannot identify",
        remedy=f"wait for it{look}",
    )


def _file(source: Engine | Path | None) -> Path | None:
    """The file of an SQLite database."""
    if isinstance(source, Engine):
        place = source.get_execution_options().get("place") or source.url.database
        return Path(place) if place and source.dialect.name == "sqlite" else None
    return source


def is_lost(error: Exception) -> bool:
    """Whether the database server could not be reached, or the connection to it was lost."""
    original = getattr(error, "orig", None)
    if type(original).__module__.partition(".")[0] != "psycopg":
        return False
    # psycopg gives no SQLSTATE for errors that libpq found itself, such as a refused connection. 57P is the class of a
    # server that shuts down or starts, 08 that of connection errors.
    return (isinstance(error, DBAPIError) and error.connection_invalidated) or (
        type(original).__name__ in {"OperationalError", "ConnectionTimeout", "AdminShutdown", "CannotConnectNow"}
        and (getattr(original, "sqlstate", None) or "57P").startswith(("57P", "08"))
    )


def open_engine(place: Path | str, *, make: bool = True) -> Engine:
    """Open the database at a folder or a URL; create it on first use.

    Without ``make`` it must exist: a caller that continues with its content has no use for an empty database.

    A file that cannot be written, because of a full disk or missing permission, is opened for reading only: every write
    is then refused.

    Raises:
        UsageError: the folder cannot be created or read, or the URL does not name a usable database.
        StoreUnreachableError: the database does not answer.
        StoreError: there is no store, and ``make`` is false.
        RefusedError: the store has a schema that this version of lumctl does not read.
    """
    if not make:
        # Before it is opened: SQLite would create the file.
        _require_made(place)
    file = _file_of(place) if isinstance(place, Path) or place.startswith("sqlite") else None
    if file is not None:
        # Before anything opens the file: SQLite takes an empty file for a new database.
        sqlite.require_undamaged(file)
    try:
        if file is not None and make and not os.path.exists(file):  # noqa: PTH110 - False also where it may not be entered
            sqlite.make_whole(file, _ensure_tables)
        engine = _engine(place)
        if make:
            _ensure_tables(engine)
        elif not _has_tables(engine):
            engine.dispose()
            raise _gone(place)
        _require_known_schema(engine, place)
    except (OSError, SQLAlchemyError, StoreError) as error:
        readable = open_unwritable(file, error, timeout_s=sqlite.BUSY_TIMEOUT_S) if file is not None else None
        if readable is not None:
            _require_known_schema(readable, place)
            _tell_of_reading(readable, place)
            return readable
        raise _not_opened(place, error) from error
    # Last: errors while opening have messages of their own.
    _tell_of_reading(engine, place)
    return engine


def apart(place: str, name: str) -> str:
    """The URL of a separate part of a database: a schema, or for SQLite another file next to its file."""
    if postgres.is_postgres(place):
        return postgres.in_schema(place, name)
    try:
        file = _file_of(place)
    except (ArgumentError, ValueError):  # opening the store reports it
        return place
    if file is None:
        return place
    beside = make_url(place).set(database=str(file.with_stem(f"{file.stem}-{name}")))
    return beside.render_as_string(hide_password=False)


def _require_made(place: Path | str) -> None:
    file = _file_of(place)
    if file is not None and not file.exists():
        raise _gone(place)


def _gone(place: Path | str) -> StoreError:
    return StoreError(f"there is no longer a store at {shown(place)}", hint="move it back to its place")


def _engine(place: Path | str) -> Engine:
    if isinstance(place, Path):
        return sqlite.sqlite_in(place)
    try:
        url = make_url(place)
    except (ArgumentError, ValueError):  # the error may quote the whole URL, with its password
        raise UsageError("the store's URL cannot be parsed", hint="such as postgresql://user@host/database") from None
    if url.get_backend_name() == "sqlite":
        return sqlite.sqlite_at(url)
    if not postgres.is_postgres(place):
        raise UsageError(
            f"the store's URL begins with {url.drivername}://, which is not a supported database",
            hint="use a folder, or a database at postgresql:// or sqlite://",
        )
    engine = postgres.postgres_at(place)
    try:
        postgres.require_sound(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _not_opened(place: Path | str, error: Exception) -> UsageError | StoreError:
    what = f"the store at {shown(place)} cannot be opened"
    # Errors that the store raised itself already say what to do; only those about the database get a hint here.
    if isinstance(error, StoreError) and not isinstance(error.__cause__, SQLAlchemyError):
        return error
    cause = error.__cause__ if isinstance(error, StoreError) else error
    file = _file_of(place)
    if isinstance(cause, SQLAlchemyError) and (is_lost(cause) or file is None or sqlite.is_held(cause)):
        return told(cause, what, file)
    reason = getattr(cause, "strerror", None) or " ".join(str(getattr(cause, "orig", None) or cause).split())
    return UsageError(
        f"{what}: {reason}",
        hint=sqlite.DAMAGED_HINT
        if isinstance(cause, Exception) and sqlite.is_damaged(cause)
        else "set $LUMCTL_STATE or the rack's `store:` to a writable place",
    )


def _tell_of_reading(engine: Engine, place: Path | str) -> None:
    """Turn errors of failed reads into errors of the store; :func:`writing` does so for writes."""

    @event.listens_for(engine, "handle_error")
    def _tell(context: ExceptionContext) -> None:
        if context.is_pre_ping or context.sqlalchemy_exception is None:
            return  # an idle connection was lost: the pool makes another
        if context.connection is None or not context.connection.get_execution_options().get("writing", False):
            said = told(context.sqlalchemy_exception, f"the store at {shown(place)} cannot be read", engine)
            if said.hint is None and engine.dialect.name == "sqlite":
                said.hint = sqlite.DAMAGED_HINT
            raise said


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that holds the write lock from its start and commits when the block ends without an error.

    Raises:
        StoreError: nothing was written; if the connection was lost during the commit, it is unknown what was written.
    """
    options = engine.get_execution_options()
    if (reason := options.get("unwritable")) is not None:
        hint = f"it is at {options.get('place')}: check its permissions and its free space"
        raise StoreError(f"the store cannot be written: {reason}", hint=hint)
    is_postgres = engine.dialect.name == "postgresql"
    try:
        how = postgres.WRITING if is_postgres else {"writing": True}
        with engine.connect().execution_options(**how) as connection:
            if not is_postgres:
                # SQLAlchemy hands the function that begins a transaction only the pooled connection, not the options.
                connection.info[sqlite.WRITES] = True
            with connection.begin():
                if is_postgres:
                    postgres.hold(connection)
                yield connection
            # After the commit: until then the file could still be moved away, and the write would be lost unnoticed.
            sqlite.require_in_place(connection)
    except SQLAlchemyError as error:
        raise told(error, "the store is not writable", engine) from error


def _has_tables(engine: Engine) -> bool:
    with engine.connect() as connection:
        return version_of(connection) is not None


def _ensure_tables(engine: Engine) -> None:
    if not _has_tables(engine):
        with writing(engine) as connection:
            if engine.dialect.name == "postgresql":
                postgres.make_schema(connection)
            make_tables(connection)


def _require_known_schema(engine: Engine, place: Path | str) -> None:
    """Refuse a store of another schema: lumctl neither interprets it nor deletes it.

    Raises:
        RefusedError: the store's schema is not that of this version of lumctl.
    """
    with engine.connect() as connection:
        found = version_of(connection)
    if found is None or found[0] == SCHEMA_VERSION:
        return
    engine.dispose()
    version, writer = found
    by = f", made by lumctl {writer}" if writer else ""
    if version > SCHEMA_VERSION:
        hint = "use the newer lumctl that created it"
    elif (file := _file_of(place)) is not None:
        hint = (
            f"use the lumctl that created it; or move it away (mv {shlex.quote(str(file))} "
            f"{shlex.quote(f'{file}.schema-{version}')}), and: lumctl store adopt"
        )
    else:
        hint = "use the lumctl that created it; or set an empty database in `store:`, and: lumctl store adopt"
    raise RefusedError(
        f"the store at {shown(place)} has schema {version}{by}; lumctl {__version__} reads schema {SCHEMA_VERSION}",
        hint=hint,
    )


def _file_of(place: Path | str) -> Path | None:
    """The file of an SQLite database; ``None`` for any other."""
    if isinstance(place, Path):
        return place / sqlite.FILE_NAME
    url = make_url(place)
    named = url.database if url.get_backend_name() == "sqlite" and "uri" not in url.query else None
    return Path(named) if named and named != ":memory:" else None


def shown(place: Path | str) -> str:
    """A store's place, without a password."""
    return str(place) if isinstance(place, Path) or "://" not in place else postgres.shown(make_url(place))
