"""The tables of a rack's store. A change of this file raises ``SCHEMA_VERSION`` and ships a migration."""

from sqlalchemy import Column, Float, Index, Integer, MetaData, String, Table, Text

SCHEMA_VERSION = 2

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

plans = Table(
    "plans",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("target", String(16), nullable=False),
    Column("body", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("rack", String(128), nullable=False),
    Column("target", String(16), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("title", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("plan_digest", String(64), nullable=False),
    Column("inventory_digest", String(64), nullable=False),
    Column("who", String(256), nullable=False),
    Column("version", String(32), nullable=False),
    Column("fence", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("undone_by", String(64)),
)

journal = Table(
    "journal",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("run", String(64), nullable=False, index=True),
    Column("at", Float, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("step", String(32), nullable=False),
    Column("data", Text, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("version", String(32), nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("rack", String(128), primary_key=True),
    Column("holder", Text, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("expires_at", Float, nullable=False),
)

assignment = Table(
    "assignment",
    metadata,
    Column("job", String(128), primary_key=True),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    Column("accelerator", String(128), nullable=False),
    Column("run", String(64), nullable=False),
)

devices = Table(
    "devices",
    metadata,
    Column("device", String(128), primary_key=True),
    Column("certain", Integer, nullable=False),
    Column("run", String(64), nullable=False),
)

device_states = Table(
    "device_states",
    metadata,
    Column("device", String(128), primary_key=True),
    Column("puc", Integer, primary_key=True, autoincrement=False),
    Column("state", String(8), nullable=False),
)

# -- what health remembers, and what a person said of it; since version 2. Racks may share one database. ---------------

health_memory = Table(
    "health_memory",
    metadata,
    Column("rack", String(128), primary_key=True),
    Column("at", Float, nullable=False),
    Column("document", Text, nullable=False),
)

acknowledgements = Table(
    "acknowledgements",
    metadata,
    Column("rack", String(128), primary_key=True),
    Column("component", String(256), primary_key=True),
    Column("rule", String(64), primary_key=True),  # empty: every rule
    Column("by", String(256), nullable=False),
    Column("comment", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("until", Float),
)

windows = Table(
    "maintenance_windows",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("rack", String(128), nullable=False, index=True),
    Column("component", String(256), nullable=False),
    Column("by", String(256), nullable=False),
    Column("comment", Text, nullable=False),
    Column("starts", Float, nullable=False),
    Column("ends", Float, nullable=False),
)

transitions = Table(
    "transitions",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("rack", String(128), nullable=False),
    Column("at", Float, nullable=False),
    Column("component", String(256), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("before", String(16)),
    Column("after", String(16), nullable=False),
    Column("rules", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Index("transitions_of_a_component", "rack", "component", "seq"),
)
