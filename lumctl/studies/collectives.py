"""What a schedule for a late rank gains over ring: after the late rank's arrival, and in all."""

from collections.abc import Iterator, Sequence

from lumctl.collectives.cost import LinkCost, stragglar_cost
from lumctl.studies.claim import Claim, ClaimReading, exactly, over
from lumctl.studies.study import Readings, Settings, Study, StudyParameter, StudyRow

_SOURCE = "arXiv 2505.23523"
_LARGE = LinkCost(0.0, 1.0)
"""Links whose messages cost nothing: large buffers."""
_SMALL = LinkCost(1.0, 0.0)
"""Links on which only the number of messages counts: small buffers."""
_PUBLISHED_RANKS = 8
_ENOUGH_RANKS = 256
"""For what is claimed of many GPUs."""
_PERCENT = 100.0


def _gains(ranks: int, link: LinkCost) -> tuple[float, float, float]:
    """Ring's time over the schedule's: after the arrival, in all at the best delay, in all without a delay."""
    cost = stragglar_cost(ranks, 1.0, link)
    return cost.gain_after, cost.gain(cost.before_s), cost.gain(0.0)


def _rows(settings: Settings) -> Iterator[StudyRow]:
    for ranks in settings["ranks"]:
        for buffers, link in (("large", _LARGE), ("small", _SMALL)):
            after, best, none = _gains(int(ranks), link)
            yield {"ranks": int(ranks), "buffers": buffers, "after": after, "best_delay": best, "no_delay": none}


def _readings(settings: Settings, rows: Sequence[StudyRow]) -> Readings:
    found: dict[str, list[ClaimReading]] = {}
    of = {(row["ranks"], row["buffers"]): row for row in rows}
    if (_PUBLISHED_RANKS, "large") in of:
        large, small = of[_PUBLISHED_RANKS, "large"], of[_PUBLISHED_RANKS, "small"]
        whole = [(float(each["best_delay"]) - 1.0) * _PERCENT for each in (large, small)]
        readings = [
            exactly("the whole at the best delay, large buffers", whole[0]),
            over("the whole at the best delay, buffers of any size", whole),
            exactly("the whole without a delay, large buffers", (float(large["no_delay"]) - 1.0) * _PERCENT),
            exactly("after the arrival only, large buffers", (float(large["after"]) - 1.0) * _PERCENT),
        ]
        found = {"collectives.gain-v1": readings, "collectives.gain-v2": readings}
    most = int(max(settings["ranks"]))
    after, best, _ = _gains(most, _LARGE)
    if most >= _ENOUGH_RANKS:
        found["collectives.twice"] = [
            exactly(f"after the arrival only, {most} ranks, large buffers", after),
            # The time of a reduce-scatter, which ring spends too, is in both: 3 over 2, whatever the number of ranks.
            exactly(f"the whole at the best delay, {most} ranks, large buffers", best, most=1.5),
        ]
    return found


STUDY = Study(
    name="collectives",
    question="How much faster is an all-reduce that works around a late rank?",
    parameters=(
        StudyParameter(
            "ranks", "Numbers of ranks.", (4, 5, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024), 3, 1024, whole=True
        ),
    ),
    claims=(
        Claim("collectives.gain-v1", f"{_SOURCE}v1", "faster than ring with 8 GPUs", 22.0, "%", 0.5),
        Claim("collectives.gain-v2", f"{_SOURCE}v2", "faster than ring with 8 GPUs", 25.0, "%", 0.5),
        Claim("collectives.twice", _SOURCE, "speed over ring with many GPUs", 2.0, "times", 0.1),
    ),
    columns=("ranks", "buffers", "after", "best_delay", "no_delay"),
    rows=_rows,
    readings=_readings,
)
