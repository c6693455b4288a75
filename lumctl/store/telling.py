"""What a database says of a failure, in one line, with what to do about it."""

import shlex
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from lumctl.store import postgres, sqlite
from lumctl.store.errors import StoreError, StoreFullError, StoreHeldError, StoreUnreachableError
from lumctl.store.holders import holder_of_file

_UNREACHABLE_HINT = "see that the database runs and can be reached from here; then say it again"
_LOCK_TIMED_OUT = "55P03"
_BY_STATE = {
    "57014": (
        f"the database has taken more than {postgres.STATEMENT_WITHIN_S} s over it",
        "see whether the database is overloaded; then say it again",
    ),
    "25P03": (
        f"this process stood still for more than {postgres.STANDS_STILL_S} s while it wrote; that write was taken back",
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
