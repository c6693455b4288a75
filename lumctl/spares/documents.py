"""The sizes of pools as documents and as sentences for an operator."""

from collections.abc import Sequence
from math import floor, log10
from typing import Any

from lumctl.printable import counted
from lumctl.spares.pools import Pool, PoolHistory, SizedPool
from lumctl.spares.rates import RateEstimate
from lumctl.spares.sizing import YEAR_S
from lumctl.time_text import age_text, iso_text, length_text

LEAST = 1e-6
"""Smaller probabilities are shown as under this one; documents have all digits."""
LEAST_WAITS = 0.001
_HUNDRED = 2
_BEYOND = 2
"""How many rows a table has beyond the largest number that the answer names."""


def size_document(sizes: Sequence[SizedPool]) -> dict[str, Any]:
    """The sizes of some pools: the sums, each pool, and a table over the number of spares of each.

    A sum of alternatives is ``None`` if one of the pools does not have it.
    """
    pools = [pool_row(each) for each in sizes]
    evicted = [pool["server_eviction"] for pool in pools]
    return {
        "exact": sum(pool["exact"] for pool in pools),
        "published": sum(pool["published"] for pool in pools),
        "server_eviction": None if None in evicted else sum(evicted),
        "rack_migration": sum(pool["rack_migration"] for pool in pools),
        "pools": pools,
        "table": [row for each in sizes for row in table_rows(each)],
    }


def pool_row(sized: SizedPool) -> dict[str, Any]:
    """The answer for one pool. ``exact_low`` and ``exact_high`` are for the ends of the interval of the rates."""
    pool, size = sized.pool, sized.size
    return {
        "rack": pool.rack,
        "class": pool.accelerator_class,
        "accelerators": size.accelerators,
        "expected_down": size.expected_down,
        "repair_s": pool.repair_s,
        "exact": size.exact,
        "exact_low": sized.low,
        "exact_high": sized.high,
        "probability_more_down": size.probability_more_down(size.exact),
        "waits_per_year": size.expected_waits_per_year(size.exact),
        "published": size.published,
        "server_eviction": size.server_eviction if pool.hosts_known else None,
        "rack_migration": size.rack_migration,
        "spares": pool.spares,
        "reserved": pool.reserved,
        "missing": sized.missing,
        "history": None if pool.history is None else _history(pool.history),
    }


def table_rows(sized: SizedPool) -> list[dict[str, Any]]:
    """One row for each number of spares from 0 to beyond the published rule and what the pool has."""
    pool, size = sized.pool, sized.size
    return [
        {
            "rack": pool.rack,
            "class": pool.accelerator_class,
            "spares": spares,
            "probability_more_down": size.probability_more_down(spares),
            "waits_per_year": size.expected_waits_per_year(spares),
        }
        for spares in range(max(size.published, pool.spares or 0) + _BEYOND + 1)
    ]


def _history(history: PoolHistory) -> dict[str, Any]:
    return {
        "since": iso_text(history.since),
        "until": iso_text(history.until),
        "repair_s": history.repair_s,
        "host_repair_s": history.host_repair_s,
        "accelerators": _estimate(history.accelerators),
        "hosts": _estimate(history.hosts),
        "by_host": [{"host": host, **_estimate(each)} for host, each in history.by_host.items()],
    }


def _estimate(estimate: RateEstimate) -> dict[str, Any]:
    """Counts, and failures of one component in a year of service with the 95 % interval."""
    return {
        "components": estimate.components,
        "failures": estimate.failures,
        "repaired": estimate.repaired,
        "down_s": estimate.down_s,
        "in_service_s": estimate.in_service_s,
        "failures_per_year": estimate.rate * YEAR_S,
        "failures_per_year_low": estimate.low * YEAR_S,
        "failures_per_year_high": estimate.high * YEAR_S,
    }


def answer(sized: SizedPool, horizon_s: float | None) -> list[str]:
    """The answer in sentences: how many spares and why, whether the rack has enough, and the alternatives."""
    pool, size = sized.pool, sized.size
    which = f"{pool.accelerator_class} in {pool.rack}" if pool.rack else "accelerators"
    when = f" {length_text(horizon_s)} after a start with all of them up" if horizon_s is not None else ""
    share = percent(size.probability_more_down(size.exact))
    allowed = percent(1 - size.availability)
    first = (
        f"{counted(size.exact, 'spares')}: of {size.accelerators} {which}, {_rates(pool)}, more than "
        f"{_are_down(size.exact)} at once {share} of the time{when} (at most {allowed} is allowed)"
    )
    lines = [first]
    if sized.low is not None and sized.high is not None and sized.low < sized.high:
        lines.append(f"with the 95 % interval of the failure rates: {sized.low} to {sized.high} spares")
    if pool.history is not None:
        lines += _evidence(pool.history)
    if pool.spares is not None:
        lines.append(_present(sized, pool.spares))
    evicted = f"; whole servers: {size.server_eviction}" if pool.hosts_known else ""
    lines.append(f"published rule: {size.published}{evicted}; a whole rack for each failure: {size.rack_migration}")
    return lines


def _present(sized: SizedPool, spares: int) -> str:
    pool, size = sized.pool, sized.size
    reserved = f" and {pool.reserved} reserved for one job or for use by name" if pool.reserved else ""
    share = percent(size.probability_more_down(spares))
    verdict = "enough" if not sized.missing else f"{sized.missing} too few"
    return f"it has {spares}{reserved}: {verdict}; more than {_are_down(spares)} {share} of the time"


def _are_down(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'} down"


def _rates(pool: Pool) -> str:
    """The probabilities of being down, as words."""
    groups = pool.groups
    low, high = (percent(end(unit.rate for group in groups for unit in group.units)) for end in (min, max))
    between = low if low == high else f"{low.removesuffix(' %')} to {high}"
    each = f"each down {pool.given or between} of the time"
    whole = max(group.rate for group in groups)
    return f"{each} and hosts up to {percent(whole)}" if whole else each


def _evidence(history: PoolHistory) -> list[str]:
    length = age_text(history.until - history.since)
    found = [f"history of {length}: {_counts(history.accelerators, 'accelerators', history.repair_s)}"]
    if history.hosts.failures:
        found.append(f"and {_counts(history.hosts, 'hosts', history.host_repair_s)}")
    return found


def _counts(estimate: RateEstimate, many: str, repair_s: float) -> str:
    rate, low, high = (_digits(each * YEAR_S) for each in (estimate.rate, estimate.low, estimate.high))
    failures = counted(estimate.failures, "failures")
    return (
        f"{failures} of {estimate.components} {many}, {rate} a year each (95 %: {low} to {high}), "
        f"down for {age_text(repair_s)} on average"
    )


def percent(probability: float) -> str:
    """A probability in per cent."""
    if 0 < probability < LEAST:
        return f"under {_digits(100 * LEAST)} %"
    return f"{_digits(100 * probability)} %"


def _digits(value: float) -> str:
    """A number with two digits, with one decimal from 10 on, and with none from 100 on."""
    magnitude = floor(log10(value)) if value else 0
    decimals = max(1, 1 - magnitude) if magnitude < _HUNDRED else 0
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def waits_text(waits: float | None) -> str | None:
    """A number of waits per year as text; ``None`` if it is unknown."""
    if waits is None:
        return None
    if 0 < waits < LEAST_WAITS:
        return f"under {LEAST_WAITS}"
    return _digits(waits)
