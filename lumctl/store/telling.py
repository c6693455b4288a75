"""What a database says of a failure, in one line, with what to do about it."""

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from lumctl.store import postgres, sqlite
from lumctl.store.errors import StoreError, StoreUnreachableError

_UNREACHABLE_HINT = "see that the database runs and can be reached from here; then say it again"
_BY_STATE = {
    "55P03": (
        f"another process has held it for more than {postgres.LOCKED_WITHIN_S} s",
        "say it again; if that does not help, look for who holds it in the database's pg_locks",
    ),
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


def told(error: SQLAlchemyError, what: str) -> StoreError:
    """An error of the database as ours; ``what`` says what could not be done, to which store."""
    original = getattr(error, "orig", None) or error
    reason = " ".join(str(original).split())
    state = getattr(original, "sqlstate", None)
    if state in _BY_STATE:
        reason, hint = _BY_STATE[state]
        return StoreError(f"{what}: {reason}", hint=hint)
    if is_lost(error):
        return StoreUnreachableError(f"{what}: {reason}", hint=_UNREACHABLE_HINT)
    return StoreError(f"{what}: {reason}", hint=sqlite.DAMAGED_HINT if sqlite.is_damaged(error) else None)


def is_lost(error: Exception) -> bool:
    """Whether there is no connection to the database server, or there is none any more."""
    original = getattr(error, "orig", None)
    if type(original).__module__.partition(".")[0] != "psycopg":
        return False
    return (isinstance(error, DBAPIError) and error.connection_invalidated) or (
        type(original).__name__ in {"OperationalError", "ConnectionTimeout", "AdminShutdown", "CannotConnectNow"}
        and (getattr(original, "sqlstate", None) or "57P").startswith(("57P", "08"))
    )
