"""PostgreSQL behind a store: one writer of a rack at a time, synced before success is reported, with bounded waits.

A writer first takes the rack's advisory lock and then reads the committed data, so two writers of a rack never
conflict and nothing is retried; racks do not wait for each other. Readers see one snapshot of the database and wait
for no writer. A process that freezes in the middle of a write loses its transaction before others stop waiting.
"""

import logging
import zlib
from collections.abc import Generator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError

from lumctl.errors import UsageError
from lumctl.store.errors import StoreError
from lumctl.store.lock_holders import Holder, holder_of_advisory_lock, session_name

if TYPE_CHECKING:
    import psycopg

CONNECTS_WITHIN_S = 5
# Each limit is above the one before it. A frozen writer loses its transaction before others stop waiting for its lock,
# the lock's limit fires before the statement's, and the server's error arrives before the client gives up.
STANDS_STILL_S = 5
"""How long a writer may be idle in the middle of a write before the database undoes that write, in seconds."""
LOCKED_WITHIN_S = 8
STATEMENT_WITHIN_S = 10
ANSWERS_WITHIN_S = 15.0
"""How long a server may send no answer before it counts as gone, in seconds."""
READING = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
# A writer must not have a snapshot from before it got the lock: it would not see what the last holder committed.
WRITING = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False, "writing": True}
_DRIVER = "postgresql+psycopg"
_SCHEMA = "schema"
"""The key for the schema that holds the tables, if not the default: in a URL's query and in an engine's options."""
_SETTINGS = {
    "statement_timeout": f"{STATEMENT_WITHIN_S}s",
    "lock_timeout": f"{LOCKED_WITHIN_S}s",
    "idle_in_transaction_session_timeout": f"{STANDS_STILL_S}s",
    "extra_float_digits": "1",  # a time must read back exactly as it was hashed
}
_LOCK_SPACE = 0x6C756D63
"""The first number of lumctl's advisory locks: other programs may use the same database."""
# A database with synchronous_commit off would report a commit that a power cut can still undo.
_HOLD = """
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                  WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true),
       pg_advisory_xact_lock(%s, %s)
"""


def is_postgres(place: str) -> bool:
    """Whether a URL names a PostgreSQL."""
    return place.partition("://")[0].partition("+")[0] in {"postgres", "postgresql"}


def postgres_at(place: str) -> Engine:
    """The database at a URL such as ``postgresql://user@host/database``; connects when it is first used.

    Raises:
        UsageError: the driver is not installed, or the URL names another one.
    """
    try:
        import psycopg  # noqa: PLC0415 - an optional part
    except ImportError as error:
        raise UsageError(
            f"a store in PostgreSQL needs psycopg: {error}", hint="pip install 'lumctl[postgres]'"
        ) from error
    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # its exceptions say the same as its log
    scheme, _, rest = place.partition("://")
    if scheme not in {"postgres", "postgresql", _DRIVER}:
        raise UsageError(f"the store's URL begins with {scheme}://, expected {_DRIVER}:// or postgresql://")
    url = make_url(f"{_DRIVER}://{rest}")
    schema = str(url.query.get(_SCHEMA, ""))
    engine = create_engine(
        url.difference_update_query([_SCHEMA]),
        pool_pre_ping=True,
        execution_options={**READING, _SCHEMA: schema},
        connect_args=_arguments(rest),
    )

    class Impatient(psycopg.Connection[Any]):
        """A connection that does not wait forever for a server that has stopped."""

        def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
            try:
                return super().wait(_limited(gen), *arguments, **named)
            except TimeoutError as error:
                # The protocol is in the middle of an answer: this connection cannot be used again.
                self.close()
                raise psycopg.OperationalError(str(error)) from None

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: Any, _record: Any, arguments: Any, named: Any) -> Any:
        return Impatient.connect(*arguments, **named)

    @event.listens_for(engine, "connect")
    def _prepare(connection: "psycopg.Connection[Any]", _record: Any) -> None:
        # In a transaction, the pool's rollback would also undo these settings.
        connection.autocommit = True
        settings = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in _SETTINGS.items())
        connection.execute(f"SELECT {settings}".encode())
        connection.autocommit = False

    if schema:

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            # Set in each transaction: a connection pooler may give each transaction another session.
            connection.exec_driver_sql(f"SET LOCAL search_path TO {_quoted(schema)}")

    return engine


def in_schema(place: str, schema: str) -> str:
    """A URL whose tables are in a schema of their own, which is created together with the tables."""
    return f"{place}{'&' if '?' in place else '?'}{_SCHEMA}={schema}"


def make_schema(connection: Connection) -> None:
    """Create the schema that the URL names, if it names one that does not exist."""
    if schema := connection.get_execution_options().get(_SCHEMA):
        connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")


def _quoted(schema: str) -> str:
    return '"' + schema.replace('"', '""') + '"'


def require_sound(engine: Engine) -> None:
    """Refuse a database whose encoding cannot hold every text.

    Raises:
        UsageError: its encoding is not UTF8.
    """
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if found != "UTF8":
        raise UsageError(
            f"the store at {shown(engine.url)} has the encoding {found}, expected UTF8",
            hint="make one with: createdb --encoding=UTF8 --template=template0 NAME",
        )


def hold(connection: Connection) -> None:
    """Wait for the other writers of the rack; the lock ends with the transaction, which is synced to disk."""
    connection.exec_driver_sql(_HOLD, _lock_of(connection.get_execution_options()))


def holder(engine: Engine) -> Holder | None:
    """The present holder of the rack's lock; ``None`` if there is none, or the database does not show it."""
    login = engine.url.set(drivername="postgresql", password=None)
    login = login.difference_update_query([name for name in login.query if "password" in name])
    try:
        with engine.connect() as connection:
            keys = _lock_of(engine.get_execution_options())
            return holder_of_advisory_lock(connection, keys, login.render_as_string())
    except (SQLAlchemyError, StoreError):
        return None


def _lock_of(options: Mapping[str, Any]) -> tuple[int, int]:
    schema, rack = options.get(_SCHEMA, ""), options.get("rack", "")
    named = f"{schema}/{rack}" if schema else rack
    # An advisory lock takes two signed 32-bit numbers. If two racks get the same one, they only wait for each other.
    return _LOCK_SPACE, zlib.crc32(named.encode()) - 2**31


def shown(url: URL) -> str:
    """A URL without its password."""
    kept = url.difference_update_query([name for name in url.query if "password" in name])
    return kept.render_as_string(hide_password=True)


def _arguments(rest: str) -> dict[str, Any]:
    """Default settings of libpq that the URL may override. Keepalives detect a server that lost its power."""
    said = make_url(f"{_DRIVER}://{rest}").query
    ours = {
        "client_encoding": "utf8",
        "connect_timeout": CONNECTS_WITHIN_S,
        "application_name": session_name(),
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
    }
    # No prepared statements: a connection pooler may give each transaction another session.
    return {"prepare_threshold": None} | {name: value for name, value in ours.items() if name not in said}


def _limited(waiting: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Wait for an answer as psycopg does, but raise ``TimeoutError`` if none arrives in time."""
    ends = monotonic() + ANSWERS_WITHIN_S
    try:
        state = next(waiting)
        while True:
            ready = yield state
            # psycopg sends 0 when its polling interval ends without an event; an answer that still arrives is taken.
            if not ready and monotonic() > ends:
                raise TimeoutError(f"no answer within {ANSWERS_WITHIN_S:.0f} s")
            state = waiting.send(ready)
    except StopIteration as end:
        return end.value
