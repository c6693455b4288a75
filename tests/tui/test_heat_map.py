"""The heat map, as text: where each accelerator stands in each room, its number, its glyph and its style."""

from dataclasses import replace

import pytest
from looks import Looks

from lumctl.cli.output import ASCII_GLYPHS, GLYPHS
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.tui.look.marks import Marks
from lumctl.tui.views.heat_layout import HeatBlock, blocks_of, layout_of
from lumctl.tui.views.heat_map import QUANTITIES, Heat, legend

START = 1_795_000_000.0
UTILIZATION, TEMPERATURE, POWER = QUANTITIES


@pytest.fixture(scope="module")
def look():
    return Looks(load_inventory(example("rack64")), target="sim").look(START, failed=["h03-gpu2"])


def drawn(look, width, height, chosen=None, quantity=UTILIZATION, marks=None, blocks=None):
    """The lines of the picture, and the layout."""
    heat = Heat(look, quantity, marks or Marks(GLYPHS))
    layout = layout_of(blocks or blocks_of(look), width, height)
    return ["".join(piece.text for piece in heat.line(layout, n, chosen)) for n in range(len(layout.lines))], layout


@pytest.mark.parametrize(("width", "height"), [(118, 18), (78, 10), (78, 16), (156, 20), (36, 4)])
def test_every_host_and_every_spare_is_in_sight_wherever_there_is_room_for_a_number(look, width, height):
    lines, layout = drawn(look, width, height)
    assert len(layout.spots) == 64
    assert layout.columns <= max(width, 4 + 4 * 4)
    if width > 40:
        assert len(lines) <= height
    text = "\n".join(lines)
    for host in range(1, 17):
        assert f"h{host:02}" in text
    assert text.count("✖") == 1


def test_with_room_an_accelerator_has_its_name_its_rank_and_its_number(look):
    lines, _ = drawn(look, 118, 18, chosen="h03-gpu2")
    assert lines[1].split()[1:4] == ["gpu0", "train-a/1", lines[1].split()[3]]
    assert ">✖ gpu2 train-a/18" in lines[2]
    assert "*  gpu2 train-a/17" in lines[1]  # joined by light
    assert "*  gpu2 train-a/19" in lines[3]
    assert lines[15].count("s gpu") == 4
    assert lines[15].count("spare") == 4


def test_little_room_leaves_the_number_and_less_a_digit(look):
    lines, layout = drawn(look, 78, 10, quantity=TEMPERATURE)
    assert layout.cell == 8
    assert len(lines) == 8
    assert lines[0].count("C") == 8
    heat = Heat(look, TEMPERATURE, Marks(GLYPHS))
    value = heat.values["h01-gpu0"]
    assert heat.text("h01-gpu0", 3).strip() == f"{value:.0f}"
    assert heat.text("h01-gpu0", 1) == str(int((value - 25) / (90 - 25) * 10))
    assert heat.text("h03-gpu2", 1) == heat.text("h03-gpu2", 3).strip() == "✖"
    assert heat.text("h16-gpu0", 1) == "s"


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 9, 11, 15, 20, 21, 25])
def test_a_cell_has_exactly_its_width(look, width):
    for marks in (Marks(GLYPHS), Marks(ASCII_GLYPHS, ascii_only=True)):
        for quantity in QUANTITIES:
            heat = Heat(look, quantity, marks)
            for name in ("h01-gpu0", "h03-gpu2", "h16-gpu3"):
                for chosen in (True, False):
                    text = heat.text(name, width, is_chosen=chosen, is_joined=not chosen)
                    assert len(text) == width
                    assert text.isascii() or not marks.ascii_only


def test_what_is_not_ok_stands_out_and_what_is_ok_is_coloured_by_its_value(look):
    heat = Heat(look, UTILIZATION, Marks(GLYPHS))
    assert heat.style("h03-gpu2") == "fill failed"
    assert heat.style("h01-gpu0") == f"$heat-{UTILIZATION.level(heat.values['h01-gpu0'])}"
    assert heat.style("h16-gpu0") == "$heat-0"
    assert [UTILIZATION.level(value) for value in (0, 19, 20, 99, 100, 130)] == [0, 0, 1, 4, 4, 4]
    styles = [piece.style for piece in heat.line(layout_of(blocks_of(look), 118, 18), 2, "h03-gpu2") if piece.style]
    assert "chosen fill failed" in styles


def test_an_accelerator_whose_lane_fails_shows_it_and_only_the_cause_is_filled(look):
    report = look.report
    lanes = {
        name: replace(report.links[name], state=State.FAILED, findings=report.accelerators["h03-gpu2"].findings)
        for name in ("h05-gpu1-a",)
    }
    seen = replace(look, report=replace(report, links={**report.links, **lanes}))
    heat = Heat(seen, UTILIZATION, Marks(GLYPHS))
    assert heat.states["h05-gpu1"] is State.FAILED
    assert heat.text("h05-gpu1", 8).startswith(" ✖")
    assert heat.states["h05-gpu0"] is State.OK


def test_arrows_move_over_the_picture_as_it_is_drawn(look):
    _, layout = drawn(look, 78, 10)
    assert layout.beside("h01-gpu0", 1, 0) == "h01-gpu1"
    assert layout.beside("h01-gpu3", 1, 0) == "h09-gpu0"  # the next column of hosts
    assert layout.beside("h01-gpu0", -1, 0) == "h01-gpu0"
    assert layout.beside("h01-gpu2", 0, 1) == "h02-gpu2"
    assert layout.beside("h01-gpu2", 0, 99) == "h08-gpu2"
    line, column = layout.spots["h12-gpu3"]
    assert layout.at(line, column + 2).name == "h12-gpu3"
    assert layout.at(99, 0) is None
    assert layout.at(0, 999) is None


def test_several_racks_have_one_small_elevation_each(look):
    (whole,) = blocks_of(look)
    blocks = [HeatBlock(f"rack-{n}", whole.hosts, whole.by_host) for n in range(6)]
    lines, layout = drawn(look, 118, 40, blocks=blocks)
    assert sum(line.count("rack-") for line in lines) == 6
    assert lines[0].split()[:2] == ["rack-0", "rack-1"]
    assert layout.columns <= 118
    assert len(lines) <= 40
    lines, layout = drawn(look, 40, 200, blocks=blocks[:2])
    assert len(lines) > 16  # below each other where there is no room beside
    assert layout_of([], 80, 24).lines == ()


def test_a_thousand_accelerators_fit_into_a_large_terminal(kit, monkeypatch):
    monkeypatch.setattr(kit, "HOSTS", 128)
    monkeypatch.setattr(kit, "PER_HOST", 8)
    monkeypatch.setattr(kit, "WORKERS", 8 * 126)
    seen = kit.observation(failed=None)
    lines, layout = drawn(seen, 218, 45)
    assert len(lines) <= 45
    assert len(layout.spots) == 1024
    assert layout.columns <= 218


def test_the_legend_names_the_quantity_and_the_key_to_the_next():
    assert legend(POWER).startswith("power in W (m: utilisation)")
    assert legend(UTILIZATION).startswith("utilisation in % (m: temperature)")


def test_the_name_of_a_rack_is_not_repeated_by_its_hosts(look):
    (whole,) = blocks_of(look)
    block = HeatBlock("h0", whole.hosts, whole.by_host)
    assert block.label("h01") == "1"
    assert block.label("h16") == "h16"
    assert HeatBlock("", whole.hosts, whole.by_host).label("h01") == "h01"
    assert HeatBlock("h01", whole.hosts, whole.by_host).label("h01") == "h01"


def test_faults_that_are_not_in_sight_are_counted(look):
    heat = Heat(look, UTILIZATION, Marks(GLYPHS))
    layout = layout_of(blocks_of(look), 118, 40)
    line, _ = layout.spots["h03-gpu2"]
    assert heat.out_of_sight(layout, 0, 40) == ""
    assert heat.out_of_sight(layout, line + 1, 5) == "1 with a fault above"
    assert heat.out_of_sight(layout, 0, line) == "1 with a fault below"


@pytest.mark.parametrize(("width", "height"), [(156, 20), (78, 10), (36, 4)])
def test_a_spare_that_a_run_takes_is_not_drawn_as_free(look, width, height):
    heat, layout = Heat(look, UTILIZATION, Marks(GLYPHS), {"h16-gpu2": "swap-0008"}), None
    layout = layout_of(blocks_of(look), width, height)
    line, _ = layout.spots["h16-gpu2"]
    text = "".join(piece.text for piece in heat.line(layout, line, None))
    assert (text.count("s gpu") or text.count("s")) == 3
    assert text.count("◐") == 1
    assert ("◐ gpu2 swap-0008" in text) == (width == 156)
    assert not heat.out_of_sight(layout, line, 1).endswith("below"), "it has no fault"
