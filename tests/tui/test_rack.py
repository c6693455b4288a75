"""The screen of a rack and the folding of racks, used by their keys."""

import re
from dataclasses import replace

from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import Cell, Row
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.screens.plan import PlanScreen
from lumctl.tui.screens.rack import RackScreen
from lumctl.tui.views.racks import MOST_FINDINGS, describe_rack
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.visible_rows import Folding
from lumctl.tui.widgets.heat import HeatPicture

LOST = "r1-h2-g1"


def fleet(*racks, state=State.OK):
    """Racks with two hosts each; the second host of the first rack is in the given state."""
    rows = []
    for rack in racks:
        rows.append(Row(f"rack:{rack}", rack, state, (Cell(""), Cell(rack)), None))
        for host in "ab":
            of_host = state if (rack, host) == (racks[0], "b") else State.OK
            name = f"{rack}-{host}"
            rows.append(Row(f"host:{name}", name, of_host, (Cell(""), Cell(name)), None, beneath=f"rack:{rack}"))
    return rows


def names(folding, rows, *, ascii_only=False):
    return [row.cells[1].text for row in folding.seen(rows, 1, Marks({}, ascii_only=ascii_only))]


async def open_rack(pilot, kit):
    await pilot.press("space")
    await kit.until(pilot, lambda: isinstance(pilot.app.screen, RackScreen))
    await kit.until(pilot, lambda: "H100" in kit.screen_text(pilot.app))


def test_a_single_small_rack_stands_open_and_several_are_folded_but_for_what_is_not_well():
    assert names(Folding(), fleet("r1")) == ["▾ r1", "r1-a", "r1-b"]
    assert names(Folding(), fleet("r1", "r2", state=State.FAILED)) == ["▸ r1", "r1-b", "▸ r2"]
    assert names(Folding(), fleet("r1", "r2"), ascii_only=True) == ["+ r1", "+ r2"]


def test_a_rack_of_many_lines_begins_folded():
    (head, *_), host = fleet("r1"), fleet("r1")[1]
    rows = [head, *(replace(host, key=f"host:{number}") for number in range(40))]
    assert names(Folding(), rows) == ["▸ r1"]


def test_what_hides_something_is_unfolded_and_what_hides_nothing_folded():
    folding, rows = Folding(), fleet("r1", "r2", state=State.FAILED)
    assert folding.turn(rows[2], rows) == "rack:r1"
    assert names(folding, rows) == ["▾ r1", "r1-a", "r1-b", "▸ r2"]
    folding.turn(rows[0], rows)
    assert names(folding, rows) == ["▸ r1", "▸ r2"]


def test_space_folds_the_rack_of_the_selected_line_and_the_cursor_goes_to_it(stage, kit):
    async def script(pilot):
        await pilot.press("t", "j", "j", "space")
        assert "5 of them folded away, 1 failed hidden (space: unfold)" in kit.screen_text(pilot.app)
        assert pilot.app.screen.area.table.selected.component == "r1"
        await pilot.press("space")
        assert "▾ r1" in kit.screen_text(pilot.app)
        assert "r1-h4" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_a_name_unfolds_the_rack_that_it_is_in(stage, kit):
    async def script(pilot):
        await pilot.press("t", "space", "colon", *"r1-h3", "enter")
        assert pilot.app.screen.area.table.selected.component == "r1-h3"

    kit.drive(stage.dashboard(), script)


def test_folding_does_nothing_where_nothing_folds(stage, kit):
    async def script(pilot):
        await pilot.press("2", "space")
        assert "16 accelerators" in kit.screen_text(pilot.app).splitlines()[3]

    kit.drive(stage.dashboard(), script)


def test_accelerators_stand_on_their_hosts_with_job_rank_and_spares(stage, kit):
    async def script(pilot):
        await open_rack(pilot, kit)
        lines = kit.screen_text(pilot.app).splitlines()
        assert lines[0].startswith(" r1  TARGET sim")
        at = next(number for number, line in enumerate(lines) if " r1-h2 " in line)
        told = ["r1-h2", "*", "g0", "llm/4", "97%", ">✖", "g1", "llm/5", "-", "*", "g2", "llm/6", "97%", "g3"]
        assert lines[at].split()[: len(told)] == told
        assert lines[at + 2].split()[1:5] == ["s", "g0", "spare", "0%"]

    kit.drive(stage.dashboard(), script)


def test_the_links_of_the_chosen_accelerator_come_first_and_those_that_are_ok_stay_quiet(stage, kit):
    async def script(pilot):
        await open_rack(pilot, kit)
        links = [line for line in kit.screen_text(pilot.app).splitlines() if " ↔ " in line]
        assert [line.strip()[0] for line in links] == ["*", "*"]
        assert f"r1-h2-g0 ↔ {LOST}  llm/4-5  rx dark / dark dBm" in links[0]
        assert "10 other circuits are ok" in kit.screen_text(pilot.app)
        await pilot.press("down", "right")
        await pilot.pause()
        links = [line for line in kit.screen_text(pilot.app).splitlines() if " ↔ " in line]
        assert "r1-h3-g1 ↔ r1-h3-g2" in links[0]
        assert "✖" in links[2]

    kit.drive(stage.dashboard(), script)


def test_an_accelerator_is_opened_and_its_swap_planned(stage, kit):
    async def script(pilot):
        await open_rack(pilot, kit)
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
        await pilot.press("escape", "p")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, PlanScreen))
        assert stage.planned == [("llm", LOST)]

    kit.drive(stage.dashboard(), script)


def test_a_swap_of_a_well_accelerator_is_answered_in_a_line(stage, kit):
    async def script(pilot):
        await open_rack(pilot, kit)
        await pilot.press("up", "p")
        await pilot.pause()
        assert "r1-h1-g1 and its links are ok" in kit.screen_text(pilot.app)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(stage.dashboard(), script)


def test_a_click_chooses_an_accelerator_and_a_second_one_opens_it(stage, kit):
    async def script(pilot):
        await open_rack(pilot, kit)
        view = pilot.app.screen.query_one(HeatPicture)
        line, column = view.layout_of_cells.spots["r1-h4-g1"]
        await pilot.click("#heat", offset=(column + 2, line))
        await pilot.pause()
        assert "r1-h4-g1  ● ok  spare" in kit.screen_text(pilot.app)
        await pilot.click("#heat", offset=(column + 2, line))
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))

    kit.drive(stage.dashboard(), script)


def test_many_hosts_of_eight_stand_in_columns_and_those_that_do_not_fit_scroll(stage, kit, monkeypatch):
    monkeypatch.setattr(kit, "HOSTS", 128)
    monkeypatch.setattr(kit, "PER_HOST", 8)
    monkeypatch.setattr(kit, "WORKERS", 8 * 128 - 8)

    async def script(pilot):
        await open_rack(pilot, kit)
        await pilot.press("end", *["right"] * 8)
        await pilot.pause()
        assert "r1-h128-g7  ● ok  spare" in kit.screen_text(pilot.app)
        assert " r1-h128 " in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script, size=(80, 24))


def facts(detail):
    return {f"{section.heading}: {label}": value for section in detail.sections for label, value in section.facts}


def test_all_that_is_known_of_a_rack_is_a_key_away(stage, kit):
    stage.records = replace(kit.records(), stores={"r1": "/var/lib/lumctl/r1"}, watched=True)

    async def script(pilot):
        await open_rack(pilot, kit)
        await pilot.press("i")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
        text = kit.screen_text(pilot.app)
        assert re.search(r"failed +rack", text)
        for words in ("smartlight", "hostport", "4 of 4 hosts answered", "1 failed, 15 ok", "4 free, 0 used"):
            assert words in text
        stage.now += 90
        await kit.until(pilot, lambda: re.search(r"newest observation +90 s ago", kit.screen_text(pilot.app)))
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, RackScreen)

    kit.drive(stage.dashboard(), script, size=(110, 60))


def test_who_looks_at_a_rack_what_is_done_to_it_and_where_that_is_kept(kit):
    seen = RecordedLook(kit.observation(), kit.records())
    told = facts(describe_rack(seen, "r1", kit.START))
    assert "looked at: looked at by" not in told  # nobody asked for a daemon
    assert told["changes: under way"] == "nothing"
    assert told["changes: last run"].startswith("swap-0007, done 38 s ago: llm: replace")
    assert told["autopilot: state"] == "running: it does what its policies allow"
    assert told["autopilot: policies"] == "replace (apply)"
    assert told["findings, worst first: r1-h2-g1"].startswith("failed, gpu.lost for 95 s")
    running = kit.run(8, state="running")
    records = kit.Records(runs=(running,), stores={"r1": "/s/r1"}, watched=False, trouble="it is locked")
    told = facts(describe_rack(RecordedLook(seen.observation, records), "r1", kit.START))
    assert told["changes: under way"].startswith("swap-0008 by ops@bastion, which holds the lease, for 40 s")
    assert told["changes: store"] == "/s/r1"
    assert told["changes: not read"] == "it is locked"
    assert told["looked at: looked at by"].startswith("this dashboard itself")
    assert told["autopilot: state"] == "not read"
    cut = replace(seen.observation, unfinished=("swap-0008",))
    told = facts(describe_rack(RecordedLook(cut, records), "r1", kit.START))
    assert told["changes: waits for an operator"].startswith("swap-0008 (running)")


def test_spares_are_free_or_used_and_many_findings_are_counted(kit):
    seen = kit.swapped_out(kit.observation(), LOST)
    seen = kit.with_states(seen, {"r1-h4-g1": State.FAILED})
    told = facts(describe_rack(RecordedLook(seen), "r1", kit.START))
    assert told["in it: spares"] == "3 free (r1-h4-g1 not healthy), 1 used: r1-h4-g0 (llm rank 5)"
    lost = kit.observation().report.accelerators[LOST]
    many = replace(lost, findings=lost.findings * 30)
    report = replace(seen.report, accelerators={**seen.report.accelerators, LOST: many})
    detail = describe_rack(RecordedLook(replace(seen, report=report)), "r1", kit.START)
    found = next(section for section in detail.sections if section.heading.startswith("findings")).facts
    assert len(found) == MOST_FINDINGS + 1
    assert found[-1][1].endswith("more, among the findings (4)")
