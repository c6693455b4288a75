"""How many spares a rack needs: the published rule beside the exact one, and beside replacing servers or racks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

from lumctl.spares.sizing import even_groups, size_pool, spread
from lumctl.studies.claim import Claim, ClaimBasis, ReadingValue, found_value, range_value
from lumctl.studies.inventory_rack import all_accelerators
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings

_SOURCE = "arXiv 2508.03674"
_RATES = {"0-1": (0.0, 0.01, 2), "1-3": (0.01, 0.03, 4), "3-5": (0.03, 0.05, 6)}
"""Ranges in percent of the probability that a chip is down, spread evenly, with the spares by the published rule."""
_ACCELERATORS, _PER_SERVER = 64, 4
_RULES = ("published_rule", "exact_rule")


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    per_server = map(int, settings["per_server"])
    return product(map(int, settings["accelerators"]), _RATES, settings["availability"], per_server)


def _solve(accelerators: int, percent: str, availability: float, per_server: int) -> Iterator[StudyRow]:
    low, high, _ = _RATES[percent]
    size = size_pool(spread(even_groups(accelerators, per_server), low, high), availability)
    yield {
        "accelerators": accelerators,
        "down_percent": percent,
        "availability": availability,
        "published_rule": size.published,
        "exact_rule": size.exact,
        "as_servers": size.server_eviction,
        "as_racks": size.rack_migration,
    }


def _values(_: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    published = [row for row in rows if row["accelerators"] == _ACCELERATORS]
    if not published:
        return {}
    found: dict[str, dict[str, ReadingValue]] = {
        f"spares.{percent}": {
            "rule": range_value([float(row["published_rule"]) for row in published if row["down_percent"] == percent])
        }
        for percent in _RATES
    }
    right = [row for row in published if row["published_rule"] == _RATES[str(row["down_percent"])][2]]
    at_once = Counter(row["availability"] for row in right)
    found["spares.together"] = {"rule": found_value(max(at_once.values(), default=0))}
    return found


def _claim(name: str, words: str, published: int, unit: str, of: str = "over all A") -> Claim:
    rule = {"rule": f"P(K or more down) at most 1 - A, {of}"}
    return Claim(f"spares.{name}", _SOURCE, words, published, unit, 0.0, rule, ClaimBasis.COMPUTED)


STUDY = Study(
    name="spares",
    question="How many spares does a rack need?",
    parameters=(
        StudyParameter("accelerators", "Accelerators of the rack.", (16, 64, 256), 1, 4096, whole=True),
        StudyParameter("per_server", "Accelerators of a server.", (_PER_SERVER,), 1, 4096, whole=True, several=False),
        # The source states no availability.
        StudyParameter("availability", "The share of time with enough spares.", (0.9, 0.95, 0.99, 0.999), 0.5, 0.99999),
    ),
    claims=(
        *(
            _claim(percent, f"spares for {_ACCELERATORS} chips, each down {percent} % of the time", spares, "spares")
            for percent, (_, _, spares) in _RATES.items()
        ),
        _claim("together", "these three numbers at one availability", len(_RATES), "of 3", "at the best A"),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(
        StudyPlot(
            "availability", _RULES, "availability (share of time)", "spares, all ranges of failures", ("accelerators",)
        ),
    ),
    of_inventory=all_accelerators,
)
