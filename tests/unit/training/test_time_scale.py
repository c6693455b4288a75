from itertools import pairwise

import pytest

from lumctl.training.timeline import TimeScale, in_words, scale_for


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ms"),
        (0.00042, "0.4 ms"),
        (0.00995, "10 ms"),
        (0.0381, "38 ms"),
        (0.1416, "142 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (1.1, "1.1 s"),
        (1.134, "1.13 s"),
        (9.996, "10 s"),
        (10, "10 s"),
        (25.6, "25.6 s"),
        (99.96, "100 s"),
        (140, "140 s"),
    ],
)
def test_three_digits_at_most(seconds, words):
    assert in_words(seconds) == words


def test_the_axis_grows_all_along_without_a_leap():
    scale = TimeScale()
    times = [at / 1000 for at in range(0, 100_001, 7)]
    shares = [scale.share(seconds) for seconds in times]
    assert shares[0] == 0
    assert all(0 < after - before < 0.06 for before, after in pairwise(shares))
    assert scale.share(100) == 1
    assert scale.share(0.01 - 1e-9) == pytest.approx(scale.share(0.01 + 1e-9), abs=1e-6)


def test_decades_are_equally_far_apart():
    places = [TimeScale().share(decade) for decade in TimeScale().decades()]
    assert TimeScale().decades() == (0.01, 0.1, 1.0, 10.0, 100.0)
    gaps = [after - before for before, after in pairwise(places)]
    assert gaps == pytest.approx([gaps[0]] * 4)


@pytest.mark.parametrize(("latest", "high"), [(0, 100), (25.6, 100), (100, 100), (101, 1000), (4000, 10_000)])
def test_it_reaches_as_far_as_it_must(latest, high):
    assert scale_for(latest).high_s == high
    assert scale_for(latest).share(latest) <= 1
