"""SQLite's locks are a process's, and closing any handle of a file drops them: the store must never do so."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from lumctl.store import store_at

ANOTHER_PROCESS = """
import sqlite3, sys
reader = sqlite3.connect(sys.argv[1])
reader.execute("SELECT count(*) FROM health_memory").fetchall()
reader.close()
"""


def test_a_store_opened_twice_is_not_taken_from_under_itself(tmp_path: Path) -> None:
    first = store_at(str(tmp_path))
    first.health.remember({"at": 1}, now=1.0)
    second = store_at(str(tmp_path))
    # The last one out folds the log into the file and takes it away; this one is not the last.
    subprocess.run([sys.executable, "-c", ANOTHER_PROCESS, str(tmp_path / "lumctl.db")], check=True)
    assert (tmp_path / "lumctl.db-wal").exists()
    first.health.remember({"at": 2}, now=2.0)
    assert second.health.memory() == {"at": 2}
    first.close()
    second.close()
    with closing(sqlite3.connect(tmp_path / "lumctl.db")) as whole:
        assert whole.execute("PRAGMA integrity_check").fetchone() == ("ok",)
