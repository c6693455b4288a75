"""The rows of one rack in a database that racks may share, and a cache of what was read of them."""

import sqlite3
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, PoolProxiedConnection, Table, true

from lumctl.store import sqlite

T = TypeVar("T")
SHARED_S = 600.0
"""Queries for data that has not ended by a time use the same full ten minutes, so that observations share an answer."""


class CommitCounter:
    """Counts the commits to an SQLite file by keeping one connection to it that never writes. For any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = Lock()
        self._kept: PoolProxiedConnection | None = None

    def mark(self) -> int | None:
        """A number that changes with every commit of any process.

        ``None`` if only a new read can show changes: in another database, and if the file was moved, replaced or
        damaged.
        """
        if self._engine.dialect.name != "sqlite":
            return None
        with self._lock:
            if self._kept is None:
                self._kept = self._engine.raw_connection()
            # Other processes write to the file that now has the name, and this connection would see none of that.
            if not sqlite.is_in_place(self._kept.info):
                self._close()
                return None
            try:
                # The number does not count commits of the same connection, so this one must never write.
                (number,) = self._kept.cursor().execute("PRAGMA data_version").fetchone()
            except sqlite3.Error:
                return None
        return int(number)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None


class ReadCache:
    """Answers from earlier reads, as long as the database has counted no commit since. For any thread.

    An observation and a swap read the same rows many times between two writes, and reading them takes much longer than
    checking whether anything has changed. A database that does not count its commits is read every time.
    """

    def __init__(self, engine: Engine, commits: CommitCounter) -> None:
        self._engine = engine
        self._commits = commits
        self._lock = Lock()
        self._mark: int | None = None
        self._known: dict[Hashable, tuple[Hashable, Any]] = {}

    def get(self, name: Hashable, ask: Callable[[Connection], T], *, of: Hashable = None) -> T:
        """What ``ask`` reads, which depends on the database and on ``of`` only and must not be changed by anybody.

        One answer is kept for each ``name``.
        """
        mark = self._commits.mark()
        with self._lock:
            if mark != self._mark or mark is None:
                self._mark = mark
                self._known.clear()
            known = self._known.get(name)
        if known is not None and known[0] == of:
            return known[1]  # type: ignore[no-any-return]  # it is what `ask` returned
        with self._engine.connect() as connection:
            found = ask(connection)
        with self._lock:
            # It was read after the mark. What was committed in between changes the next mark.
            if mark is not None and mark == self._mark:
                self._known[name] = (of, found)
        return found


class RackRows:
    """The rows of one rack in a database; all rows if ``rack`` is empty."""

    def __init__(self, engine: Engine, rack: str, commits: CommitCounter) -> None:
        self.engine = engine
        self.rack = rack
        self.known = ReadCache(engine, commits)

    def of(self, table: Table) -> ColumnElement[bool]:
        """The condition that a row belongs to the rack."""
        return table.c.rack == self.rack if self.rack else true()
