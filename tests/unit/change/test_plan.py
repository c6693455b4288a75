"""A plan is data: it survives being written and read, and shows when it was changed in between."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.change.plan import (
    Candidate,
    Do,
    Plan,
    PlannedChange,
    PlannedCircuit,
    Replacement,
    Start,
    Step,
    counted_changes,
    from_document,
    plan_digest,
    to_document,
)
from lumctl.errors import UsageError
from lumctl.fabric import Segment

PLAN = Plan(
    kind="swap",
    title="train: replace a by b",
    rack="r1",
    target="sim",
    created_at=1.5,
    inventory_digest="i",
    start=Start({"train": ("a", "c")}, {"mesh": (3, 4)}),
    replacements=(Replacement("train", 0, "a", "b"),),
    candidates=(Candidate("a", "b", chosen=True, reasons=("the shortest light paths",)),),
    add=(
        PlannedCircuit(
            *("train/0-1", "train", "duplex", ({"lane": "b-a", "device": "mesh", "port": 1},)),
            (Segment("mesh", (1, 2), (3,)), Segment("switch", (4, 9))),
            ("f0",),
            2.25,
            -0.25,
        ),
    ),
    changes=(PlannedChange("mesh", 3, "x", "="), PlannedChange("mesh", 5, None, "x")),
    steps=(Step("1", Do.PROGRAM, "program 2 PUCs", {"device": "mesh", "changes": [[3, "x", "="]]}),),
).sealed()


def test_a_plan_survives_json() -> None:
    assert from_document(json.loads(json.dumps(to_document(PLAN)))) == PLAN


def test_its_id_comes_from_its_digest() -> None:
    assert PLAN.id == f"plan-{PLAN.digest[:8]}"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("target",), "rack"),
        (("replacements", 0, "spare"), "z"),
        (("steps", 0, "data", "changes", 0, 0), 4),
        (("puc_changes", 0, "to"), "x"),
        (("start", "crosses", "mesh"), [3]),
        (("id",), "plan-00000000"),
    ],
)
def test_a_plan_that_was_edited_is_refused(path: tuple[str | int, ...], value: object) -> None:
    document = json.loads(json.dumps(to_document(PLAN)))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(UsageError, match="was changed after it was made"):
        from_document(document)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(key=st.sampled_from(sorted(to_document(PLAN))), value=JSON)
def test_no_document_makes_a_traceback(key: str, value: object) -> None:
    document = to_document(PLAN)
    changed = {**document, key: value}
    if json.dumps(changed, sort_keys=True) == json.dumps(document, sort_keys=True):
        assert from_document(changed) == PLAN
    else:
        with pytest.raises(UsageError):
            from_document(changed)


@given(key=st.sampled_from(sorted(to_document(PLAN))), value=JSON)
def test_nor_does_one_with_a_digest_of_its_own(key: str, value: object) -> None:
    document = {**to_document(PLAN), key: value}
    document["digest"] = plan_digest(document)
    document["id"] = f"plan-{document['digest'][:8]}"
    with suppress(UsageError):
        to_document(from_document(document))


@pytest.mark.parametrize("document", [None, 3, [], {}, {"schema": "other"}])
def test_what_is_no_plan_is_said_to_be_none(document: object) -> None:
    with pytest.raises(UsageError, match="not a plan"):
        from_document(document)


def test_what_is_written_is_counted_in_the_words_of_its_device():
    puc, port = PlannedChange("mesh", 3, "x", "="), PlannedChange("switch", 4, None, "9")
    assert counted_changes([puc, port, puc]) == ["2 PUCs", "1 ingress port"]
    assert counted_changes([port]) == ["1 ingress port"]
    assert counted_changes([]) == []


def test_a_changed_plan_of_a_slice_is_made_again_by_the_command_of_slices():
    document = to_document(replace(PLAN, kind="slice").sealed()) | {"title": "another"}
    with pytest.raises(UsageError) as refused:
        from_document(document)
    assert refused.value.hint.startswith("make a new plan: lumctl slice plan;")
