"""Whether anything was written to a database since one last looked: asked of its file, which costs next to nothing."""

import sqlite3

from sqlalchemy import Engine, PoolProxiedConnection

from lumctl.store import sqlite


class Commits:
    """Counts the commits to an SQLite file by keeping one connection to it that never writes. For one thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: PoolProxiedConnection | None = None

    def mark(self) -> int | None:
        """A number that is another one after every commit, whoever made it.

        ``None`` where only reading tells: in another database, and where the file was moved, replaced or damaged.
        """
        if self._engine.dialect.name != "sqlite":
            return None
        if self._kept is None:
            self._kept = self._engine.raw_connection()
        if not sqlite.is_in_place(self._kept.info):
            self.close()
            return None
        try:
            (number,) = self._kept.cursor().execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            return None
        return int(number)

    def close(self) -> None:
        """Give the connection back."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None
