"""What a schedule for a late rank gains over other all-reduces: after the late rank's arrival, and in all."""

from collections.abc import Iterator, Sequence
from itertools import product

from lumctl.collectives.cost import LinkCost, stragglar_cost
from lumctl.studies.claim import Claim, ReadingValue, exact_value, found_value, range_value
from lumctl.studies.inventory_rack import sizes_of_jobs
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings

_SOURCE = "arXiv 2505.23523"
_LINKS = {"large": LinkCost(0.0, 1.0), "small": LinkCost(1.0, 0.0)}
"""By the size of the buffers: links on which only the bytes count, and links on which only the messages count. With any
other link, each gain is between these two: sums of times are compared, and a link adds the two kinds in proportion."""
_RANKS = (4, 5, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024)
_PUBLISHED_RANKS, _MANY_RANKS = 8, 1024
_READINGS = {
    "best-large": "the whole at the best delay, large buffers",
    "best-any-ring": "the whole at the best delay over ring, buffers of any size",
    "best-any": "the whole at the best delay over the faster of ring and halving-doubling, buffers of any size",
    "none-large": "the whole without a delay, large buffers",
    "after-large": "after the arrival only, large buffers",
}
_TWICE = {name: _READINGS[name] for name in ("after-large", "best-large")}


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    return product(map(int, settings["ranks"]), _LINKS)


def _solve(ranks: int, buffers: str) -> Iterator[StudyRow]:
    link = _LINKS[buffers]
    cost = stragglar_cost(ranks, 1.0, link)
    before, after = cost.before_s, cost.after_s
    fastest = min(cost.ring_s, link.halving_doubling_s(ranks, 1.0) or cost.ring_s)
    yield {
        "ranks": ranks,
        "buffers": buffers,
        "after_the_arrival": cost.gain_after,
        "best_delay": cost.gain(before),
        "best_delay_over_fastest": (before + fastest) / (before + after),
        "no_delay": cost.gain(0.0),
    }


def _values(_: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    found: dict[str, dict[str, ReadingValue]] = {}
    of = {(row["ranks"], row["buffers"]): row for row in rows}
    if (_PUBLISHED_RANKS, "large") in of:
        large, small = of[_PUBLISHED_RANKS, "large"], of[_PUBLISHED_RANKS, "small"]
        values = {
            "best-large": exact_value(_percent(large["best_delay"])),
            "best-any-ring": range_value([_percent(each["best_delay"]) for each in (large, small)], whole=True),
            "best-any": range_value([_percent(each["best_delay_over_fastest"]) for each in (large, small)], whole=True),
            "none-large": exact_value(_percent(large["no_delay"])),
            "after-large": exact_value(_percent(large["after_the_arrival"])),
        }
        found = {"collectives.gain-v1": values, "collectives.gain-v2": values}
    if (_MANY_RANKS, "large") in of:
        many = of[_MANY_RANKS, "large"]
        found["collectives.twice"] = {
            "after-large": found_value(float(many["after_the_arrival"]), most=2.0),
            # The time of a reduce-scatter, which ring spends too, is in both: 3 over 2, whatever the number of ranks.
            "best-large": found_value(float(many["best_delay"]), most=1.5),
        }
    return found


def _percent(gain: float | str) -> float:
    return (float(gain) - 1.0) * 100.0


STUDY = Study(
    name="collectives",
    question="How much faster is an all-reduce that works around a late rank?",
    parameters=(StudyParameter("ranks", "Numbers of ranks.", _RANKS, 3, 1024, whole=True),),
    claims=(
        Claim("collectives.gain-v1", f"{_SOURCE}v1", "faster than others, 8 GPUs", 22.0, "%", 0.5, _READINGS),
        Claim("collectives.gain-v2", f"{_SOURCE}v2", "faster than others, 8 GPUs", 25.0, "%", 0.5, _READINGS),
        Claim("collectives.twice", _SOURCE, "speed over ring, many GPUs (1,024 here)", 2.0, "times", 0.1, _TWICE),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(
        StudyPlot(
            "ranks",
            ("after_the_arrival", "best_delay", "no_delay"),
            "ranks",
            "speed over ring (times)",
            ("buffers",),
            log_x=True,
        ),
    ),
    of_inventory=sizes_of_jobs,
)
