"""What a link's port counts and its driver reports: errors, an unsteady carrier, counters that are full."""

from collections.abc import Iterator

from lumctl.fleet.readings import NicEventKind
from lumctl.health.rulebook import found, has_case, rulebook, verdict
from lumctl.health.rules.counted import counted, span
from lumctl.health.rules.link_case import LinkCase
from lumctl.health.states import Finding

_ENDS_WITH_A_PLUG = frozenset({NicEventKind.CABLE, NicEventKind.CABLE_ERROR})
_SAID = 160
"""Characters of a driver's line that a finding repeats."""


def errors(case: LinkCase) -> Iterator[Finding]:
    """Errors that the port counted, each over the time that its line of the rulebook speaks of."""
    if case.in_use:
        yield from counted(case.id, "link.errors", case.trend, now=case.now, read_at=case.read_at)


def unsteady(case: LinkCase) -> Iterator[Finding]:
    """A carrier that comes and goes, or that stays away for long."""
    if not case.in_use or case.trend is None:
        return
    yield from counted(case.id, "link.unsteady", case.trend, now=case.now, read_at=case.read_at)
    line, down_since = verdict("link.unsteady", "dropped"), case.trend.down_since
    if down_since is not None and case.now - down_since >= line.limit:
        evidence = f"{case.name} was down for more than {span(line.limit)}"
        yield found(case.id, "link.unsteady", "dropped", evidence, since=down_since)


def full_counters(case: LinkCase) -> Iterator[Finding]:
    """Counters at their greatest value: what happens now is not counted any more."""
    if case.trend is None or not case.in_use:
        return
    for counter, part in case.trend.saturated():
        kind = rulebook().counters[counter]
        covered = bool(kind.wider) and case.trend.counts(kind.wider)
        evidence = f"counter saturated: {part} {counter} cannot grow any more" + (
            f"; {kind.wider} is counted in its place" if covered else ""
        )
        name = "covered" if covered else kind.full
        yield found(case.id, "link.counter-full", name, evidence, since=case.read_at)


def driver_events(case: LinkCase) -> Iterator[Finding]:
    """What the network driver wrote into the kernel log of late, one finding for each kind."""
    if not case.nic_events:
        return
    quiet_until = case.trend.quiet_until if case.trend is not None else 0.0
    plugged = [event.at for event in case.nic_events if event.kind is NicEventKind.PLUGGED and event.at is not None]
    plugged_at = max(plugged, default=0.0)
    for kind in NicEventKind:
        if not has_case("link.nic", kind.value):
            continue
        line = verdict("link.nic", kind.value)
        oldest = max(case.now - line.window_s, quiet_until, plugged_at if kind in _ENDS_WITH_A_PLUG else 0.0)
        events = [event for event in case.nic_events if event.kind is kind and (event.at is None or event.at > oldest)]
        if events:
            again = f", {len(events)} times" if len(events) > 1 else ""
            since = min((event.at for event in events if event.at is not None), default=case.read_at)
            yield found(case.id, "link.nic", kind.value, f"{events[-1].text[:_SAID]}{again}", since=since)


RULES = (errors, unsteady, full_counters, driver_events)
