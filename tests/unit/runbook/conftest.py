"""Runbooks of real runs: those of the golden store."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.runbook.document import make
from lumctl.runbook.yaml_text import dump
from lumctl.store import Store, store_at

GOLDEN = Path(__file__).parents[2] / "system" / "golden"


@pytest.fixture(scope="session")
def golden_rack() -> Inventory:
    return load_inventory(GOLDEN / "rack.yaml")


@pytest.fixture
def golden(tmp_path: Path) -> Iterator[Store]:
    """A store with a run of every kind."""
    with closing(sqlite3.connect(tmp_path / "lumctl.db")) as database:
        database.executescript((GOLDEN / "schema-8.sql").read_text(encoding="utf-8"))
    store = store_at(str(tmp_path), rack="golden")
    yield store
    store.close()


@pytest.fixture
def text_of(golden: Store, golden_rack: Inventory):
    """The runbook of a run as its file has it."""
    return lambda run: dump(make(golden.runs.get(run), golden, golden_rack))
