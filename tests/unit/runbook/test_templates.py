"""What was done becomes what was meant, and can be read, checked, compared and told."""

import pytest

from lumctl.runbook.diff import times, unlike
from lumctl.runbook.lint import lint
from lumctl.runbook.report import report
from lumctl.runbook.templates import template_of
from lumctl.runbook.yaml_text import dump, load, plain, read


@pytest.mark.parametrize(
    ("run", "intents"),
    [
        ("swap-0002", [{"do": "swap", "failed": "g2-gpu0", "spare": "best"}]),
        ("rollback-0003", [{"do": "rollback", "run": "swap-0002"}]),
        ("fabric-0001", [{"do": "fabric-apply", "rack": "golden"}]),
        ("set-0005", [{"do": "device-set", "component": "g3-gpu0-a", "settings": {"transmit": False}}]),
        ("ack-0006", [{"do": "ack", "component": "g2-gpu0", "comment": "the vendor is called", "for": "2h"}]),
        ("maintain-0007", [{"do": "maintain", "component": "g2-gpu0", "comment": "a new card", "for": "1h"}]),
        ("maintain-0008", [{"do": "maintain-end", "component": "g2-gpu0"}]),
    ],
)
def test_every_kind_of_run_has_a_template_that_is_sound(text_of, golden_rack, run, intents):
    text = dump(template_of(load(text_of(run), run)))
    assert lint(text, run, golden_rack) == ()
    book = read(text, run)
    assert [{"do": str(each.do), **each.data} for each in book.intents] == intents
    assert read(text, run, {"rack": "another"}).rack == "another"


def test_the_same_runbook_differs_in_nothing(text_of):
    book = plain(load(text_of("swap-0002"), "x").document)
    assert unlike(book, book) == ()
    assert [what for what, _, _ in times(book, book)] == ["recorded"]


def test_a_runbook_and_the_plan_it_was_made_from_do_the_same(golden, text_of):
    book = plain(load(text_of("swap-0002"), "x").document)
    assert unlike(book, golden.runs.get("swap-0002").plan) == ()


def test_differences_are_told_by_what_they_are(text_of):
    book = plain(load(text_of("swap-0002"), "x").document)
    edited = plain(load(text_of("swap-0002").replace("healthy: [g3-gpu0]", "healthy: []"), "x").document)
    assert [(each.part, each.what) for each in unlike(book, edited)] == [("steps", "step 1")]
    fewer = {**book, "steps": book["steps"][:-1]}
    (one,) = [each for each in unlike(book, fewer) if each.part == "steps"]
    assert (one.a, one.b) == (book["steps"][-1]["title"], None)
    back = plain(load(text_of("rollback-0003"), "x").document)
    parts = {each.part for each in unlike(book, back)}
    assert {"about", "circuits", "steps", "cells", "end"} <= parts
    failed = plain(load(text_of("swap-0004"), "x").document)
    assert {each.part for each in unlike(book, failed)} >= {"outcome", "outcomes"}


def test_a_circuit_between_the_same_ends_differs_by_the_devices_fibres_and_pucs_on_its_path(golden):
    plan = plain(golden.runs.get("swap-0002").plan)
    (circuit,) = plan["circuits"]["add"]
    (segment,) = circuit["segments"]
    ends = "g1-gpu0-a (port 0) to g3-gpu0-a (port 10)"

    def by(*segments, **more):
        return {**plan, "circuits": {**plan["circuits"], "add": [{**circuit, "segments": [*segments], **more}]}}

    short, other = by({**segment, "pucs": [0, 1]}), by({**segment, "pucs": [0, 2]})
    (one,) = unlike(short, other)
    assert (one.part, one.what, one.where) == ("circuits", "add pair/0-1", "mesh")
    assert (one.a, one.b) == (f"{ends} through mesh (PUCs 0, 1)", f"{ends} through mesh (PUCs 0, 2)")
    across = [{**segment, "pucs": [0]}, {"device": "switch", "ports": [1, 2], "pucs": []}]
    first, second = by(*across, fibres=["f1"]), by(*across, fibres=["f2"])
    (one,) = unlike(first, second)
    assert (one.b, one.where) == (f"{ends} through mesh (PUCs 0), f2, switch", "")
    assert [each.where for each in unlike(by(), {**plan, "circuits": {}})] == ["mesh", "mesh"]


def test_an_incident_report_says_who_when_why_what_and_how_to_undo_it(text_of, golden):
    told = report(plain(load(text_of("swap-0002"), "x").document), golden.journal.head())
    for piece in (
        "# swap-0002: pair: replace g2-gpu0 by g3-gpu0",
        "ops@console from 10.0.0.7",
        "| pair | 1 | g2-gpu0 | g3-gpu0 |",
        "g3-gpu0 for g2-gpu0: chosen",
        "rollback-0003 rolled it back",
        "## Light that was proved",
        golden.journal.head().hash,
    ):
        assert piece in told, piece
    assert "None of its changes is in effect" in report(plain(load(text_of("swap-0004"), "x").document))
    assert "it cannot be undone" in report(plain(load(text_of("fabric-0001"), "x").document))
    assert "health ack COMPONENT --clear" in report(plain(load(text_of("ack-0006"), "x").document))


def test_a_report_stays_a_table_whatever_somebody_wrote(text_of):
    told = report(plain(load(text_of("ack-0006").replace("title: ack", "title: a|b<script>"), "x").document))
    assert "a\\|b&lt;script>" in told
