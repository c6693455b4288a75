"""The sizes of pools as documents and as sentences for an operator."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import floor, log10
from typing import Any

from lumctl.inventory.folded_names import fold
from lumctl.printable import counted
from lumctl.spares.pools import Pool, PoolHistory, SizedPart, SizedPool
from lumctl.spares.rates import RateEstimate
from lumctl.spares.sizing import YEAR_S, PoolSize
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
        "exact": sized.exact,
        "exact_low": sized.low,
        "exact_high": sized.high,
        "probability_more_down": sized.probability_more_down,
        "waits_per_year": sized.waits_per_year,
        "published": sized.published,
        "server_eviction": size.server_eviction if pool.hosts_known else None,
        "rack_migration": size.rack_migration,
        "spares": pool.spares,
        "reserved": pool.reserved,
        "missing": sized.missing,
        "history": None if pool.history is None else _history(pool.history),
        "parts": [_part_row(each) for each in sized.parts],
    }


def _part_row(sized: SizedPart) -> dict[str, Any]:
    part, size = sized.part, sized.size
    return {
        "devices": list(part.devices),
        "accelerators": size.accelerators,
        "exact": size.exact,
        "published": size.published,
        "spares": part.spares,
        "reserved": part.reserved,
        "missing": sized.missing,
    }


def table_rows(sized: SizedPool) -> list[dict[str, Any]]:
    """One row for each number of spares from 0 to beyond the published rule and what the pool has; so for each part.

    ``devices`` are those of the part, empty if the whole pool shares its spares.
    """
    parts: list[tuple[tuple[str, ...], PoolSize, int | None]] = [
        (each.part.devices, each.size, each.part.spares) for each in sized.parts
    ] or [((), sized.size, sized.pool.spares)]
    return [
        {
            "rack": sized.pool.rack,
            "class": sized.pool.accelerator_class,
            "devices": list(devices),
            **row,
        }
        for devices, size, present in parts
        for row in size_rows(size, present)
    ]


def size_rows(size: PoolSize, present: int | None) -> list[dict[str, Any]]:
    """The rows of a pool or a part of one that has ``present`` spares."""
    return [
        {
            "spares": spares,
            "probability_more_down": size.probability_more_down(spares),
            "waits_per_year": size.expected_waits_per_year(spares),
        }
        for spares in range(max(size.published, present or 0) + _BEYOND + 1)
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
    first = f"{counted(sized.exact, 'spares')}: of {size.accelerators} {which}, {_rates(pool)}"
    if sized.parts:
        lines = [f"{first}, in {len(sized.parts)} parts that share no spare: no fibre joins their devices"]
        lines += [f"  {each}" for each in _parts(sized.parts, when)]
    else:
        lines = [f"{first}, {_more(size, size.exact, when)} (at most {percent(1 - size.availability)} is allowed)"]
    if sized.low is not None and sized.high is not None and sized.low < sized.high:
        lines.append(f"with the 95 % interval of the failure rates: {sized.low} to {sized.high} spares")
    if pool.history is not None:
        lines += _evidence(pool.history)
    if pool.spares is not None:
        lines.append(_present(sized, pool.spares))
    evicted = f"; whole servers: {size.server_eviction}" if pool.hosts_known else ""
    lines.append(f"published rule: {sized.published}{evicted}; a whole rack for each failure: {size.rack_migration}")
    return lines


def alike_parts(parts: Sequence[SizedPart]) -> list[tuple[SizedPart, str]]:
    """The parts, those that need and have the same only once, each with the devices of all of these, folded."""
    found: dict[SizedPart, list[str]] = {}
    for each in parts:
        found.setdefault(replace(each, part=replace(each.part, devices=())), []).extend(each.part.devices)
    return [(each, ", ".join(fold(dict.fromkeys(devices))) or "no device") for each, devices in found.items()]


def _parts(parts: Sequence[SizedPart], when: str) -> Iterator[str]:
    """A sentence about each part, or about those that are alike: what it needs and what it has."""
    for each, devices in alike_parts(parts):
        size, has = each.size, each.part.spares
        count = sum(replace(other, part=replace(other.part, devices=())) == each for other in parts)
        who, every = ("each", " each") if count > 1 else ("it", "")
        verdict = "enough" if not each.missing else f"{each.missing} too few"
        more = _more(size, size.exact, when)
        yield (
            f"{devices}: {counted(size.exact, 'spares')}{every}: of {size.accelerators}, {more} "
            f"(at most {percent(1 - size.availability)} is allowed); {who} has {has}: {verdict}"
        )


def _more(size: PoolSize, spares: int, when: str = "") -> str:
    return f"more than {_are_down(spares)} at once {percent(size.probability_more_down(spares))} of the time{when}"


def _present(sized: SizedPool, spares: int) -> str:
    pool, size = sized.pool, sized.size
    reserved = f" and {pool.reserved} reserved for one job or for use by name" if pool.reserved else ""
    verdict = "enough" if not sized.missing else f"{sized.missing} too few"
    if sized.parts:
        return f"it has {spares}{reserved}: {verdict}"
    share = percent(size.probability_more_down(spares))
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
