"""Each condition for doing something unasked, with the value that decided it, in words that an operator can check."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from lumctl.daemon.autopilot import hours
from lumctl.daemon.autopilot.breaker import BreakerState, Onsets, closes_at
from lumctl.daemon.autopilot.memory import DAY_S, HOUR_S, WEEK_S, Ask, AskState, Memory
from lumctl.daemon.autopilot.troubles import Trouble
from lumctl.health.states import Finding
from lumctl.inventory.policies import How, Policy, PolicySubject

NEVER = frozenset(
    {
        ("gpu.xid", "unknown"),
        ("gpu.xid", "contact-support"),
        ("gpu.xid", "no-action-given"),
        ("gpu.recovery-action", "unknown"),
    }
)
"""What warns and never acts, whatever a policy says: nobody knows what these mean."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. ``until`` is when it may change by itself (seconds since the epoch), if it does."""

    name: str
    holds: bool
    told: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A trouble under the policy that is to decide about it."""

    trouble: Trouble
    finding: Finding
    policy: Policy
    memory: Memory
    onsets: Onsets
    unfinished: tuple[str, ...]
    now: float
    ask: Ask | None = None
    by_hand: tuple[str, ...] = ()
    """The jobs that only a person can stop before their light moves."""

    @property
    def accelerators(self) -> tuple[str, ...]:
        """Those that would be replaced."""
        return tuple(a for accelerators in self.trouble.jobs.values() for a in accelerators)


def conditions(case: Case) -> Iterator[Condition]:
    """Every condition of a case, also those after one that does not hold."""
    yield _attended(case)
    yield _quiet(case)
    yield _itself(case)
    yield _stands(case)
    if case.policy.how is How.NOTIFY:
        yield _young(case)
        return
    yield _known(case)
    yield _works(case)
    if case.policy.how in {How.APPROVE, How.APPLY}:
        yield _can_be_paused(case)
    yield _switch(case)
    yield _halt(case)
    yield _hours(case)
    if case.ask is None or case.ask.state is AskState.SPENT:
        yield _young(case)  # a person who is asked sees how old it is
    yield _breaker(case)
    yield _not_stale(case)
    yield _cooled_down(case)
    yield _finished(case)
    yield from _limits(case)


def _attended(case: Case) -> Condition:
    if case.trouble.out_of_service is not None:
        return Condition("attended", holds=False, told=case.trouble.out_of_service)
    if case.finding.acknowledged is not None:
        return Condition("attended", holds=False, told=f"acknowledged {case.finding.acknowledged}")
    return Condition("attended", holds=True, told="nobody is at work on it or has acknowledged it")


def _quiet(case: Case) -> Condition:
    names = (case.trouble.component, *case.accelerators)
    for pattern in case.policy.quiet:
        for name in names:
            if fnmatchcase(name, pattern):
                return Condition("quiet", holds=False, told=f"{name} is on the quiet list ({pattern})")
    return Condition("quiet", holds=True, told="not on the quiet list")


def _itself(case: Case) -> Condition:
    incident = case.trouble.incident
    if incident is None:
        return Condition("cause", holds=True, told="it is itself the cause")
    return Condition("cause", holds=False, told=f"part of {incident}: the cause is not this {case.trouble.kind}")


def _stands(case: Case) -> Condition:
    stood_s = max(case.now - case.finding.since, 0.0)
    needs = case.policy.stands_s
    until = case.finding.since + needs
    told = f"has stood for {stood_s:.1f} s, needs {needs:g} s"
    return Condition("stands", stood_s >= needs, told, None if stood_s >= needs else until)


def _young(case: Case) -> Condition:
    age_s = max(case.now - case.finding.since, 0.0)
    most = case.policy.oldest_s
    until = case.finding.since + most
    told = f"is {age_s:.0f} s old, at most {most:g} s"
    return Condition("age", age_s <= most, told, until if age_s <= most else None)


def _known(case: Case) -> Condition:
    if (case.finding.rule, case.finding.case) in NEVER:
        return Condition("known", holds=False, told=f"{case.finding.rule} ({case.finding.case}) warns and never acts")
    return Condition("known", holds=True, told="its meaning is known")


def _works(case: Case) -> Condition:
    if not case.trouble.jobs:
        what = "works in no job, or is not known to be what fails"
        if case.trouble.kind is PolicySubject.HOST:
            what = "nothing that works in a job is on it"
        elif case.trouble.kind in {PolicySubject.CIRCUIT, PolicySubject.DEVICE}:
            what = "no accelerator is known to be its cause"
        return Condition("works", holds=False, told=what)
    told = "; ".join(f"{', '.join(accelerators)} in {job}" for job, accelerators in case.trouble.jobs.items())
    return Condition("works", holds=True, told=told)


def _can_be_paused(case: Case) -> Condition:
    if not case.by_hand:
        return Condition("pause", holds=True, told="each job is paused by its hook, or needs no pause")
    told = f"only a person can stop {', '.join(case.by_hand)} before its light moves: give it a hook"
    return Condition("pause", holds=False, told=f"{told}, or needs_no_pause: true")


def _switch(case: Case) -> Condition:
    stopped = case.memory.stopped
    return Condition("switch", stopped is None, "the autopilot runs" if stopped is None else f"stopped {stopped}")


def _halt(case: Case) -> Condition:
    why = case.memory.halted
    return Condition("halt", why is None, "no run of its own is in doubt" if why is None else f"halted: {why}")


def _hours(case: Case) -> Condition:
    open_now, until = hours.open_now(case.policy, case.now)
    told = f"{'within' if open_now else 'outside'} {hours.told(case.policy)}" if case.policy.hours else "at any time"
    return Condition("hours", open_now, told, until)


def breaker_of(case: Case) -> BreakerState:
    """The breaker of the case's policy in its rack."""
    return case.memory.breakers.get(case.policy.name, BreakerState())


def _breaker(case: Case) -> Condition:
    state = breaker_of(case)
    if state.open_since is None:
        return Condition("breaker", holds=True, told="the breaker is closed")
    return Condition("breaker", holds=False, told=state.why, until=closes_at(case.policy.breaker, case.onsets))


def _not_stale(case: Case) -> Condition:
    closed_at = breaker_of(case).closed_at
    if case.finding.since > closed_at:
        told = "it began after the breaker last closed" if closed_at else "it is news"
        return Condition("news", holds=True, told=told)
    return Condition("news", holds=False, told="it began before the breaker closed, and is left to people")


def _cooled_down(case: Case) -> Condition:
    needs, last = case.policy.cool_down_s, case.memory.last_change
    if last is None or case.now - last >= needs:
        return Condition("cool-down", holds=True, told=f"no change of the rack within {needs:g} s")
    told = f"the rack was changed {max(case.now - last, 0.0):.0f} s ago, needs {needs:g} s"
    return Condition("cool-down", holds=False, told=told, until=last + needs)


def _finished(case: Case) -> Condition:
    if not case.unfinished:
        return Condition("finished", holds=True, told="no run was cut or left half done")
    return Condition("finished", holds=False, told=f"{', '.join(case.unfinished)} was cut or left half done")


def _limits(case: Case) -> Iterator[Condition]:
    limits, memory, now = case.policy.limits, case.memory, case.now
    rows = (
        ("accelerator-week", limits.accelerator_week, WEEK_S, case.accelerators, "of it within a week"),
        ("rack-hour", limits.rack_hour, HOUR_S, None, f"in {case.trouble.rack} within an hour"),
        ("rack-day", limits.rack_day, DAY_S, None, f"in {case.trouble.rack} within a day"),
    )
    for name, most, window_s, accelerators, what in rows:
        tried = memory.tried(since=now - window_s, accelerators=accelerators)
        # The oldest of those that must have been forgotten before there is room again.
        frees = tried[len(tried) - most].at + window_s if most and len(tried) >= most else None
        yield Condition(name, len(tried) < most, f"{len(tried)} of {most} swaps {what}", frees)
