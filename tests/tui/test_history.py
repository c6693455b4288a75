"""Readings over time without a screen: what was seen is remembered, joined with what is kept, and drawn."""

import math
import queue
import threading
import time
from dataclasses import replace

import pytest

from lumctl.errors import UsageError
from lumctl.health.states import State
from lumctl.store.packed_hours import Point
from lumctl.tui.sources import Sources
from lumctl.tui.threads.readers import HistoryAsker
from lumctl.tui.views.history import History, Ring, Series, joined, nothing_kept
from lumctl.tui.views.plot_curves import Curve, PlotEvent, curves_of, events_of
from lumctl.tui.views.readings import Limit, readings_of
from lumctl.tui.views.records import Line, RecordedLook, Records
from lumctl.tui.widgets.gauges import ASCII_STEPS, columns, sparkline
from lumctl.tui.widgets.plot import ZOOMS, plot, scale_of

GPU, LANE, LOST = "r1-h1-g0", "r1-h1-g0-l0", "r1-h2-g1"
NOW = 1_795_000_000.0


def minute(back, value, **changed):
    return Point(**{"at": NOW - back * 60, "low": value, "mean": value, "high": value, **changed})


# -- remembered -------------------------------------------------------------------------------------------------------


def test_what_was_seen_is_remembered_by_name(kit):
    ring = Ring()
    for seconds in range(0, 30, 2):
        ring.add(kit.observation(at=kit.START + seconds))
    temperature = ring.series(GPU)["temperature"]
    assert [point.at - kit.START for point in temperature] == [0, 6, 12, 18, 24]
    assert {point.mean for point in temperature} == {58.0}
    assert ring.series(LANE)["receives"][0].mean == pytest.approx(-4.2)
    assert ring.series(LOST) == {}
    assert ring.series(f"{LOST}-l0")["receives"][0].mean == -math.inf
    assert ring.series("nobody") == {}


def test_a_reading_that_is_too_old_is_a_gap(kit):
    ring, first = Ring(), kit.observation()
    ring.add(first)
    ring.add(replace(first, at=kit.START + 31))
    assert len(ring.series(GPU)["temperature"]) == 1


def test_memory_is_bounded_and_another_time_begins_anew(kit):
    ring = Ring(most_s=50, step_s=5)
    for seconds in range(0, 200, 5):
        ring.add(kit.observation(at=kit.START + seconds))
    assert len(ring.series(GPU)["power"]) == 10
    ring.add(kit.observation(at=kit.START))
    assert len(ring.series(GPU)["power"]) == 1


def test_every_look_of_the_sources_is_remembered(stage):
    sources = Sources(stage.observe)
    sources.look()
    assert sources.readings(GPU, 900).of("power")[0].mean == 612.5


# -- joined -----------------------------------------------------------------------------------------------------------


def test_what_was_seen_takes_over_where_it_begins(kit):
    ring = Ring()
    ring.add(kit.observation(at=NOW - 90))
    kept = (Series("temperature", "C", (minute(3, 40.0), minute(2, 41.0), minute(1, 42.0))),)
    history = joined(lambda *_: kept, ring, GPU, 900)
    assert [point.mean for point in history.of("temperature")] == [40.0, 41.0, 58.0]
    assert history.series[0].unit == "C"
    assert history.of("nothing") == ()


def test_a_store_that_cannot_be_read_is_told_and_what_was_seen_stands(kit):
    ring = Ring()
    ring.add(kit.observation())

    def fails(*_):
        raise UsageError("the store is gone", hint="move it back")

    history = joined(fails, ring, GPU, 900)
    assert history.trouble == "the store is gone (hint: move it back)"
    assert history.of("temperature")
    assert joined(nothing_kept, Ring(), GPU, 900).series == ()


# -- now --------------------------------------------------------------------------------------------------------------


def test_readings_have_their_value_their_age_and_their_limits(kit):
    seen = kit.observation()
    readings = {reading.name: reading for reading in readings_of(seen, GPU)}
    assert readings["temperature"].text == "58 C"
    assert readings["temperature"].limits == (Limit("slows at", 87),)
    assert readings["memory used"].text == "71.0 GiB"
    assert readings["memory used"].nearest == Limit("of", 81920)
    assert readings["ECC uncorrectable"].nearest is None
    received = readings_of(seen, f"{LOST}-l0")[0]
    assert (received.name, received.text) == ("receives", "dark")
    assert received.limits == (Limit("low alarm", -14.0),)
    assert readings_of(seen, LOST) == readings_of(seen, "mesh1") == ()


def test_a_module_s_own_readings_are_kept_with_the_limits_of_their_kind(kit):
    seen = kit.observation()
    host = seen.snapshot.hosts["r1-h1"]
    limits = {"temperature_high_alarm": 75.0, "bias_high_warning": 10.0, "rx_power_low_alarm": -14.0}
    optics = {n: replace(r, temperature_c=41.5, bias_ma=7.25, thresholds=limits) for n, r in host.optics.items()}
    look = replace(
        seen, snapshot=replace(seen.snapshot, hosts={**seen.snapshot.hosts, "r1-h1": replace(host, optics=optics)})
    )
    bias, module = readings_of(look, LANE)[-2:]
    assert (bias.name, bias.text, bias.nearest) == ("laser bias", "7.25 mA", Limit("high warning", 10.0))
    assert (module.name, module.text, module.nearest) == ("module temperature", "41.5 C", Limit("high alarm", 75.0))
    ring = Ring()
    ring.add(look)
    assert ring.series(LANE)["module temperature"][0].mean == pytest.approx(41.5)
    assert "laser bias" not in ring.series(f"{LOST}-l0")  # a host that does not say it


def test_the_limit_that_is_shown_is_the_nearest(kit):
    seen = kit.observation()
    host = seen.snapshot.hosts["r1-h1"]
    limits = {"rx_power_low_alarm": -14.0, "rx_power_high_alarm": 3.0}
    optics = {name: replace(read, thresholds=limits) for name, read in host.optics.items()}
    hosts = {**seen.snapshot.hosts, "r1-h1": replace(host, optics=optics)}
    received = readings_of(replace(seen, snapshot=replace(seen.snapshot, hosts=hosts)), LANE)[0]
    assert received.nearest == Limit("high alarm", 3.0)


def curve(points, *limits):
    return Curve("a reading", "", tuple(points), limits)


# -- drawn ------------------------------------------------------------------------------------------------------------


def test_a_sparkline_rises_and_a_gap_is_a_gap():
    points = [minute(15 - n, float(n)) for n in range(15) if n != 7]
    drawn = sparkline(points, NOW, seconds=900, width=15, scale=(0, 14))
    assert drawn == "▁▁▂▃▃▃▄ ▅▅▆▇▇▇█"
    plain = sparkline(points, NOW, seconds=900, width=15, scale=(0, 14), ascii_only=True)
    assert plain[7] == " "
    assert set(plain) == {*ASCII_STEPS, " "}


def test_two_sparklines_of_one_quantity_compare():
    def drawn(celsius):
        points = [minute(n, celsius + n % 2) for n in range(1, 16)]
        return set(sparkline(points, NOW, seconds=900, width=15, scale=(0, 110)))

    assert (drawn(30.0), drawn(60.0), drawn(108.0)) == ({"▃"}, {"▅"}, {"█"})


def test_a_count_has_no_end_and_rises_from_nothing():
    points = [minute(n, 0.0 if n > 7 else 3.0) for n in range(1, 16)]
    assert sparkline(points, NOW, seconds=900, width=15, scale=(0, None)) == "▁" * 8 + "█" * 7
    assert set(sparkline([minute(1, 0.0)], NOW, seconds=60, width=4, scale=(0, None))) == {"▁"}
    assert sparkline([], NOW, seconds=900, width=15, scale=(0, None)) == " " * 15


def test_no_light_has_a_mark_of_its_own():
    points = [minute(2, -4.0), minute(1, -math.inf)]
    assert sparkline(points, NOW, seconds=120, width=2, scale=(-30, 5)) == "▆x"


def test_a_column_holds_the_least_and_the_greatest_of_its_time():
    first, second = columns([minute(4, 2.0, low=1.0), minute(3, 6.0, high=9.0), minute(1, 3.0)], NOW - 240, NOW, 2)
    assert (first.low, first.mean, first.high) == (1.0, 4.0, 9.0)
    assert second.mean == 3.0


def test_a_scale_holds_all_points_and_limits_and_ends_at_round_values():
    scale = scale_of([minute(1, 58.3), minute(2, 61.0)], [87.0], 15)
    assert (scale.low, scale.high, scale.dark) == (50.0, 90.0, False)
    assert list(scale.ticks()) == [50.0, 60.0, 70.0, 80.0, 90.0]
    assert scale_of([minute(1, -4.0), minute(2, -math.inf)], [], 15).dark
    still = scale_of([minute(1, 0.0)], [], 15)
    assert (still.low, still.high) == (0.0, 0.5)


@pytest.mark.parametrize("zoom", ZOOMS, ids=[zoom.words for zoom in ZOOMS])
@pytest.mark.parametrize("size", [(110, 24), (80, 18), (12, 4)])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_plot_has_just_the_size_that_it_is_given(zoom, size, ascii_only):
    points = [minute(n, 50.0 + n % 7) for n in range(40, 0, -1)]
    text = plot([curve(points, Limit("slows at", 87.0))], NOW, zoom, "C", size, ascii_only=ascii_only).plain
    lines = text.splitlines()
    assert len(lines) == max(size[1], 5)
    assert max(map(len, lines)) <= max(size[0], 19)
    assert text.isascii() is ascii_only


def test_a_plot_tells_the_limit_the_values_and_the_time(monkeypatch):
    monkeypatch.setattr("time.localtime", time.gmtime)
    points = [minute(n, 50.0 + n) for n in range(15, 0, -1)]
    text = plot([curve(points, Limit("slows at", 87.0))], NOW, ZOOMS[1], "C", (80, 18), ascii_only=True).plain
    assert "--- slows at 87 C" in text
    assert "     90 |" in text
    assert "10:54" in text.splitlines()[-1]


def test_lost_light_lies_at_the_bottom_and_is_called_dark():
    points = [minute(2, -4.0), minute(1, -math.inf)]
    lines = plot([curve(points)], NOW, ZOOMS[0], "dBm", (60, 12), ascii_only=True).plain.splitlines()
    assert lines[-3].startswith("   dark |")
    assert lines[-3].endswith("*")


def test_what_lies_outside_the_time_does_not_stretch_the_scale():
    points = [minute(600, 1000.0), minute(1, 50.0)]
    assert "1000" not in plot([curve(points)], NOW, ZOOMS[0], "C", (60, 12)).plain


# -- several curves ---------------------------------------------------------------------------------------------------


def histories(**values):
    kept = {"temperature": "C", "power": "W", "NVLink sends": "KB/s"}
    return History(tuple(Series(name, kept[name], (minute(2, v), minute(1, v))) for name, v in values.items()))


def test_curves_in_one_unit_have_their_values_and_of_large_ones_the_larger_unit(kit):
    read = {name: histories(**{"NVLink sends": 2e8}) for name in (GPU, "r1-h1-g1")}
    found = curves_of(kit.observation(), read, (GPU, "r1-h1-g1"), ("NVLink sends",), NOW - 900)
    assert (found.unit, [curve.label for curve in found.curves]) == ("GB/s", [GPU, "r1-h1-g1"])
    assert found.curves[0].points[0].mean == 200.0
    assert found.curves[0].now == "unknown"


def test_curves_in_several_units_are_shares_of_their_scales(kit):
    found = curves_of(
        kit.observation(), {GPU: histories(temperature=55.0, power=350.0)}, (GPU,), ("temperature", "power"), NOW - 900
    )
    assert (found.unit, [curve.label for curve in found.curves]) == ("%", ["temperature", "power"])
    assert [curve.points[0].mean for curve in found.curves] == pytest.approx([50.0, 50.0])


def test_more_curves_than_can_be_told_apart_are_counted(kit):
    names = tuple(f"r1-h{host}-g{gpu}" for host in (1, 3, 4) for gpu in range(4))
    found = curves_of(kit.observation(), {}, names, ("temperature",), NOW - 900)
    assert (len(found.curves), found.omitted) == (8, 4)


def test_incidents_are_those_of_what_is_shown_and_their_first_moment_counts_once(kit):
    def line(component, back, state):
        return Line(kit.START - back, "r1", "health", f"{component} is {state}", state, component=component)

    log = (
        line(LOST, 96, State.FAILED),
        line(LOST, 600, State.DEGRADED),
        line(LOST, 500, State.OK),
        line("r1-h1-g0", 300, State.FAILED),
        line("r1-h2", 700, State.FAILED),
        line(LOST, 5000, State.FAILED),
    )
    events = events_of(RecordedLook(kit.observation(), Records(log=log)), (LOST,), kit.START - 900)
    assert [round(kit.START - event.at) for event in events] == [700, 600, 95]
    assert "nvidia-smi does not list it" in events[-1].text


def test_each_of_several_curves_bears_its_letter_and_events_their_digits():
    curves = [curve([minute(n, high + n) for n in range(4, 0, -1)]) for high in (40.0, 60.0)]
    events = [PlotEvent(NOW - 200, "a host went away", State.FAILED), PlotEvent(NOW - 60, "a fan died", State.DEGRADED)]
    text = plot(curves, NOW, ZOOMS[0], "C", (90, 16), events=events, ascii_only=True).plain
    body, tail = text.splitlines()[:-4], text.splitlines()[-4:]
    first = {letter: next(at for at, line in enumerate(body) if letter in line) for letter in "AB"}
    assert first["B"] < first["A"]
    axis = tail[0]
    assert [axis.index(digit) - 9 for digit in "12"] == [int((300 - back) / 300 * 81) for back in (200, 60)]
    assert [line[:2] for line in tail[2:]] == ["1 ", "2 "]
    assert tail[3].endswith("a fan died")
    assert len(text.splitlines()) == 16


# -- asked for --------------------------------------------------------------------------------------------------------


def test_of_questions_that_come_while_one_is_answered_only_the_newest_is_put():
    answered, may_answer, began = queue.SimpleQueue(), threading.Event(), threading.Event()

    def read(_component, _seconds):
        began.set()
        assert may_answer.wait(20)
        return History()

    asker = HistoryAsker(read, answered.put)
    asker.ask((GPU,), 300)
    assert began.wait(20)
    asker.ask((GPU,), 900)
    asker.ask((GPU, LOST), 3600)
    may_answer.set()
    assert [answered.get(timeout=20).seconds for _ in range(2)] == [300, 3600]
    asker.ask((GPU,), 60)
    last = answered.get(timeout=20)
    assert (last.seconds, set(last.histories)) == (60, {GPU})
