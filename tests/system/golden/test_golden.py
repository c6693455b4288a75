"""A recorded store is read, verified, and each of its runs is replayed to the end that it recorded.

record.py beside this file records it. swap-N.sql, a swap of the prototype and its rollback, is for tests of verify.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lumctl.change.plan import plan_digest
from lumctl.inventory.load import load_inventory
from lumctl.runbook.document import make
from lumctl.runbook.lint import lint
from lumctl.runbook.replay import replay_on_stage
from lumctl.runbook.stage import Stage, staged
from lumctl.runbook.yaml_text import dump, load
from lumctl.store import Store, store_at
from lumctl.store.schema import SCHEMA_VERSION

HERE = Path(__file__).parent
INVENTORY = load_inventory(HERE / "rack.yaml")
JOURNALS = sorted(HERE.glob("schema-*.sql"))


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged(INVENTORY) as stage:
        yield stage


@pytest.fixture(params=JOURNALS, ids=lambda path: path.stem)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store as that version left it, opened by this one."""
    with closing(sqlite3.connect(tmp_path / "lumctl.db")) as database:
        database.executescript(request.param.read_text(encoding="utf-8"))
    store = store_at(str(tmp_path), rack="golden")
    yield store
    store.close()


def test_there_is_one_of_this_version() -> None:
    assert JOURNALS[-1].stem == f"schema-{SCHEMA_VERSION}"


def test_every_run_is_replayed_to_the_end_it_recorded(store: Store, stage: Stage) -> None:
    assert store.verify(plan_digest) == ()
    runs = store.runs.all()
    assert {run.state for run in runs} == {"done", "undone", "rolled-back"}
    assert {"fabric", "swap", "rollback"} <= {run.kind for run in runs}
    for run in runs:
        text = dump(make(run, store, INVENTORY))
        assert lint(text, run.id, INVENTORY) == ()
        result = replay_on_stage(load(text, run.id), stage, progress=lambda _line: None)
        assert result.identical, (run.id, result.first_difference)


def test_a_changed_recording_names_its_first_difference(store: Store, stage: Stage) -> None:
    """Without this the test above could not fail: what is recorded is what is compared."""
    run = next(run for run in store.runs.all() if run.kind == "swap" and run.state == "undone")
    text = dump(make(run, store, INVENTORY))
    assert "g3-gpu0" in text
    book = load(text.replace("kept: 0", "kept: 1"), "changed")
    result = replay_on_stage(book, stage, progress=lambda _line: None)
    odd = result.first_difference
    assert odd is not None
    assert (result.identical, odd.step, "kept: 1" in odd.recorded, "kept: 0" in odd.replayed) == (
        False,
        "5",
        True,
        True,
    )
