"""The meaning of a policy's settings: checks against the health rules, hours, and the breaker.

A breaker opens if much of a rack fails at once: that is not a single fault, and a swap does not repair it. An open
breaker stops only the policy's swaps; recovery, rollback and operators continue.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from lumctl.health.lateness import STRAGGLER
from lumctl.health.observation import Observation
from lumctl.health.rulebook import all_lines
from lumctl.health.states import ComponentHealth, State, is_fault
from lumctl.inventory.model import Inventory
from lumctl.inventory.policies import DAY_MINUTES, DAYS, Breaker, Hours, How, Policy
from lumctl.inventory.problems import InventoryError, Problems
from lumctl.spares.decision import require_policy


def require_sound(inventory: Inventory) -> None:
    """Refuse policies with unknown rules, which would never match, and an unknown sharing policy.

    Raises:
        InventoryError: rules are unknown; each is named with file, line and column.
        UsageError: the sharing policy of a plug-in does not load.
    """
    problems = Problems(inventory.path)
    add_unsound(inventory, problems)
    if problems:
        raise problems.error()


def add_unsound(inventory: Inventory, problems: Problems) -> None:
    """Add the errors for which :func:`require_sound` refuses policies.

    Raises:
        UsageError: the sharing policy of a plug-in does not load.
    """
    try:
        require_policy(inventory)
    except InventoryError as error:
        problems.take(error.problems)
    lines = all_lines()
    known = [*dict.fromkeys(line.rule for line in lines), *(f"{line.rule}/{line.case}" for line in lines)]
    for policy in inventory.policies:
        for pattern, mark in zip(policy.matching.rules, policy.rule_marks, strict=False):
            if not any(fnmatchcase(word, pattern) for word in known):
                problems.unknown(mark, "rule", pattern, known)


def remarks(inventory: Inventory) -> Iterator[str]:
    """Warnings about settings that are valid but probably not intended."""
    for policy in inventory.policies:
        yield from (f"{policy.name}: {said}" for said in _remarks(policy))
    for at, policy in enumerate(inventory.policies):
        for earlier in inventory.policies[:at]:
            if _covers(earlier, policy):
                yield (
                    f"{policy.name}: it never decides, because {earlier.name} comes first and applies to the same "
                    "faults"
                )
                break


def _remarks(policy: Policy) -> Iterator[str]:
    if policy.how is How.NOTIFY:
        return
    if policy.stands_s < 1:
        yield (
            f"stands_s is {policy.stands_s:g}: the autopilot acts on the first fault of a storm before it can detect "
            "the storm"
        )
    if policy.breaker.share >= 1:
        yield "breaker.share is 1: the circuit breaker never opens"
    limits = policy.limits
    if 0 in {limits.accelerator_week, limits.rack_hour, limits.rack_day}:
        yield "a limit is 0: it never acts"
    if policy.how is How.APPLY and policy.approval.by_another:
        yield "with how: apply, approval.by_another affects only plans made by hand"


def _covers(earlier: Policy, later: Policy) -> bool:
    """Whether an earlier policy certainly matches everything that a later one matches."""
    one, two = earlier.matching, later.matching
    return (
        set(two.rules) <= set(one.rules)
        and set(two.kinds) <= set(one.kinds)
        and set(two.states) <= set(one.states)
        and all(
            not before or before == after
            for before, after in ((one.components, two.components), (one.jobs, two.jobs), (one.racks, two.racks))
        )
    )


# Hours of a single weekday that are over for today begin again in 7 days; range() excludes its end.
_DAYS_AHEAD = 8


def open_now(policy: Policy, now: float) -> tuple[bool, float | None]:
    """Whether a policy's hours allow it to act now, and when that changes (in epoch seconds; ``None``: never)."""
    if not policy.hours:
        return True, None
    zone: tzinfo = UTC if policy.timezone == "UTC" else ZoneInfo(policy.timezone)
    today = datetime.fromtimestamp(now, zone).date()
    spans = sorted(
        span
        for hours in policy.hours
        # From yesterday: hours that began then may reach past midnight.
        for ahead in range(-1, _DAYS_AHEAD)
        if (span := _span(hours, today + timedelta(days=ahead), zone)) is not None
    )
    end = None
    for begins, ends in spans:
        if end is None and begins <= now < ends:
            end = ends
        elif end is not None and begins <= end < ends:
            end = ends  # the next span follows without a gap
    if end is not None:
        return True, end
    return False, min((begins for begins, _ in spans if begins > now), default=None)


def hours_text(policy: Policy) -> str:
    """The hours in words: ``mon-fri 08:00-18:00 (Europe/Berlin)``."""
    if not policy.hours:
        return "at any time"
    parts = [f"{_days(hours.days)} {_clock(hours.begins)}-{_clock(hours.ends)}" for hours in policy.hours]
    return f"{', '.join(parts)} ({policy.timezone})"


def _span(hours: Hours, day: date, zone: tzinfo) -> tuple[float, float] | None:
    if day.weekday() not in hours.days:
        return None
    midnight = datetime.combine(day, time())
    # Hours such as 22:00-06:00 end on the next day.
    ends = hours.ends if hours.ends > hours.begins else hours.ends + DAY_MINUTES
    # In local time: even on the day when daylight saving time changes, 08:00 is 08:00.
    first, last = (midnight + timedelta(minutes=minutes) for minutes in (hours.begins, ends))
    return first.replace(tzinfo=zone).timestamp(), last.replace(tzinfo=zone).timestamp()


def _days(days: frozenset[int]) -> str:
    in_order = sorted(days)
    if len(in_order) == len(DAYS):
        return "daily"
    if len(in_order) > 2 and in_order == list(range(in_order[0], in_order[-1] + 1)):  # noqa: PLR2004 - a pair is listed
        return f"{DAYS[in_order[0]]}-{DAYS[in_order[-1]]}"
    return ",".join(DAYS[day] for day in in_order)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


ONLY_BY_NAME = frozenset({STRAGGLER})
"""Rules on which a policy acts only if it names them: no pattern with a wildcard includes them.

They are no failures, so they do not count for the breaker either.
"""
Onsets = Mapping[tuple[str, str], float]
"""When each accelerator and host (kind, id) last became faulty."""

_LOST = frozenset({"host.missed"})
"""Rules that report that a host may be lost, before that is certain."""


@dataclass(frozen=True, slots=True)
class BreakerState:
    """The breaker of one policy in one rack. Faults that began before ``closed_at`` are left to operators."""

    open_since: float | None = None
    why: str = ""
    closed_at: float = 0.0


def onsets_of(look: Observation, rack: str, kept: Onsets, *, keep_s: float) -> dict[tuple[str, str], float]:
    """The known onsets and those of an observation. An onset within ``keep_s`` counts even after the recovery."""
    found = {place: at for place, at in kept.items() if look.at - at < keep_s}
    lost_hosts = set()
    whole = {i.id for i in look.report.incidents if i.id.partition(":")[0] in {"rack", "host"}}
    for name, host in look.report.hosts.items():
        if look.inventory.hosts[name].rack == rack and (began := _began(host, whole, look)) is not None:
            lost_hosts.add(name)
            found["host", name] = max(began, found.get(("host", name), began))
    for name, accelerator in look.report.accelerators.items():
        place = look.inventory.accelerators[name]
        # A lost host counts as one fault, not one per accelerator.
        if place.rack == rack and place.host not in lost_hosts and (began := _began(accelerator, whole, look)):
            found["accelerator", name] = max(began, found.get(("accelerator", name), began))
    return found


def _began(health: ComponentHealth, whole: set[str], look: Observation) -> float | None:
    if health.disabled or health.maintenance is not None or health.state is State.DISABLED:
        return None
    found = [f for f in health.findings if f.rule not in ONLY_BY_NAME]
    began = [f.since for f in found if is_fault(f.state) or f.rule in _LOST or f.incident in whole]
    if health.kind == "host" and not began:
        began = [i.since for i in look.report.incidents if i.id == f"host:{health.id}"]
    return min(max(began), look.at) if began else None


def kept_onsets_s(policies: Iterable[Policy]) -> float:
    """How long onsets matter to the breakers of these policies, in seconds."""
    return max((max(p.breaker.window_s, p.breaker.quiet_s) for p in policies), default=0.0) + 1.0


def breaker_changes(
    policies: Iterable[Policy],
    breakers: Mapping[str, BreakerState],
    look: Observation,
    rack: str,
    onsets: Onsets,
    now: float,
) -> Iterator[tuple[Policy, BreakerState, str]]:
    """The breakers that open or close in a rack after an observation: policy, new state, reason."""
    for policy in policies:
        before = breakers.get(policy.name, BreakerState())
        after = next_breaker_state(before, policy.breaker, look, rack, onsets, now)
        if after != before:
            closed = f"nothing more has failed for {policy.breaker.quiet_s:g} s"
            yield policy, after, after.why if after.open_since is not None else closed


def next_breaker_state(
    state: BreakerState, settings: Breaker, look: Observation, rack: str, onsets: Onsets, now: float
) -> BreakerState:
    """The breaker after one observation; the same object if nothing changed."""
    why = _too_much(settings, look, rack, onsets, now)
    if state.open_since is None:
        return state if why is None else replace(state, open_since=now, why=why)
    if why is None and now - max(onsets.values(), default=0.0) >= settings.quiet_s:
        return BreakerState(closed_at=now)
    return state


def closes_at(settings: Breaker, onsets: Onsets) -> float:
    """When an open breaker closes if nothing more fails (seconds since the epoch)."""
    # Within the window, too many onsets hold the breaker open even after quiet_s.
    return max(onsets.values(), default=0.0) + max(settings.quiet_s, settings.window_s)


def _too_much(settings: Breaker, look: Observation, rack: str, onsets: Onsets, now: float) -> str | None:
    """Why the breaker opens, in words; ``None`` if it does not open."""
    for kind, group in (("host", look.report.hosts), ("accelerator", look.report.accelerators)):
        members = look.inventory.hosts if kind == "host" else look.inventory.accelerators
        serving = [name for name, health in group.items() if members[name].rack == rack and not health.disabled]
        began = [
            name for (of, name), at in onsets.items() if of == kind and name in group and now - at < settings.window_s
        ]
        if len(began) >= settings.least and len(began) > settings.share * len(serving):
            shown = ", ".join(began[:3]) + (f" and {len(began) - 3} more" if len(began) > 3 else "")  # noqa: PLR2004
            return (
                f"{len(began)} of {len(serving)} {kind}s of {rack} failed within {settings.window_s:g} s ({shown}), "
                f"more than {settings.share:.0%}"
            )
    return None
