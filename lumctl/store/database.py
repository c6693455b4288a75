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
        f"the database has taken more than {postgres.STATEMENT_WITHIN_S} s over it",
        "see whether the database is overloaded; then say it again",
    ),
    "25P03": (
        f"this process stood still for more than {postgres.STANDS_STILL_S} s while it wrote; that write was undone",
        "look at what is: lumctl swap list",
    ),
    "25006": ("the database may only be read: it is a standby, or was told so", "name the primary in the store's URL"),
    "42501": ("the database's user may not do that", "let it own the tables, or grant it what it needs"),
    "53100": ("the database's disk is full", "make room on its disk"),
}
"""By SQLSTATE."""


def told(error: SQLAlchemyError, what: str, source: Engine | Path | None = None) -> StoreError:
    """An error of the database as ours; ``what`` says what could not be done, to which store.

    ``source`` is its engine, or an SQLite file; it tells which process holds the lock.
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
        return StoreFullError(f"{what}: {reason}", remedy=f"make room on the disk of {_file(source) or 'the store'}")
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
    look = f", or see who has it open: fuser -v {shlex.quote(str(file))}" if file else ""
    return StoreHeldError(
        f"{what}: its lock was held by another process, and this machine does not show by which",
        remedy=f"wait for it{look}",
    )


def _file(source: Engine | Path | None) -> Path | None:
    """The file of an SQLite database."""
    if isinstance(source, Engine):
        place = source.get_execution_options().get("place") or source.url.database
        return Path(place) if place and source.dialect.name == "sqlite" else None
    return source


def is_lost(error: Exception) -> bool:
    """Whether there is no connection to the database server, or there is none any more."""
    original = getattr(error, "orig", None)
    if type(original).__module__.partition(".")[0] != "psycopg":
        return False
    return (isinstance(error, DBAPIError) and error.connection_invalidated) or (
        type(original).__name__ in {"OperationalError", "ConnectionTimeout", "AdminShutdown", "CannotConnectNow"}
        and (getattr(original, "sqlstate", None) or "57P").startswith(("57P", "08"))
    )


def open_engine(place: Path | str, *, make: bool = True) -> Engine:
    """Open the database at a folder or a URL; make it on first use.

    Without ``make`` it must be there: whoever continues with what is in it has no use for an empty one.

    A file that cannot be written, for want of room or of leave, is opened for reading: every write is then refused.

    Raises:
        UsageError: the folder cannot be made or read, or the URL names no database that will do.
        StoreUnreachableError: the database does not answer.
        StoreError: there is no store, and none is to be made.
        RefusedError: the store has a schema that this version of lumctl does not read.
    """
    if not make:
        _require_made(place)
    file = _file_of(place) if isinstance(place, Path) or place.startswith("sqlite") else None
    if file is not None:
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
    _tell_of_reading(engine, place)
    return engine


def apart(place: str, name: str) -> str:
    """The URL of a part of a database that shares nothing with the rest: a schema, or a file beside an SQLite one."""
    if postgres.is_postgres(place):
        return postgres.in_schema(place, name)
    try:
        file = _file_of(place)
    except (ArgumentError, ValueError):  # opening it says so
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
    return StoreError(f"there is no store at {shown(place)} any more", hint="put it back where it was")


def _engine(place: Path | str) -> Engine:
    if isinstance(place, Path):
        return sqlite.sqlite_in(place)
    try:
        url = make_url(place)
    except (ArgumentError, ValueError):  # which may quote it whole
        raise UsageError(
            "the store's URL cannot be understood", hint="such as postgresql://user@host/database"
        ) from None
    if url.get_backend_name() == "sqlite":
        return sqlite.sqlite_at(url)
    if not postgres.is_postgres(place):
        raise UsageError(
            f"the store's URL begins with {url.drivername}://, which is no database that will do",
            hint="a store is a folder, or a database at postgresql:// or sqlite://",
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
        else "set $LUMCTL_STATE or the rack's `store:` to a place that can be written",
    )


def _tell_of_reading(engine: Engine, place: Path | str) -> None:
    """Have a read that fails told in our words; :func:`writing` tells of writes itself."""

    @event.listens_for(engine, "handle_error")
    def _tell(context: ExceptionContext) -> None:
        if context.is_pre_ping or context.sqlalchemy_exception is None:
            return  # a connection that was lost meanwhile: another one is made
        if context.connection is None or not context.connection.get_execution_options().get("writing", False):
            said = told(context.sqlalchemy_exception, f"the store at {shown(place)} cannot be read", engine)
            if said.hint is None and engine.dialect.name == "sqlite":
                said.hint = sqlite.DAMAGED_HINT
            raise said


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that holds the write lock from its start and commits when the block ends without an error.

    Raises:
        StoreError: nothing was written; or, where the connection was lost at the very end, nobody knows.
    """
    options = engine.get_execution_options()
    if (reason := options.get("unwritable")) is not None:
        hint = f"it is at {options.get('place')}: see who may write there, and how much room is left"
        raise StoreError(f"the store cannot be written: {reason}", hint=hint)
    is_postgres = engine.dialect.name == "postgresql"
    try:
        how = postgres.WRITING if is_postgres else {"writing": True}
        with engine.connect().execution_options(**how) as connection:
            with connection.begin():
                if is_postgres:
                    postgres.hold(connection)
                yield connection
            sqlite.require_in_place(connection)
    except SQLAlchemyError as error:
        raise told(error, "the store cannot be written", engine) from error


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
    """Refuse a store of another schema: lumctl neither guesses at it nor deletes it.

    Raises:
        RefusedError: its schema is not the one of this version.
    """
    with engine.connect() as connection:
        found = version_of(connection)
    if found is None or found[0] == SCHEMA_VERSION:
        return
    engine.dispose()
    version, writer = found
    by = f", made by lumctl {writer}" if writer else ""
    if version > SCHEMA_VERSION:
        hint = "use the newer lumctl that made it"
    elif (file := _file_of(place)) is not None:
        hint = (
            f"use the lumctl that made it; or move it away (mv {shlex.quote(str(file))} "
            f"{shlex.quote(f'{file}.schema-{version}')}), and: lumctl store adopt"
        )
    else:
        hint = "use the lumctl that made it; or name an empty database in `store:`, and: lumctl store adopt"
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
    """A store's place with no password in it."""
    return str(place) if isinstance(place, Path) or "://" not in place else postgres.shown(make_url(place))
