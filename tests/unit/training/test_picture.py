import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.fabric.drawing.image import written
from lumctl.fabric.drawing.sheet import Label, PictureLine, text_width
from lumctl.training.picture import COLOURS, About, picture
from lumctl.training.timeline import TITLES, KnownBy, Timeline, Track

ABOUT = About("4 ranks on 2 cores of a machine", "2026-11-22")
SVG = "{http://www.w3.org/2000/svg}"


def svg(measured):
    return written(picture(measured, ABOUT))


def parsed(drawn):
    return ET.fromstring(drawn)  # noqa: S314 - our own


def box(label):
    """The room of a label on the sheet: left, top, right, bottom."""
    width, half = text_width(label.text, label.size), label.size / 2
    left = label.at[0] - width / 2 if label.centred else label.at[0]
    return left, label.at[1] - half, left + width, label.at[1] + half


def points(line):
    return [line.start, *(point for curve in line.curves for point in curve)]


def require_legible(sheet):
    """Nothing leaves the sheet, no two labels meet, and no bar runs through a label."""
    labels = [item for item in sheet.items() if isinstance(item, Label)]
    for label in labels:
        left, top, right, bottom = box(label)
        assert left >= 0, label.text
        assert top >= 0, label.text
        assert right <= sheet.width, label.text
        assert bottom <= sheet.height, label.text
    for a, b in combinations(labels, 2):
        apart = box(a)[2] <= box(b)[0] or box(b)[2] <= box(a)[0] or box(a)[3] <= box(b)[1] or box(b)[3] <= box(a)[1]
        assert apart, f"{a.text!r} meets {b.text!r}"
    drawn = [line for line in sheet.items() if isinstance(line, PictureLine) and line.fill in COLOURS.values()]
    assert drawn
    for line in drawn:
        xs, ys = zip(*points(line), strict=True)
        assert 0 <= min(xs) < max(xs) <= sheet.width
        for label in labels:
            left, top, right, bottom = box(label)
            assert max(xs) <= left or right <= min(xs) or max(ys) <= top or bottom <= min(ys), label.text


def test_one_recovery_beside_the_published_one(recovered):
    sheet = picture(recovered(), ABOUT)
    require_legible(sheet)
    bars = [group.title for group in sheet.groups if group.kind == "bar"]
    assert len(bars) == 2 + 10 + 2 + 5
    assert bars[:2] == [
        "failure to circuits verified: from the failure until 130 ms",
        "failure to next step done: from the failure until 190 ms",
    ]
    assert "every receiver proved: from 80 ms until 130 ms" in bars
    assert "first iteration done: from 16.6 s until 25.6 s" in bars
    assert sheet.title == "train: h2-gpu0 lost, replaced by h5-gpu0"


def test_several_with_their_worst(recovered):
    about = About("a machine", "2026-11-22", {"verified": 1.17, "step": 1.71}, "lumctl, measured: medians of 3 runs")
    sheet = picture(recovered(2.0), about, title="30 kills")
    require_legible(sheet)
    texts = [item.text for item in sheet.items() if isinstance(item, Label)]
    assert "lumctl, measured: medians of 3 runs" in texts
    assert "380 ms (worst 1.71 s)" in texts
    assert sheet.title == "30 kills"


def test_lengths_say_when(recovered):
    """A bar ends where the axis has its time."""
    sheet = picture(recovered(step=0.1, verified=0.1, joined=0.1), ABOUT)
    marks = {
        item.text: item.at[0]
        for group in sheet.groups
        for item in group.items
        if group.kind == "marks" and isinstance(item, Label)
    }
    bar = next(group for group in sheet.groups if group.title.startswith("failure to next step done"))
    drawn = next(item for item in bar.items if isinstance(item, PictureLine))
    xs = [x for x, _ in points(drawn)]
    assert (min(xs), max(xs)) == pytest.approx((marks["t0"], marks["100 ms"]))


def test_what_took_no_time_can_be_seen(recovered):
    sheet = picture(recovered(detected=0.0, held=0.0), ABOUT)
    require_legible(sheet)
    park = next(group for group in sheet.groups if group.title.startswith("survivors park"))
    drawn = next(item for item in park.items if isinstance(item, PictureLine))
    xs = [x for x, _ in points(drawn)]
    assert max(xs) - min(xs) >= 2


@settings(max_examples=60)
@given(
    st.dictionaries(st.sampled_from(sorted(set(TITLES) - {"failure"})), st.floats(0, 5000), max_size=9),
    st.floats(1.0, 30.0),
)
def test_any_recovery_is_legible(times, slower):
    about = About("a machine", "today", {name: at * slower for name, at in times.items()})
    require_legible(picture(Timeline.since(0.0, KnownBy.DETECTION, times, job="a job"), about))


def test_the_caption_says_what_was_real(recovered):
    words = " ".join(
        item.text
        for group in picture(recovered(known_by=KnownBy.DETECTION), ABOUT).groups
        for item in group.items
        if group.kind == "caption" and isinstance(item, Label)
    )
    assert "t0 is when the failure was detected" in words
    assert "Simulated: mesh, light, transponders, hosts and GPUs." in words
    assert "Not exercised: CUDA and NCCL" in words
    assert "Published: Morphlux, figure 8c (arXiv 2508.03674v3)" in words
    assert "t0 is the time of the kill" in svg(recovered())


def test_machine_and_date_stand_in_it(recovered):
    assert "4 ranks on 2 cores of a machine; 2026-11-22" in svg(recovered())


def test_a_restart_in_place_has_no_circuits(recovered):
    timeline = recovered(planned=None, circuits=None, verified=None, about={"job": "train", "failed": ("h2-gpu0",)})
    sheet = picture(timeline, ABOUT)
    require_legible(sheet)
    assert sheet.title == "train: h2-gpu0 lost and recovered"
    assert not [group for group in sheet.groups if "circuits programmed" in group.title]
    assert sum("circuits verified" in group.title for group in sheet.groups) == 1, "the published one"


def test_lanes_have_colours_of_their_own(recovered):
    assert len(set(COLOURS.values())) == len(Track)
    drawn = svg(recovered())
    assert all(f'fill="{colour}"' in drawn for colour in COLOURS.values())


def test_the_svg_stands_alone_and_says_what_it_is(recovered):
    drawn = svg(recovered(about={"job": "a <job> & more"}))
    root = parsed(drawn)
    assert root.get("role") == "img"
    by_id = {element.get("id"): element.text for element in root.iter() if element.get("id")}
    assert by_id["title"] == "a <job> & more: a rank lost and recovered"
    assert by_id["description"].startswith("failure to circuits verified: from the failure until 130 ms; ")
    assert not re.search(r"href|url\(|<style|<script|<image|@import", drawn)
    for words in root.iter(f"{SVG}text"):
        x, size = float(words.get("x")), float(words.get("font-size"))
        room = 0.55 * size * len(words.text)
        begin = x - room / 2 if words.get("text-anchor") else x
        assert 0 < begin < begin + room < float(root.get("width"))


def test_same_recovery_same_picture(recovered):
    assert svg(recovered()) == svg(recovered())
