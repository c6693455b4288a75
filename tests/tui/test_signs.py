"""Every sign is explained where it is seen, or in the help: of states, of light, of marked and folded lines."""

import pytest

from lumctl.cli.output import ASCII_GLYPHS, GLYPHS
from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.look.signs import other_signs, state_signs, with_states

SIZES = ((80, 24), (120, 36))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_column_of_a_circuits_ends_says_which_end_sends(stage, kit, size, ascii_only):
    async def script(pilot):
        await pilot.press("3")
        titles = next(line for line in kit.screen_text(pilot.app).splitlines() if "CIRCUIT" in line and "HEARS" in line)
        assert titles.rstrip().endswith("TX -> RX")

    kit.drive(stage.dashboard(ascii_only=ascii_only), script, size=size)


@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_help_lists_every_sign_right_after_the_keys_of_the_screen(stage, kit, ascii_only):
    marks = Marks(ASCII_GLYPHS if ascii_only else GLYPHS, ascii_only=ascii_only)

    async def script(pilot):
        await pilot.press("question_mark")
        lines = [line.strip() for line in kit.screen_text(pilot.app).splitlines()]
        here, others = lines.index("other signs"), lines.index("when choosing columns")
        assert lines.index("states") < here < others, "the keys of other screens come first"
        for sign, told in (*state_signs(marks), *other_signs(marks)):
            assert any(line.startswith(sign.plain) and line.endswith(told) for line in lines[:others]), sign
        assert not ascii_only or "\n".join(lines).isascii()

    kit.drive(stage.dashboard(ascii_only=ascii_only), script, size=(140, 320))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_help_begins_with_the_sign_of_each_state(stage, kit, size):
    async def script(pilot):
        await pilot.press("question_mark")
        assert "● ok   ◐ degraded   ✖ failed   ○ unknown   – disabled" in kit.screen_text(pilot.app).splitlines()[1]

    kit.drive(stage.dashboard(), script, size=size)


def test_every_sign_of_a_state_and_of_the_picture_has_a_meaning():
    marks = Marks(GLYPHS)
    assert [sign.plain for sign, _ in state_signs(marks)] == [marks.state(state) for state in GLYPHS]
    signs = " ".join(sign.plain for sign, _ in other_signs(marks)).split()
    assert {marks.arrow(duplex=True), marks.arrow(duplex=False), ">", "*", "s", "-"} <= set(signs)
    plain = Marks(ASCII_GLYPHS, ascii_only=True)
    signs = " ".join(sign.plain for sign, _ in other_signs(plain)).split()
    assert {plain.arrow(duplex=True), plain.arrow(duplex=False), ">", "*", "s", "-"} <= set(signs)


@pytest.mark.parametrize(
    ("width", "shown", "line"),
    [
        (80, tuple(State), "legend, ✖ failed, ◐ degraded, ○ unknown, – disabled"),
        (31, tuple(State), "legend, ✖ failed, ◐ degraded"),
        (80, (State.OK, State.UNKNOWN), "legend, ○ unknown"),
        (80, (State.OK,), "legend"),
        (10, (State.FAILED,), "legend"),
    ],
)
def test_the_signs_that_are_seen_stand_beside_the_legend_as_far_as_they_fit(width, shown, line):
    is_whole = width not in {31, 10}
    assert with_states("legend", Marks(GLYPHS), shown, width) == (line, is_whole)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("state", "signs"),
    [
        ("all-ok", ""),
        ("dead-host", ", ○ unknown"),
        ("dark-rack", ", ○ unknown"),
        ("dark-transmitter", ", ✖ failed, ◐ degraded"),
        ("swap-under-way", ", ✖ failed, ◐ in progress"),
    ],
)
def test_the_line_above_the_picture_explains_the_signs_that_are_seen_there(rack64, kit, state, signs, size):
    def line(pilot):
        return next(line for line in kit.screen_text(pilot.app).splitlines() if "linked to >" in line).rstrip()

    async def script(pilot):
        assert line(pilot).endswith(f"* linked to >{signs}")

    async def script_in_ascii(pilot):
        plain = signs.translate({ord(GLYPHS[name]): glyph for name, glyph in ASCII_GLYPHS.items()})
        assert line(pilot).endswith(f"* linked to >{plain}")

    kit.drive(rack64(state).dashboard(), script, size=size)
    kit.drive(rack64(state).dashboard(ascii_only=True), script_in_ascii, size=size)
