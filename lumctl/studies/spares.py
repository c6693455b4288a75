"""How many spares a rack needs: the published rule beside the exact one."""

from collections.abc import Iterator, Sequence

from lumctl.spares.sizing import even_groups, size_pool, spread
from lumctl.studies.claim import Claim, ClaimReading, exactly
from lumctl.studies.study import Readings, Settings, Study, StudyParameter, StudyRow

_RATES = ((0.0, 0.01, 2), (0.01, 0.03, 4), (0.03, 0.05, 6))
"""Ranges of the probability that a chip is down, with the published number of spares."""
_PUBLISHED_ACCELERATORS = 64


def _name(low: float, high: float) -> str:
    return f"{100 * low:g}-{100 * high:g}"


def _rows(settings: Settings) -> Iterator[StudyRow]:
    for accelerators in settings["accelerators"]:
        for low, high, _ in _RATES:
            groups = spread(even_groups(int(accelerators)), low, high)
            for availability in settings["availability"]:
                size = size_pool(groups, availability)
                yield {
                    "accelerators": int(accelerators),
                    "down_percent": _name(low, high),
                    "availability": availability,
                    "exact": size.exact,
                    "published_rule": size.published,
                    "servers": size.server_eviction,
                    "racks": size.rack_migration,
                }


def _readings(_: Settings, rows: Sequence[StudyRow]) -> Readings:
    found: dict[str, list[ClaimReading]] = {f"spares.{_name(low, high)}": [] for low, high, _ in _RATES}
    for row in rows:
        if row["accelerators"] == _PUBLISHED_ACCELERATORS:
            for column, words in (("published_rule", "P(K or more down)"), ("exact", "P(more than K down)")):
                allowed = f"{words} at most {1 - float(row['availability']):.3g}"
                found[f"spares.{row['down_percent']}"].append(exactly(allowed, float(row[column])))
    return found


STUDY = Study(
    name="spares",
    question="How many spares does a rack need?",
    parameters=(
        StudyParameter("accelerators", "Accelerators of the rack.", (16, 64, 256), 1, 4096, whole=True),
        # The source states no availability.
        StudyParameter(
            "availability",
            "The share of time with enough spares.",
            (0.9, 0.95, 0.99, 0.999),
            0.5,
            0.99999,
        ),
    ),
    claims=tuple(
        Claim(
            f"spares.{_name(low, high)}",
            "arXiv 2508.03674",
            f"spares for 64 chips of which each is down {_name(low, high)} % of the time",
            spares,
            "spares",
            0.0,
        )
        for low, high, spares in _RATES
    ),
    columns=("accelerators", "down_percent", "availability", "exact", "published_rule", "servers", "racks"),
    rows=_rows,
    readings=_readings,
)
