"""A runbook is made from the journal, and read back from whatever a person made of it."""

from pathlib import Path

import pytest
import yaml

from lumctl.change.plan import Do, Plan, Start, Step, to_document
from lumctl.errors import UsageError
from lumctl.files import put
from lumctl.inventory.load import example, load_inventory
from lumctl.runbook.document import make, parse
from lumctl.runbook.files import make_private_folder
from lumctl.runbook.yaml_text import dump, load
from lumctl.store import Record, Store, store_at

INVENTORY = load_inventory(example("prototype"))
PLAN = Plan(
    kind="swap",
    title="finetune: replace s1-gpu0 by s3-gpu0",
    rack="prototype",
    target="sim",
    created_at=1.0,
    inventory_digest=INVENTORY.digest,
    start=Start({"finetune": ("s0-gpu0", "s1-gpu0", "s2-gpu0")}, {"mesh": (3, 4)}),
    steps=(
        Step("1", Do.PROGRAM, "program 2 PUCs", {"device": "mesh", "changes": [[3, "x", "="], [9, "=", "x"]]}),
        Step("2", Do.ASSIGN, "record", {"assignment": {"finetune": ["s0-gpu0", "s3-gpu0", "s2-gpu0"]}, "before": {}}),
    ),
).sealed()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return store_at(str(tmp_path))


def recorded(store: Store, state: str) -> str:
    lease = store.leases.acquire("prototype", "me", term_s=30.0, now=1.0)
    values = {"kind": "swap", "target": "sim", "title": PLAN.title, "plan_digest": PLAN.digest, "who": "me"}
    run = store.runs.begin(lease, {**values, "inventory_digest": INVENTORY.digest}, to_document(PLAN), now=1.0)
    store.runs.conclude(lease, run, Record(2.0, "outcome", "1", {"done": True, "cells": 2}))
    store.runs.end(lease, run, Record(3.0, "end", "", {}), state)
    return run


def test_it_says_what_was_before_what_was_done_and_what_is_after(store: Store) -> None:
    book = load(dump(make(store.runs.get(recorded(store, "done")), store, INVENTORY)), "x")
    assert book.start.crosses == {"mesh": (3, 4)}
    assert book.end.crosses == {"mesh": (4, 9)}
    assert book.end.assignment == {"finetune": ("s0-gpu0", "s3-gpu0", "s2-gpu0")}
    assert [(s.step.do, s.outcome) for s in book.steps] == [
        (Do.PROGRAM, {"done": True, "cells": 2}),
        (Do.ASSIGN, None),
    ]


def test_a_run_that_was_rolled_back_ends_where_it_began(store: Store) -> None:
    book = parse(make(store.runs.get(recorded(store, "rolled-back")), store, INVENTORY), "x")
    assert book.end == book.start


@pytest.mark.parametrize(
    ("left_alone", "crosses", "assignment"),
    [
        (["1", "2"], {}, {}),
        (["1"], {}, {"finetune": ("s0-gpu0", "s3-gpu0", "s2-gpu0")}),
        ([], {"mesh": (4, 9)}, {"finetune": ("s0-gpu0", "s3-gpu0", "s2-gpu0")}),
    ],
)
def test_what_later_runs_wrote_over_is_not_what_a_run_left_behind(
    store: Store, left_alone: list[str], crosses: object, assignment: object
) -> None:
    lease = store.leases.acquire("prototype", "me", term_s=30.0, now=1.0)
    values = {"kind": "swap", "target": "sim", "title": PLAN.title, "plan_digest": PLAN.digest, "who": "me"}
    run = store.runs.begin(lease, {**values, "inventory_digest": INVENTORY.digest}, to_document(PLAN), now=1.0)
    for step in ("1", "2"):
        store.runs.conclude(lease, run, Record(2.0, "outcome", step, {"done": True}))
    said = {"left_alone": {"steps": left_alone, "why": ["mesh was last written by fabric-0002"]}} if left_alone else {}
    store.runs.conclude(lease, run, Record(3.0, "abort", "", {"by": "me", **said}))
    store.runs.end(lease, run, Record(4.0, "end", "", {}), "superseded" if left_alone else "half-done")
    book = parse(make(store.runs.get(run), store, INVENTORY), "x")
    assert (book.end.crosses, book.end.assignment) == (crosses, assignment)


def test_comments_and_edits_survive(store: Store) -> None:
    text = dump(make(store.runs.get(recorded(store, "done")), store, INVENTORY))
    edited = text.replace("title: program 2 PUCs", "title: program two  # as agreed on Friday")
    assert load(edited, "x").steps[0].step.title == "program two"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schema: [}", "x:1:10"),
        ("hello", "this is not a runbook"),
        ("schema: lumctl/runbook/v1\nid: a\n", "needs 'recorded'"),
        ("!!python/object/apply:os.system [ls]", "x:1:1"),
    ],
)
def test_what_is_no_runbook_is_one_line(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load(text, "x")


def test_an_unknown_kind_of_step_is_named(store: Store) -> None:
    document = make(store.runs.get(recorded(store, "done")), store, INVENTORY)
    document["steps"][0]["do"] = "explode"
    with pytest.raises(UsageError, match="explode"):
        load(yaml.safe_dump(document), "x")


def test_a_step_without_what_it_needs_is_named(store: Store) -> None:
    document = make(store.runs.get(recorded(store, "done")), store, INVENTORY)
    document["steps"][0]["data"] = {}
    with pytest.raises(UsageError, match=r"step 1 .program. needs changes, device"):
        load(yaml.safe_dump(document), "x")


def test_files_are_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.yaml"
    make_private_folder(path.parent)
    put(path, "text", mode=0o600)
    assert path.read_text() == "text"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["run.yaml"]
