"""Who is late, and whether a schedule for that pays: from logs, measured collectives and given costs."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from late_rank_log import LOG

from lumctl.collectives.advice import advice_lines, advise, advise_from_log, late_rank_lines
from lumctl.collectives.arrivals import ArrivalStep, late_rank
from lumctl.collectives.cost import LinkCost
from lumctl.collectives.link_fit import LinkFit, Measurement, fit_links
from lumctl.collectives.measured_files import read_arrivals, read_measurements
from lumctl.errors import UsageError

PUBLISHED = Path(__file__).parents[4] / "shared" / "reference" / "stragglar-log.csv"


def seeded(seed):
    return Random(seed)  # noqa: S311 - the same choices in every run


def steps_of(gaps_s, collective_s=0.1, ranks=4, late=2):
    """A log in which one rank comes after the others by these gaps."""
    return [
        ArrivalStep(at, tuple(gap if r == late else -0.001 * r for r in range(ranks)), (gap + collective_s,) * ranks)
        for at, gap in enumerate(gaps_s)
    ]


def test_the_late_rank_of_a_log():
    late = late_rank(read_arrivals(LOG.encode())[1:])
    assert (late.rank, late.times_last, late.steps, late.ranks) == (1, 5, 6, 4)
    assert (late.gap_median_s, late.collective_s) == pytest.approx((0.0075, 0.1))
    assert late.share.low < 5 / 6 < late.share.high < 1
    assert late.gap_share == pytest.approx(0.075)
    assert late.trend_s.low <= late.trend_s.value <= late.trend_s.high
    assert late_rank_lines(late)[0] == "late rank: 1, last in 5 of 6 steps (83%; 95 %: 44% to 97%)"


def test_the_published_log_says_do_not():
    if not PUBLISHED.exists():
        pytest.skip("the published log is not here")
    steps = read_arrivals(PUBLISHED.read_bytes())[1:]
    late = late_rank(steps)
    assert (late.rank, late.times_last, late.steps) == (2, 49, 49)
    assert (late.gap_median_s, late.collective_s) == pytest.approx((0.0070, 0.1175), abs=1e-4)
    advice = advise_from_log(steps, late, seeded(0))
    assert not advice.recommended
    assert advice.break_even_s == pytest.approx(0.039, abs=5e-4)
    assert advice.cost.gain(late.gap_median_s) == pytest.approx(0.80, abs=0.006)
    assert advice.gain.low < 0.80 < advice.gain.high
    assert advice.late.trend_s.high < 0  # the gap falls


def test_a_log_of_our_own_says_do_not_and_what_would_have_to_change():
    steps = read_arrivals(LOG.encode())[1:]
    advice = advise_from_log(steps, late_rank(steps), seeded(0), size_bytes=1e8)
    lines = advice_lines(advice)
    assert lines[0].startswith(
        "do not use the schedule: with 4 ranks and a gap of 7.5 ms it runs at 0.80 of ring's speed"
    )
    assert lines[2].startswith("break-even gap: 33 ms; the best case is a gap of 44 ms, with 1.083 of ring's speed")
    assert lines[3] == (
        "what would have to change: a gap above 33 ms instead of 7.5 ms, or a buffer of at most 23% of this one, 23 MB"
    )


def test_a_long_steady_gap_says_use():
    rng = seeded(5)
    steps = steps_of([0.06 + 0.01 * rng.random() for _ in range(60)], ranks=8)
    late = late_rank(steps)
    advice = advise_from_log(steps, late, seeded(0))
    assert advice.recommended
    assert 1.0 < advice.gain.low <= advice.gain.value <= advice.gain.high < 1.217
    assert len(advice_lines(advice)) == 3


def test_a_gain_that_is_not_certain_is_no_recommendation():
    steps = steps_of([0.08 if at % 3 else 0.0 for at in range(12)], ranks=4)
    advice = advise_from_log(steps, late_rank(steps), seeded(0))
    assert advice.gain.low <= 1.0
    assert not advice.recommended


def test_given_costs_have_no_interval_and_three_ranks_never_gain():
    link = LinkFit(LinkCost(0.0, 1e-9))
    advice = advise(8, 1e9, 0.9, link)
    assert advice.recommended
    assert advice.gain.low == advice.gain.value == advice.gain.high
    never = advise(3, 1e9, 5.0, link)
    assert not never.recommended
    assert advice_lines(never)[-1].startswith("no gap is long enough with 3 ranks: even after the arrival")


@given(st.integers(4, 64), st.floats(0.001, 0.5))
def test_the_advice_changes_at_the_break_even(ranks, gap_s):
    advice = advise(ranks, 1e9, gap_s, LinkFit(LinkCost(1e-6, 1e-10)))
    assert advice.recommended == (gap_s > advice.break_even_s) or gap_s == pytest.approx(advice.break_even_s)


def test_a_small_buffer_has_a_faster_algorithm_than_both():
    lines = advice_lines(advise(16, 1e4, 1e-5, LinkFit(LinkCost(1e-5, 1e-10))))
    assert lines[2] == "recursive halving and doubling is faster than both here: 82 us"


def test_the_buffer_that_is_small_enough_breaks_even():
    link = LinkCost(1e-5, 1e-9)
    advice = advise(16, 1e9, 0.05, LinkFit(link))
    smaller = advise(16, 1e9 * advice.most_share, 0.05, LinkFit(link))
    assert smaller.gain.value == pytest.approx(1.0)


def measured(alpha_s, beta_s, noise, rng, outliers=0):
    rows = []
    for size in (1e3, 1e4, 1e5, 1e6, 1e7, 1e8):
        for _ in range(8):
            x, y = Measurement(8, size, 1.0).coefficients
            rows.append(Measurement(8, size, (x * alpha_s + y * beta_s) * rng.gauss(1, noise)))
    for at in rng.sample(range(len(rows)), outliers):
        rows[at] = rows[at]._replace(seconds=rows[at].seconds * 30)
    return rows


@pytest.mark.parametrize("outliers", [0, 6])
def test_alpha_and_beta_are_found_in_noise_and_outliers(outliers):
    fit = fit_links(measured(5e-6, 2e-11, 0.05, seeded(3), outliers), seeded(0))
    assert fit.alpha_s.value == pytest.approx(5e-6, rel=0.05)
    assert fit.beta_s.value == pytest.approx(2e-11, rel=0.05)
    assert fit.alpha_s.low < 5e-6 < fit.alpha_s.high
    assert fit.beta_s.low < 2e-11 < fit.beta_s.high


def test_neither_alpha_nor_beta_is_negative():
    rows = [Measurement(4, size, size * 1e-9 - 1e-7) for size in (1e3, 1e4, 1e5, 1e6)]
    assert fit_links(rows, seeded(0)).link.alpha_s >= 0
    rows = [Measurement(4, size, 1e-3 - size * 1e-11) for size in (1e3, 1e4, 1e5, 1e6)]
    assert fit_links(rows, seeded(0)).link.beta_s >= 0


def test_a_fit_needs_several_sizes():
    with pytest.raises(UsageError, match="2 measured collectives are too few"):
        fit_links([Measurement(4, 1e6, 1.0)] * 2, seeded(0))
    with pytest.raises(UsageError, match="all measured collectives have one size"):
        fit_links([Measurement(4, 1e6, 1.0)] * 9, seeded(0))


def test_the_other_form_of_a_log_gives_the_same():
    rows = ["step,rank,enter_ms,leave_ms"]
    for line in LOG.split()[1:]:
        step, *times = line.split(",")
        start = 1e6 * (int(step) + 1)
        rows += [f"{step},{rank},{start - float(time)},{start}" for rank, time in enumerate(times)]
    steps = read_arrivals("\n".join(rows).encode())[1:]
    assert late_rank(steps).gap_median_s == pytest.approx(0.0075)
    assert late_rank(steps).rank == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1: found nothing"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"a,b\n1,2\n", "line 1: found 'a,b'"),
        (b"step,rank0_ms,rank2_ms\n", "line 1: expected the ranks 0 to 1 in order"),
        (b"step,rank0_ms,rank1_ms\n1,5\n", "line 2: found 2 values, expected 3"),
        (b"step,rank0_ms,rank1_ms\n1,5,\n", "line 2: rank 1: found '', expected a number"),
        (b"step,rank0_ms,rank1_ms\n1,5,nan\n", "line 2: rank 1: found 'nan', expected a number"),
        (b"step,rank0_ms,rank1_ms\n1,5,inf\n", "line 2: rank 1: found 'inf', expected a number"),
        (b"step,rank0_ms,rank1_ms\n1,5,-6\n", "line 2: rank 1: found '-6', expected a number above 0"),
        (b"step,rank0_ms,rank1_ms\n1,5,6\n2,5,6\n1,7,8\n", "line 4: step 1 is there twice, first on line 2"),
        (b"step,rank0_ms,rank1_ms\nx,5,6\n", "line 2: step: found 'x', expected a whole number"),
        (b"step,rank,enter_s,leave_s\n1,0,0,1\n1,1,0,1\n2,0,2,3\n", "line 4: step 2 has no time of rank 1"),
        (b"step,rank,enter_s,leave_s\n1,0,0,1\n1,0,0,1\n", "line 3: step 1 has rank 0 twice"),
        (b"step,rank,enter_s,leave_s\n1,0,2,1\n", "line 2: rank 0 leaves before it enters"),
        (
            b"step,rank,enter_s,leave_s\n1,99999,2,1\n",
            "line 2: rank: found '99999', expected a whole number from 0 to 1023",
        ),
    ],
)
def test_a_wrong_log_is_refused_with_its_line(content, said):
    with pytest.raises(UsageError) as refused:
        read_arrivals(content)
    assert refused.value.message.startswith(said)


def test_too_short_and_impossible_logs_are_refused():
    with pytest.raises(UsageError, match="3 steps are too few to name a late rank"):
        late_rank(steps_of([0.1] * 3))
    with pytest.raises(UsageError, match="step 0: rank 2 left the collective before it entered"):
        late_rank(steps_of([0.1] * 6, collective_s=-0.05))


def test_measured_collectives_have_a_unit_and_perhaps_ranks():
    assert read_measurements(b"bytes,us\n1000,5\n", 8) == [Measurement(8, 1000.0, pytest.approx(5e-6))]
    assert read_measurements(b"ranks,bytes,seconds\n4,1000,5\n", 8) == [Measurement(4, 1000.0, 5.0)]
    for content, said in (
        (b"bytes,hours\n1,2\n", "line 1: found 'bytes,hours'"),
        (b"bytes,seconds\n1,0\n", "line 2: seconds: found '0', expected a number above 0"),
        (b"ranks,bytes,seconds\n1,1,1\n", "line 2: ranks: found '1', expected a whole number from 2 to 1024"),
    ):
        with pytest.raises(UsageError) as refused:
            read_measurements(content, 8)
        assert refused.value.message.startswith(said)
