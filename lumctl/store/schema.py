"""The tables of a rack's store. After 0.1.0, a change of this file raises ``SCHEMA_VERSION`` and ships a migration.

Racks may share a database, so every row names its rack. No text column has a maximum length: SQLite would not enforce
it, and PostgreSQL would refuse a long title in the middle of a run.
"""

from sqlalchemy import (
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    insert,
    inspect,
    select,
)

from lumctl import __version__

SCHEMA_VERSION = 8

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", String, primary_key=True),
    Column("value", Text, nullable=False),
)

plans = Table(
    "plans",
    metadata,
    Column("rack", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("digest", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("target", String, nullable=False),
    Column("body", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("rack", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("target", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("plan_digest", String, nullable=False),
    Column("inventory_digest", String, nullable=False),
    Column("who", String, nullable=False),
    Column("version", String, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("undone_by", String),
)

journal = Table(
    "journal",
    metadata,
    Column("rack", String, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("run", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("kind", String, nullable=False),
    Column("step", String, nullable=False),
    Column("data", Text, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("version", String, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
    Index("entries_of_a_run", "rack", "run"),
    Index("entries_of_a_kind", "rack", "kind"),
)

leases = Table(
    "leases",
    metadata,
    Column("rack", String, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("process", Text, nullable=False),  # JSON, see LeaseProcess; empty: unknown
)

assignment = Table(
    "assignment",
    metadata,
    Column("rack", String, primary_key=True),
    Column("job", String, primary_key=True),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    Column("accelerator", String, nullable=False),
    Column("run", String, nullable=False),
)

devices = Table(
    "devices",
    metadata,
    Column("rack", String, primary_key=True),
    Column("device", String, primary_key=True),
    Column("certain", Integer, nullable=False),
    Column("run", String, nullable=False),
)

device_states = Table(
    "device_states",
    metadata,
    Column("rack", String, primary_key=True),
    Column("device", String, primary_key=True),
    Column("puc", Integer, primary_key=True, autoincrement=False),
    Column("state", String, nullable=False),
)

# -- health: memory, acknowledgements, cleared events, maintenance windows, history of states --------------------------

health_memory = Table(
    "health_memory",
    metadata,
    Column("rack", String, primary_key=True),
    Column("at", Float, nullable=False),
    Column("document", Text, nullable=False),
)

acknowledgements = Table(
    "acknowledgements",
    metadata,
    Column("rack", String, primary_key=True),
    Column("component", String, primary_key=True),
    Column("rule", String, primary_key=True),  # empty: every rule
    Column("by", String, nullable=False),
    Column("comment", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("until", Float),
    Column("covers", Text),  # JSON; null: the findings of the next observation
)

event_clears = Table(
    "event_clears",
    metadata,
    Column("rack", String, primary_key=True),
    Column("component", String, primary_key=True),
    Column("rule", String, primary_key=True),  # empty: every rule
    Column("by", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Float, nullable=False),
)

windows = Table(
    "maintenance_windows",
    metadata,
    Column("id", String, primary_key=True),
    Column("rack", String, nullable=False, index=True),
    Column("component", String, nullable=False),
    Column("by", String, nullable=False),
    Column("comment", Text, nullable=False),
    Column("starts", Float, nullable=False),
    Column("ends", Float, nullable=False),
)

transitions = Table(
    "transitions",
    metadata,
    Column("rack", String, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("component", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("before", String),
    Column("after", String, nullable=False),
    Column("rules", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Index("transitions_of_a_component", "rack", "component", "seq"),
)

# -- plans that wait for an operator's approval ------------------------------------------------------------------------

approvals = Table(
    "approvals",
    metadata,
    Column("rack", String, primary_key=True),
    Column("plan", String, primary_key=True),  # the digest: another plan may have the same short id
    Column("policy", String, nullable=False),
    Column("made_by", String, nullable=False),
    Column("asked_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("by_another", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("by", String, nullable=False),
    Column("comment", Text, nullable=False),
    Column("answered_at", Float),
)

# -- jobs that wait for spares ----------------------------------------------------------------------------------------

demands = Table(
    "demands",
    metadata,
    Column("rack", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("job", String, nullable=False),
    Column("accelerators", Text, nullable=False),  # JSON
    Column("who", String, nullable=False),
    Column("asked_at", Float, nullable=False),
    Column("state", String, nullable=False, index=True),
    Column("why", Text, nullable=False),
    Column("run", String, nullable=False),  # empty: no run has served it
    Column("ended_at", Float),
)

# -- readings over time ------------------------------------------------------------------------------------------------

readings = Table(
    "readings",
    metadata,
    Column("rack", String, primary_key=True),
    Column("hour", Integer, primary_key=True, autoincrement=False),  # counted since the epoch
    Column("component", String, primary_key=True),
    Column("body", LargeBinary, nullable=False),  # see lumctl.store.packed_hours
)


def version_of(connection: Connection) -> tuple[int, str] | None:
    """The version of a store's schema and of the lumctl that made it; ``None`` if the store has no tables yet."""
    if not inspect(connection).has_table(meta.name):
        return None
    found = dict(connection.execute(select(meta.c.key, meta.c.value)).all())
    return (int(found["schema_version"]), found.get("lumctl", "")) if "schema_version" in found else None


def make_tables(connection: Connection) -> None:
    """Create all tables unless they exist. Call it under the write lock: another process may have been faster."""
    if version_of(connection) is None:
        metadata.create_all(connection)
        rows = {"schema_version": str(SCHEMA_VERSION), "lumctl": __version__}
        connection.execute(insert(meta), [{"key": key, "value": value} for key, value in rows.items()])
