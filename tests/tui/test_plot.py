"""Readings over time on the screen: beside each reading of a component, and as a plot."""

import threading
import time

import pytest

from lumctl.errors import UsageError
from lumctl.store.packed_hours import Point
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.plot import PlotScreen
from lumctl.tui.views.history import Series
from lumctl.tui.widgets.gauges import BLOCKS

GPU, LANE = "r1-h1-g0", "r1-h1-g0-l0"


@pytest.fixture(autouse=True)
def _in_greenwich(monkeypatch):
    monkeypatch.setattr("time.localtime", time.gmtime)


class Kept:
    """A store's readings: a week of minutes; slow, failing or empty on command."""

    def __init__(self, now):
        self.now = now
        self.asked = []
        self.error = None
        self.empty = False
        self.may_answer = threading.Event()
        self.may_answer.set()

    def __call__(self, component, seconds):
        self.asked.append((component, seconds))
        assert self.may_answer.wait(20)
        if self.error is not None:
            raise self.error
        if self.empty:
            return ()
        if component == LANE:
            return (self._series("receives", "dBm", seconds, lambda n: -4.0 - n % 3 / 10),)
        return (
            self._series("temperature", "C", seconds, lambda n: 50.0 + (n * 7 % 13) + 15 * int(component[-1])),
            self._series("power", "W", seconds, lambda n: 600.0 + n % 5),
        )

    def _series(self, name, unit, seconds, value):
        minutes = [n for n in range(int(seconds // 60), 0, -1) if n % 60 not in {9, 10}]
        points = (Point(self.now - n * 60, value(n) - 1, value(n), value(n) + 1) for n in minutes)
        return Series(name, unit, tuple(points))


@pytest.fixture(autouse=True)
def kept(stage, kit):
    stage.sources["history"] = Kept(kit.START)
    return stage.sources["history"]


def readings_read(pilot):
    screen = pilot.app.screen
    return isinstance(screen, PlotScreen) and "reading..." not in str(screen.query_one("#plot-heading").content)


async def open_plot(pilot, kit, component=GPU):
    await pilot.press("colon")
    pilot.app.focused.insert_text_at_cursor(component)
    await pilot.press("enter")
    await pilot.pause()
    if not isinstance(pilot.app.screen, DetailScreen):
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
    await pilot.press("h")
    await kit.until(pilot, lambda: readings_read(pilot))


def test_a_component_shows_the_last_minutes_beside_each_reading(stage, kit, kept):
    async def script(pilot):
        await pilot.press("2", "down", "enter")
        await kit.until(pilot, lambda: BLOCKS[3] in kit.screen_text(pilot.app))
        lines = {line.split()[0]: line for line in kit.screen_text(pilot.app).splitlines() if line.strip()}
        assert "58 C" in lines["temperature"]
        assert "slows at 87 C" in lines["temperature"]
        assert lines["temperature"].endswith("0 s")
        assert not set(lines["utilisation"]) & set(BLOCKS[:-1])  # nothing is kept of it, which is not 0
        assert kept.asked[0] == (GPU, 900.0)

    kit.drive(stage.dashboard(), script, size=(80, 30))


def test_a_store_that_cannot_be_read_is_one_line_and_the_readings_stand(stage, kit, kept):
    kept.error = UsageError("the store is gone", hint="move it back")

    async def script(pilot):
        await pilot.press("2", "down", "enter")
        said = "could not read the history: the store is gone (hint: move it back)"
        await kit.until(pilot, lambda: said in kit.screen_text(pilot.app))
        assert "58 C" in kit.screen_text(pilot.app)
        await pilot.press("h")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, PlotScreen))
        await kit.until(pilot, lambda: said in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)


def test_one_reading_at_a_time_and_both_ways_round(stage, kit):
    async def script(pilot):
        await open_plot(pilot, kit)
        shown = []
        for key in ("]", "left_square_bracket", "left", "right"):
            await pilot.press({"]": "right_square_bracket"}.get(key, key))
            shown.append(kit.screen_text(pilot.app).splitlines()[1].split("  ")[0].strip())
        assert shown == ["power in W", "temperature in C", "ECC uncorrectable", "temperature in C"]

    kit.drive(stage.dashboard(), script)


def test_zooming_reads_more_and_ends_at_seven_days_and_five_minutes(stage, kit, kept):
    async def script(pilot):
        await open_plot(pilot, kit)
        spans = []
        for key in (*["minus"] * 5, *["plus"] * 6):
            await pilot.press(key)
            await kit.until(pilot, lambda: readings_read(pilot))
            spans.append(kit.screen_text(pilot.app).splitlines()[1].partition("last ")[2].split("  ")[0])
        assert spans == ["1 h", "6 h", "1 d", "7 d", "7 d", "1 d", "6 h", "1 h", "15 min", "5 min", "5 min"]
        assert (GPU, 7 * 86_400) in kept.asked

    kit.drive(stage.dashboard(), script)


def test_while_it_is_read_that_is_said_and_no_key_waits(stage, kit, kept):
    async def script(pilot):
        await open_plot(pilot, kit)
        kept.may_answer.clear()
        await pilot.press("minus")
        assert "last 1 h  reading..." in kit.screen_text(pilot.app)
        await pilot.press("right")
        assert "power in W" in kit.screen_text(pilot.app)
        kept.may_answer.set()
        await kit.until(pilot, lambda: readings_read(pilot))

    kit.drive(stage.dashboard(), script)


def test_how_old_the_newest_point_is(stage, kit):
    async def script(pilot):
        await open_plot(pilot, kit)
        stage.now += 200
        pilot.app.screen._show()
        assert "newest 3 min ago" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_a_limit_is_a_line_with_its_words(stage, kit):
    async def script(pilot):
        await open_plot(pilot, kit, LANE)
        assert "--- low alarm -14.0 dBm" in kit.screen_text(pilot.app)
        assert kit.screen_text(pilot.app).isascii()

    kit.drive(stage.dashboard(ascii_only=True), script)


def test_what_has_no_history_says_why(stage, kit, kept):
    async def script(pilot):
        await open_plot(pilot, kit, "r1-h1-g1")
        kept.empty = True
        await pilot.press("right", "minus")
        await kit.until(pilot, lambda: readings_read(pilot))
        await pilot.press("escape", "escape")
        await open_plot(pilot, kit, "r1-h3")
        assert "r1-h3 has no readings over time" in kit.screen_text(pilot.app)
        assert await pilot.press("right", "minus", "escape") is None

    kit.drive(stage.dashboard(), script)


def test_the_accelerators_of_a_host_are_in_one_plot_and_the_one_alone_again(stage, kit, kept):
    async def script(pilot):
        await open_plot(pilot, kit)
        await pilot.press("a")
        await kit.until(pilot, lambda: readings_read(pilot) and ("r1-h1-g3", 900.0) in kept.asked)
        assert kit.screen_text(pilot.app).splitlines()[2].split("   ") == [
            *(" A r1-h1-g0 58 C", "B r1-h1-g1 59 C", "C r1-h1-g2 60 C", "D r1-h1-g3 61 C"),
        ]
        await pilot.press("a")
        await kit.until(pilot, lambda: readings_read(pilot))
        assert "now 58 C" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_readings_of_other_units_share_a_plot_in_percent_of_their_scales(stage, kit):
    async def script(pilot):
        await open_plot(pilot, kit)
        await pilot.press("m", "right_square_bracket")
        shown = kit.screen_text(pilot.app)
        assert "temperature, power in % of each one's scale" in shown
        assert "A temperature 58 C   B power 612.5 W" in shown
        await pilot.press("left_square_bracket", "m", "right_square_bracket")
        assert "power in W" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_all_marked_rows_are_in_one_plot(stage, kit):
    async def script(pilot):
        await pilot.press("2", "m", "m", "h")
        await kit.until(pilot, lambda: readings_read(pilot))
        shown = kit.screen_text(pilot.app).splitlines()
        assert shown[0].startswith(f" {kit.LOST}, r1-h1-g0 over time")
        assert f"A {kit.LOST} unknown   B r1-h1-g0 58 C" in shown[2]
        await pilot.press("a")
        assert "its host has no other readings to show" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_an_incident_is_marked_at_its_time_with_its_name(stage, kit):
    async def script(pilot):
        await open_plot(pilot, kit, kit.LOST)
        lines = kit.screen_text(pilot.app).splitlines()
        listed = next(line for line in lines if line.startswith(" 1 "))
        assert f"{kit.LOST}: nvidia-smi does not list it" in listed
        axis = next(line for line in lines if "+-" in line)
        assert all(line[axis.index("1")] in "!-*:s" for line in lines[4:12])

    kit.drive(stage.dashboard(ascii_only=True), script)


# -- pictures ---------------------------------------------------------------------------------------------------------


def test_the_picture_of_a_plot(looks_as_before, stage, kit):
    async def show(pilot):
        await open_plot(pilot, kit)

    assert looks_as_before(stage, size=(110, 30), then=show)


def test_a_plot_in_a_small_terminal(shows, stage, kit):
    async def show(pilot):
        await open_plot(pilot, kit)

    lines = shows(stage, size=(80, 24), then=show).splitlines()
    assert lines[:2] == [
        "r1-h1-g0 over time TARGET sim",
        "temperature in C 1 of 9 now 58 C last 15 min newest 0 s ago",
    ]
    assert [line.split()[0] for line in lines[2:-3] if line[0].isdigit()] == ["90", "80", "70", "60", "50", "40"]
    assert lines[3].endswith("─ slows at 87 C")
    assert lines[-2:] == [
        "10:54 10:57 11:00 11:03 11:06",
        "esc back ] next reading m add a whole host + nearer ? all keys q quit",
    ]


def test_the_picture_of_a_day_in_ascii(reads_as_before, stage, kit):
    async def show(pilot):
        await open_plot(pilot, kit, LANE)
        await pilot.press("minus", "minus", "minus")
        await kit.until(pilot, lambda: readings_read(pilot))

    assert reads_as_before(stage, ascii_only=True, then=show)


def test_light_that_was_lost_lies_at_dark_below_the_alarm(shows, stage, kit, kept):
    kept.empty = True

    async def show(pilot):
        await open_plot(pilot, kit, f"{kit.LOST}-l0")

    lines = shows(stage, then=show).splitlines()
    assert lines[1] == "receives in dBm 1 of 2 now dark last 15 min newest 0 s ago"
    alarm = next(n for n, line in enumerate(lines) if line.endswith("─ low alarm -14.0 dBm"))
    dark = lines.index("dark │ ⢀")
    assert lines[alarm].startswith("-14 │")
    assert alarm < dark


def test_nothing_kept_is_said(shows, stage, kit, kept):
    kept.empty = True

    async def show(pilot):
        await open_plot(pilot, kit, kit.LOST)

    shown = shows(stage, then=show)
    assert shown.startswith("r1-h2-g1 over time TARGET sim\nno stored reading, and none now: lumctl watch stores")
    assert "│" not in shown


@pytest.fixture
def minutes(kit):
    """Wait until the last minutes stand beside the readings."""

    async def show(pilot):
        await kit.until(pilot, lambda: BLOCKS[3] in kit.screen_text(pilot.app))

    return show


def test_the_picture_of_a_component_with_its_last_minutes(reads_as_before, stage, minutes):
    assert reads_as_before(stage, "2", "down", "enter", size=(110, 36), then=minutes)


def test_a_component_with_its_last_minutes_in_a_small_terminal(shows, stage, minutes):
    lines = shows(stage, "2", "down", "enter", size=(80, 24), then=minutes).splitlines()
    assert lines[3] == "heat, power and clocks, and the last 15 minutes"
    assert lines[4] == "temperature 58 C ██████░░│░░ slows at 87 C ▄▄▅▅ ▅▅▅▅▄▄ 0 s"
    assert lines[5] == "power 612.5 W ██████████░ limit 700 W ▇▇▇▇ ▇▇▇▇▇▇ 0 s"
    assert "memory temperature unknown: nvidia-smi does not report it" in lines
    assert "PCIe sends 1.9 GB/s ▏░░░░░░░░░░ of 63.0 GB/s 0 s" in lines
    assert lines[-1] == "esc back h history s shell l log y ticket ? help q quit"


@pytest.fixture
def whole_host(kit, kept):
    """Plot the accelerators of the lost one's host."""

    async def show(pilot):
        await open_plot(pilot, kit, kit.LOST)
        await pilot.press("a")
        await kit.until(pilot, lambda: readings_read(pilot) and ("r1-h2-g3", 900.0) in kept.asked)

    return show


def test_the_picture_of_the_accelerators_of_a_host_with_an_incident(reads_as_before, stage, whole_host):
    assert reads_as_before(stage, size=(80, 24), then=whole_host)


def test_the_accelerators_of_a_host_with_an_incident_in_ascii(shows, stage, whole_host):
    lines = shows(stage, ascii_only=True, size=(80, 24), then=whole_host).splitlines()
    assert lines[2] == "A r1-h2-g1 unknown B r1-h2-g0 58 C C r1-h2-g2 60 C D r1-h2-g3 61 C"
    plotted = "".join(lines[3:19])
    assert all(letter in plotted for letter in "ABCD!")
    assert lines[-2].startswith("1 11:05:05 r1-h2-g1: nvidia-smi does not list it; XID 79")
    assert "--1---" in lines[-4]
