"""Rows as they lie in the database, for whoever doubts them: text that is none is no error here, but another text."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Connection, LargeBinary, Table, cast, select
from sqlalchemy.types import String


def rows(connection: Connection, table: Table, rack: str, by: Any) -> Iterator[Any]:
    """The rows of a rack, in the order of a column."""
    # SQLite gives back as text what is none, and fails at it; PostgreSQL lets none in.
    is_sqlite = connection.dialect.name == "sqlite"
    columns = [
        cast(column, LargeBinary).label(column.name) if is_sqlite and isinstance(column.type, String) else column
        for column in table.c
    ]
    for row in connection.execute(select(*columns).where(table.c.rack == rack).order_by(by)):
        yield SimpleNamespace(
            **{
                name: value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
                for name, value in row._asdict().items()
            }
        )


def document(text: str) -> dict[str, Any] | None:
    """A JSON object; ``None`` if the text is none, or not the one that the program writes of it.

    Other texts have the same meaning, such as one with a number's last digit changed beyond what a float can hold.
    """
    try:
        read = json.loads(text)
    except ValueError:
        return None
    return read if isinstance(read, dict) and json.dumps(read, ensure_ascii=False) == text else None
