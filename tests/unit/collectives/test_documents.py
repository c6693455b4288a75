"""A schedule as a document: the promised fields, read back the same, and every wrong field with its place."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.collectives import halving_doubling, ring, stragglar
from lumctl.collectives.documents import read_schedule, schedule_document, schedule_json, schedule_text, summary
from lumctl.errors import UsageError


def document(schedule):
    return json.loads("\n".join(schedule_json(schedule)))


def test_the_document_has_the_promised_fields():
    found = document(stragglar(4, 1))
    assert found["schema"] == "lumctl/collective/v1"
    assert (found["ranks"], found["straggler"], found["lower_bound"], found["proven"]) == (4, 1, 4, True)
    assert sorted(found["owners"]) == [0, 2, 3]
    assert found["rounds"][0]["sends"][0].keys() == {"from", "to", "chunks", "op"}
    assert {send["op"] for each in found["rounds"] for send in each["sends"]} == {"reduce", "copy"}
    del found["schema"]
    assert found == schedule_document(stragglar(4, 1))


@given(st.integers(2, 24))
@settings(deadline=None)
def test_a_document_is_read_back_the_same(ranks):
    for schedule in (stragglar(ranks, ranks - 1), ring(ranks), halving_doubling(1 << ranks % 4 + 1)):
        back = read_schedule(document(schedule))
        assert [list(sends) for sends in back.rounds] == [list(sends) for sends in schedule.rounds]
        assert (back.owners, back.straggler, back.chunks) == (schedule.owners, schedule.straggler, schedule.chunks)


def test_the_text_names_every_send():
    lines = list(schedule_text(stragglar(2, 1)))
    assert lines == [
        "# stragglar, 2 ranks, straggler 1: 1 round after the arrival, proven to be the fewest",
        "rank 0 owns chunk 0",
        "round 0",
        "  0 -> 1: +0",
        "  1 -> 0: +0",
    ]
    assert summary(halving_doubling(8)) == "halving-doubling, 8 ranks: 6 rounds, lower bound 3, gap 3"


def changed(path, value):
    found = document(stragglar(4, 3))
    place = found
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("ranks",), KeyError, "ranks is missing"),
        (("ranks",), 1025, "ranks: found 1025, expected a whole number from 2 to 1024"),
        (("ranks",), True, "ranks: found True, expected a whole number from 2 to 1024"),
        (("straggler",), 4, "straggler: found 4, expected a whole number from 0 to 3"),
        (("owners",), [0, 1, 1], "owners: expected each of the 3 ranks but the straggler once"),
        (("owners",), {}, "owners: found {}, expected a list"),
        (("straggler",), None, "owners: found some, but a schedule without a straggler has none"),
        (("rounds",), KeyError, "rounds is missing"),
        (("rounds", 1), 7, "rounds[1]: found 7, expected an object"),
        (("rounds", 1, "sends", 0, "to"), -1, "rounds[1].sends[0].to: found -1, expected a whole number from 0"),
        (("rounds", 1, "sends", 0, "from"), "0", "rounds[1].sends[0].from: found '0', expected a whole number from 0"),
        (("rounds", 1, "sends", 0, "chunks"), [0.5], "rounds[1].sends[0].chunks[0]: found 0.5, expected a whole"),
        (("rounds", 1, "sends", 0, "op"), "add", "rounds[1].sends[0].op: found 'add', expected 'reduce' or 'copy'"),
        (("rounds", 1, "sends", 0, "op"), [], "rounds[1].sends[0].op: found [], expected 'reduce' or 'copy'"),
    ],
)
def test_a_wrong_field_is_refused_with_its_place(path, value, said):
    with pytest.raises(UsageError) as refused:
        read_schedule(changed(path, value))
    assert refused.value.message.startswith(said)


def test_what_is_no_object_is_refused():
    with pytest.raises(UsageError, match=r"the document: found \[\], expected an object"):
        read_schedule([])
