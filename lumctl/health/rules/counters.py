"""Rules that count: something occurred more often in a time span than the rulebook allows."""

from collections.abc import Iterable, Iterator
from functools import cache
from math import inf

from lumctl.fleet.host_readings import ComponentReport
from lumctl.health.rulebook import found, has_case, rulebook
from lumctl.health.states import Finding, Verdict
from lumctl.health.trend import Trend


def counted(component: str, rule: str, trend: Trend | None, *, now: float, read_at: float) -> Iterator[Finding]:
    """Yield a finding for each case of a rule whose limit is reached; the finding names the worst part."""
    if trend is None or not trend.tallies:
        return
    for line in _lines(rule):
        by_part = trend.events(line.counter, line.window_s, now)
        reached = [(events, part) for part, events in by_part.items() if line.reached_by(events)]
        if reached:
            events, part = max(reached)
            yield found(component, rule, line.case, _evidence(line, events, part, len(reached) - 1), since=read_at)


@cache
def _lines(rule: str) -> tuple[Verdict, ...]:
    return tuple(line for line in rulebook().lines(rule) if line.counter and line.limit < inf)


def _evidence(line: Verdict, events: int, part: str, others: int) -> str:
    where = f"{part}: " if part else ""
    more = f", and {others} more like it" if others else ""
    what = line.counter.replace("_", " ")
    rate = f"{line.rate(events):.3g} {line.unit} (limit: {line.limit:g})" if line.per_s else f"{events}"
    return f"{where}{what} {rate} in the last {span(line.window_s)}{more}"


def span(seconds: float) -> str:
    """A duration in words, in the greatest unit that divides it."""
    for name, unit in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= unit and seconds % unit == 0:
            count = int(seconds // unit)
            return f"{count} {name}s" if count > 1 else name
    return f"{seconds:g} s"


def reported(component: str, rule: str, reports: Iterable[ComponentReport]) -> Iterator[Finding]:
    """Yield a finding for each report; a health that the rule does not know gives the case ``unknown``."""
    for report in reports:
        case = report.health if has_case(rule, report.health) else "unknown"
        reason = f": {report.reason}" if report.reason else ""
        evidence = f"{report.source} reports {report.component} {report.health}{reason}"
        yield found(component, rule, case, evidence, since=report.taken_at, about=report.component)
