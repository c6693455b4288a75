"""The themes: every state can be read on every background, and told apart by eyes that lack a cone."""

from itertools import combinations

import pytest

from lumctl.errors import UsageError
from lumctl.health.states import State
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STALE_STYLE, STATE_STYLES, TARGET_STYLES
from lumctl.tui.look.themes import SIXTEEN, THEMES, rich_theme, theme_name
from lumctl.tui.views.heat_map import LEVELS

OWN_COLOURS = [name for name in THEMES if name != SIXTEEN]
# Machado, Oliveira and Fernandes 2009, severity 1: what linear RGB looks like without the red or the green cone.
SIGHTS = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
APART = 12
"""A difference in CIE 1976 Lab that is seen at a glance; 2.3 can just be noticed side by side."""


def linear(colour):
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def luminance(rgb):
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def contrast(one, other):
    """The ratio of WCAG 2."""
    darker, lighter = sorted((luminance(linear(one)), luminance(linear(other))))
    return (lighter + 0.05) / (darker + 0.05)


def lab(colour, sight):
    rgb = [min(1, max(0, sum(m * c for m, c in zip(row, linear(colour), strict=True)))) for row in sight]
    x = (0.4124 * rgb[0] + 0.3576 * rgb[1] + 0.1805 * rgb[2]) / 0.95047
    z = (0.0193 * rgb[0] + 0.1192 * rgb[1] + 0.9505 * rgb[2]) / 1.08883
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, luminance(rgb), z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def foreground(theme, style):
    return rich_theme(theme).styles[style].color.get_truecolor().hex


def backgrounds(theme):
    """What stands behind a table, a bar, a tab and the line under the cursor."""
    return [theme.background, theme.surface, theme.panel, theme.variables["block-cursor-background"]]


@pytest.mark.parametrize("name", OWN_COLOURS)
@pytest.mark.parametrize("style", [*STATE_STYLES.values(), STALE_STYLE, HEADING_STYLE])
def test_a_state_stands_out_from_every_background(name, style):
    theme = THEMES[name]
    ratios = [contrast(foreground(theme, style), behind) for behind in backgrounds(theme)]
    assert min(ratios) >= 4.5, ratios


@pytest.mark.parametrize("name", OWN_COLOURS)
def test_other_text_can_be_read(name):
    theme = THEMES[name]
    assert contrast(foreground(theme, QUIET_STYLE), theme.background) >= 4.5
    for text, behind in (
        (theme.foreground, theme.background),
        (theme.accent, theme.panel),
        (theme.warning, theme.panel),
        (theme.background, theme.error),
        (theme.variables["block-cursor-foreground"], theme.variables["block-cursor-background"]),
    ):
        assert contrast(text, behind) >= 4.5, (text, behind)
    for style in TARGET_STYLES.values():
        target = rich_theme(theme).styles[style]
        assert contrast(target.color.get_truecolor().hex, target.bgcolor.get_truecolor().hex) >= 4.5


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("name", OWN_COLOURS)
def test_states_stay_apart_without_a_cone(name, sight):
    for one, other in combinations(State, 2):
        a, b = (lab(foreground(THEMES[name], STATE_STYLES[state]), SIGHTS[sight]) for state in (one, other))
        distance = sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) ** 0.5
        assert distance >= APART, (one, other, distance)


def test_with_sixteen_colours_only_those_of_the_terminal_are_sent(stage, kit):
    stage.seen = kit.with_states(
        kit.observation(), dict(zip(["r1-h1-g0", "r1-h1-g1", "r1-h1-g2"], list(State)[1:4], strict=True))
    )

    async def script(pilot):
        pilot.app.show_in(SIXTEEN)
        for key in ("2", "question_mark"):
            await pilot.press(key)
            await pilot.pause()
            strips = pilot.app.screen._compositor.render_strips()
            colours = {
                colour
                for strip in strips
                for segment in strip
                if segment.style
                for colour in (segment.style.color, segment.style.bgcolor)
                if colour is not None
            }
            assert colours
            assert all(colour.is_default or colour.is_system_defined for colour in colours), colours

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize(
    ("named", "environ", "expected"),
    [
        (None, {"TERM": "xterm-256color"}, "dark"),
        (None, {"TERM": "xterm", "COLORTERM": "truecolor"}, "dark"),
        (None, {"TERM": "linux"}, SIXTEEN),
        (None, {"TERM": "xterm"}, SIXTEEN),
        (None, {"TERM": "linux", "LUMCTL_THEME": "contrast"}, "contrast"),
        ("light", {"TERM": "linux", "LUMCTL_THEME": "contrast"}, "light"),
    ],
)
def test_which_theme_is_meant(named, environ, expected):
    assert theme_name(named, environ) == expected


def test_an_unknown_theme_is_answered_with_the_nearest():
    with pytest.raises(UsageError) as raised:
        theme_name("lihgt", {})
    assert raised.value.message == "no theme 'lihgt'"
    assert raised.value.hint == "did you mean light?"


@pytest.mark.parametrize(
    ("name", "keys"),
    [("light", ("2",)), (SIXTEEN, ("2", "enter")), ("classic", ())],
    ids=["table-light", "component-ansi", "rack-classic"],
)
def test_themes_look_as_before(looks_as_before, stage, kit, name, keys):
    stage.seen = kit.with_states(
        kit.observation(), dict(zip(["r1-h1-g0", "r1-h1-g1", "r1-h1-g2"], list(State)[1:4], strict=True))
    )

    async def show(pilot):
        pilot.app.show_in(name)
        await pilot.pause()

    assert looks_as_before(stage, *keys, size=(100, 24), then=show)


def test_what_is_shown_already_follows_the_theme(stage, kit):
    async def script(pilot):
        await pilot.press("2", "enter")
        await pilot.pause()
        pilot.app.show_in("light")
        await pilot.pause()
        sent = {
            segment.style.color.get_truecolor().hex
            for strip in pilot.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style and segment.style.color
        }
        colours = THEMES["light"].variables
        assert {colours["state-failed"], colours["heading"], colours["quiet"]} <= sent
        assert THEMES["dark"].variables["state-failed"] not in sent

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize("name", OWN_COLOURS)
def test_numbers_can_be_read_on_every_heat_and_what_fails_stands_out_from_it(name):
    styles = rich_theme(THEMES[name]).styles
    heats = [styles[f"$heat-{level}"] for level in range(LEVELS)]
    fills = [styles[f"fill {state}"] for state in (State.FAILED, State.DEGRADED)]
    for style in (*heats, *fills):
        assert contrast(style.color.get_truecolor().hex, style.bgcolor.get_truecolor().hex) >= 4.5
    behind = [luminance(linear(style.bgcolor.get_truecolor().hex)) for style in heats]
    assert behind == sorted(behind, reverse=not THEMES[name].dark)
    for fill in fills:
        assert contrast(fill.bgcolor.get_truecolor().hex, heats[-1].bgcolor.get_truecolor().hex) >= 3


def test_of_sixteen_colours_heat_has_no_background_and_what_fails_is_reversed():
    styles = rich_theme(THEMES[SIXTEEN]).styles
    assert all(styles[f"$heat-{level}"].bgcolor is None for level in range(LEVELS))
    assert styles["fill failed"].reverse
