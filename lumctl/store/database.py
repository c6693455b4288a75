"""Opening the database behind a store: SQLite in a folder by default, SQLite or PostgreSQL where a URL names one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from lumctl.errors import RefusedError, UsageError
from lumctl.store import postgres, sqlite
from lumctl.store.errors import StoreError
from lumctl.store.migrations import bring_up_to_date, version_of
from lumctl.store.schema import SCHEMA_VERSION
from lumctl.store.telling import is_lost, told
from lumctl.store.unwritable import open_unwritable


def open_engine(place: Path | str, *, make: bool = True) -> Engine:
    """Open the database at a folder or a URL; make it on first use, and bring an older one up to date.

    Without ``make`` it must be there: whoever goes on with what is in it has no use for an empty one.

    A file that cannot be written, for want of room or of leave, is opened for reading: every write is then refused.

    Raises:
        UsageError: the folder cannot be made or read, or the URL names no database that will do.
        StoreUnreachableError: the database does not answer.
        StoreError: there is no store, and none is to be made.
        RefusedError: the database was written by a newer version of the program, or an older one is at work on it.
    """
    if not make:
        _require_made(place)
    file = _file_of(place) if isinstance(place, Path) or place.startswith("sqlite") else None
    if file is not None:
        sqlite.require_undamaged(file)
    try:
        if file is not None and make and not os.path.exists(file):  # noqa: PTH110 - False also where it may not be entered
            sqlite.make_whole(file, _ensure_schema)
        engine = _engine(place)
        if not make and _schema_version(engine) is None:
            engine.dispose()
            raise _gone(place)
        _ensure_schema(engine)
    except (OSError, SQLAlchemyError, StoreError) as error:
        readable = open_unwritable(file, error, timeout_s=sqlite.BUSY_TIMEOUT_S) if file is not None else None
        if readable is not None:
            _refuse_newer(readable)
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


def _ensure_schema(engine: Engine) -> None:
    _refuse_newer(engine)
    if _schema_version(engine) != SCHEMA_VERSION:
        with writing(engine) as connection:
            if engine.dialect.name == "postgresql":
                postgres.make_schema(connection)
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
