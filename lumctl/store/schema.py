"""The tables of a rack's store. A change of this file raises ``SCHEMA_VERSION`` and ships a migration.

Racks may share one database, so every row says whose it is. No text has a greatest length: SQLite would not hold it to
one, and PostgreSQL would refuse in the middle of a run what a person has named at length.
"""

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text

SCHEMA_VERSION = 6

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
    Column("process", Text, nullable=False, server_default=""),  # see lumctl.store.holder; since version 5
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

# -- what health remembers, and what a person said of it; since version 2 ----------------------------------------------

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
    Column("covers", Text),  # JSON; since version 6
)

event_clears = Table(
    "event_clears",  # since version 6
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

# -- plans that wait for a person's yes; since version 3 ---------------------------------------------------------------

approvals = Table(
    "approvals",
    metadata,
    Column("rack", String, primary_key=True),
    Column("plan", String, primary_key=True),  # its whole digest; its short id in rows from before that
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

# -- readings over time; since version 4 -------------------------------------------------------------------------------

readings = Table(
    "readings",
    metadata,
    Column("rack", String, primary_key=True),
    Column("hour", Integer, primary_key=True, autoincrement=False),  # counted since the epoch
    Column("component", String, primary_key=True),
    Column("body", LargeBinary, nullable=False),  # see lumctl.store.packing
)
