"""A store of another schema is refused, unchanged, with a hint that works."""

import shlex
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from lumctl.errors import RefusedError
from lumctl.store import store_at
from lumctl.store.schema import SCHEMA_VERSION


@pytest.fixture
def other(tmp_path: Path):
    """A store whose schema has another number."""

    def make(version: int) -> Path:
        store_at(str(tmp_path), rack="r1").close()
        with closing(sqlite3.connect(tmp_path / "lumctl.db")) as database, database:
            database.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(version),))
            database.execute("UPDATE meta SET value = '9.9.9' WHERE key = 'lumctl'")
        return tmp_path

    return make


def test_an_older_one_is_refused_and_can_be_moved_away(other) -> None:
    folder = other(SCHEMA_VERSION - 1)
    before = (folder / "lumctl.db").read_bytes()
    with pytest.raises(RefusedError, match=f"has schema {SCHEMA_VERSION - 1}, made by lumctl 9.9.9") as refused:
        store_at(str(folder), rack="r1")
    assert (folder / "lumctl.db").read_bytes() == before
    move = refused.value.hint.partition("(")[2].partition(")")[0]
    subprocess.run(shlex.split(move), check=True)
    store_at(str(folder), rack="r1").close()
    assert (folder / f"lumctl.db.schema-{SCHEMA_VERSION - 1}").read_bytes() == before


def test_a_newer_one_is_refused(other) -> None:
    folder = other(SCHEMA_VERSION + 1)
    with pytest.raises(RefusedError, match="has schema") as refused:
        store_at(str(folder), rack="r1")
    assert refused.value.hint == "use the newer lumctl that created it"
