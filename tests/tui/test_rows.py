"""What the panes say, without a screen."""

import re
from dataclasses import replace

import pytest

from lumctl.cli.output import ASCII_GLYPHS, GLYPHS
from lumctl.health.observation import host_states
from lumctl.health.states import State
from lumctl.inventory.model import Role
from lumctl.tui.look.marks import Marks, age, duration, power
from lumctl.tui.panes import PANES
from lumctl.tui.panes.accelerators import accelerator_rows
from lumctl.tui.panes.circuits import circuit_rows
from lumctl.tui.panes.incidents import finding_rows
from lumctl.tui.panes.racks import rack_rows
from lumctl.tui.panes.rows import AGE, counts_cell, not_well, trouble_cell
from lumctl.tui.screens.component import detail_text
from lumctl.tui.views.details import describe
from lumctl.tui.views.racks import describe_rack
from lumctl.tui.views.records import RecordedLook

MARKS = Marks(GLYPHS)


def texts(row):
    return [cell.text for cell in row.cells]


def test_every_pane_gives_each_row_a_key_of_its_own_and_a_cell_for_each_column(kit):
    seen = RecordedLook(kit.observation(), kit.records())
    for pane in PANES:
        rows = pane.rows(seen, MARKS)
        assert len({row.key for row in rows}) == len(rows) > 0
        columns = [column for column in pane.columns if column.key != AGE]
        assert all(len(row.cells) == len(columns) for row in rows)


def test_a_rack_is_as_bad_as_the_worst_in_it_and_counts_what_it_holds(kit):
    rack, host, mesh, well = rack_rows(RecordedLook(kit.observation()), MARKS)[:4]
    assert texts(rack) == ["✖ failed", "r1", "rack", "1 failed, 15 ok", "2 failed, 10 ok"]
    assert texts(mesh) == ["● ok", "  mesh1", "mesh", "-", "2 failed, 10 ok"]
    assert texts(host) == ["✖ failed", "  r1-h2", "host", "1 failed, 3 ok", "2 failed, 3 ok"]
    assert texts(well) == ["● ok", "  r1-h1", "host", "4 ok", "5 ok"]


def test_every_badge_counts_the_rows_that_have_its_colour(kit):
    seen = RecordedLook(kit.observation(), kit.records())
    for pane in (pane for pane in PANES if pane.counts and pane.id != "racks"):
        states = [row.state for row in pane.rows(seen, MARKS) if row.state in pane.counts and not row.known]
        assert trouble_cell(pane.trouble(seen), MARKS) == trouble_cell(tuple(states), MARKS), pane.id


def test_the_badge_of_the_racks_counts_hosts_and_devices(kit):
    racks = PANES[0]
    assert trouble_cell(racks.trouble(RecordedLook(kit.observation())), MARKS).text == "✖1"


def test_readings_that_a_host_did_not_give_are_dashes(kit):
    lost, well, *_ = accelerator_rows(RecordedLook(kit.observation()), MARKS)
    assert texts(lost) == ["✖ failed", "r1-h2-g1", "r1-h2", "llm/5", "-", "-", "-", "-"]
    assert texts(well) == ["● ok", "r1-h1-g0", "r1-h1", "llm/0", "58C", "97%", "71/80G", "0"]


def test_after_a_swap_the_spare_has_the_rank_and_the_failed_one_is_out(kit):
    seen = kit.observation()
    ranks = tuple("r1-h4-g0" if rank == "r1-h2-g1" else rank for rank in seen.assignment["llm"])
    rows = {
        row.key: texts(row) for row in accelerator_rows(RecordedLook(replace(seen, assignment={"llm": ranks})), MARKS)
    }
    assert rows["r1-h4-g0"][3] == "llm/5"
    assert rows["r1-h2-g1"][3] == Role.DISABLED
    assert rows["r1-h4-g1"][3] == Role.SPARE


def test_a_receiver_that_hears_another_is_named(kit):
    seen = kit.observation(failed=None)
    circuit = seen.report.circuits["llm/0-1"]
    first, second = circuit.ends
    wrong = replace(circuit, state=State.FAILED, ends=(replace(first, hears="r1-h4-g0-l0"), second))
    report = replace(seen.report, circuits={**seen.report.circuits, circuit.id: wrong})
    row = circuit_rows(RecordedLook(replace(seen, report=report)), Marks(ASCII_GLYPHS, ascii_only=True))[0]
    assert texts(row)[2:] == [" -4.2 /  -4.2", "4.2", "r1-h4-g0-l0, not r1-h1-g1-l0", "r1-h1-g0-l1 <-> r1-h1-g1-l0"]


def test_a_directed_circuit_has_one_receiver(kit):
    seen = kit.observation(failed=None)
    circuit = seen.report.circuits["llm/0-1"]
    first, second = circuit.ends
    directed = replace(circuit, direction="a-to-b", ends=(replace(first, expected=None), second))
    report = replace(seen.report, circuits={circuit.id: directed})
    (row,) = circuit_rows(RecordedLook(replace(seen, report=report)), MARKS)
    assert texts(row)[2:] == [" -4.2", "4.2", "as intended", "r1-h1-g0-l1 → r1-h1-g1-l0"]


def test_one_rule_may_speak_of_one_component_twice(kit):
    seen = kit.observation()
    health = seen.report.accelerators["r1-h2-g1"]
    twice = replace(health, findings=health.findings * 2)
    report = replace(seen.report, accelerators={**seen.report.accelerators, health.id: twice})
    keys = [row.key for row in finding_rows(RecordedLook(replace(seen, report=report)), MARKS)]
    assert len(set(keys)) == len(keys) == 4


def test_a_rack_is_well_though_an_accelerator_of_it_is_out_of_service(kit):
    rack = rack_rows(RecordedLook(kit.swapped_out(kit.observation(failed=None), "r1-h2-g1")), MARKS)[0]
    assert (rack.state, texts(rack)[3]) == (State.OK, "1 disabled, 15 ok")


def test_what_is_acknowledged_is_shown_with_who_knows_of_it_and_is_not_counted_in_the_tab(kit):
    seen = kit.observation()
    health = seen.report.accelerators["r1-h2-g1"]
    known = tuple(replace(finding, acknowledged="by ops: part ordered") for finding in health.findings)
    said = replace(health, findings=known, maintenance="r1-h2 by ops: new fans")
    report = replace(seen.report, accelerators={**seen.report.accelerators, health.id: said})
    findings = next(pane for pane in PANES if pane.id == "findings")
    before, after = (findings.trouble(RecordedLook(each)) for each in (seen, replace(seen, report=report)))
    assert len(before) - len(after) == len(known)
    row = next(
        row for row in finding_rows(RecordedLook(replace(seen, report=report)), MARKS) if row.component == health.id
    )
    assert texts(row)[-1].endswith("\nacknowledged by ops: part ordered")
    text = detail_text(describe(replace(seen, report=report), health.id, seen.at), MARKS, seen.at).plain
    assert re.search(r"in maintenance +r1-h2 by ops: new fans", text)
    assert re.search(r"acknowledged +by ops: part ordered", text)


def test_findings_of_what_is_out_of_service_are_shown_and_are_not_counted_in_the_tab(kit):
    seen = kit.observation()
    health = seen.report.accelerators["r1-h2-g1"]
    out = replace(health, state=State.DISABLED, disabled=True)
    after = RecordedLook(replace(seen, report=replace(seen.report, accelerators={health.id: out}, incidents=())))
    findings = next(pane for pane in PANES if pane.id == "findings")
    assert not [row for row in finding_rows(after, MARKS) if row.component == health.id and row.state is State.FAILED]
    rows = [row for row in finding_rows(after, MARKS) if row.component == health.id]
    assert len(rows) == len(health.findings) > 0
    assert all(texts(row)[-1].split("\n")[1].startswith("out of service; ") for row in rows)
    assert len(findings.trouble(RecordedLook(seen))) - len(findings.trouble(after)) == len(rows)


def test_counts_are_worst_first():
    states = [State.OK, State.FAILED, State.OK, State.UNKNOWN]
    assert counts_cell(states).text == "1 failed, 1 unknown, 2 ok"
    assert counts_cell([]).text == "-"


def test_a_tab_counts_what_is_not_well_with_the_mark_of_the_worst():
    states = not_well([State.OK, State.UNKNOWN, State.DISABLED, State.FAILED, State.UNKNOWN])
    assert trouble_cell(states, MARKS).text == "✖1"
    assert trouble_cell(not_well([State.UNKNOWN, State.OK]), MARKS).text == "○1"
    assert trouble_cell(not_well([State.OK, State.DISABLED]), MARKS).text == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (0.9, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_what_was_never_read_is_never_old():
    assert age(None, 5.0) == "never"
    assert age(2.0, 5.0) == "3 s"


def test_powers():
    assert [power(None), power(float("-inf"), " dBm"), power(-4.24, " dBm")] == ["-", "dark", "-4.2 dBm"]


def test_a_host_with_a_failed_accelerator_is_not_ok_wherever_it_is_shown(kit):
    seen = kit.observation()
    assert seen.report.hosts["r1-h2"].state is State.OK
    assert host_states(seen) == {f"r1-h{n}": State.FAILED if n == 2 else State.OK for n in range(1, 5)}
    assert describe(seen, "r1-h2", seen.at).state is State.FAILED
    hosts = dict(describe_rack(RecordedLook(seen), "r1", seen.at).sections[1].facts)["hosts"]
    assert hosts.startswith("1 failed, 3 ok")
    # One that a swap took out of its job is a fault of the host no more.
    assert set(host_states(kit.swapped_out(seen, "r1-h2-g1")).values()) == {State.OK}
