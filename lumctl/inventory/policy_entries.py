"""Policies as they are written, and from there to the model."""

import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from lumctl.inventory.entry import Entry, Text
from lumctl.inventory.policies import (
    DAYS,
    SWAPPABLE,
    Approval,
    Breaker,
    Escalation,
    Hours,
    How,
    Limits,
    Matching,
    Policy,
    Subject,
)
from lumctl.inventory.problems import listing

if TYPE_CHECKING:
    from lumctl.inventory.problems import Mark
    from lumctl.inventory.scope import Scope

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])|24:00")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_WILD = re.compile(r"[*?\[]")
_LIMITS, _BREAKER, _APPROVAL, _ESCALATION = Limits(), Breaker(), Approval(), Escalation()
WEEK_S = 7 * 86_400

Seconds = Annotated[float, Field(ge=0, le=WEEK_S, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1000)]
HowWord = Annotated[How, Field(strict=False)]
SubjectWord = Annotated[Subject, Field(strict=False)]
Patterns = Annotated[list[Text], Field(min_length=1)]


class LimitsEntry(Entry):
    """How many swaps may be tried; what is left out is as by default."""

    accelerator_week: Count = Field(_LIMITS.accelerator_week, description="Of one accelerator in seven days.")
    rack_hour: Count = Field(_LIMITS.rack_hour, description="In one rack in an hour.")
    rack_day: Count = Field(_LIMITS.rack_day, description="In one rack in a day.")


class BreakerEntry(Entry):
    """When too much of a rack fails at once for anything to be done unasked."""

    share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        _BREAKER.share, description="It opens when more than this share of the accelerators or of the hosts fail ..."
    )
    window_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = Field(
        _BREAKER.window_s, description="... within so many seconds ..."
    )
    least: Annotated[int, Field(ge=1, le=1000)] = Field(
        _BREAKER.least, description="... and so many of them at least, where the rack is small."
    )
    quiet_s: Seconds = Field(_BREAKER.quiet_s, description="It closes when nothing more has failed for so long.")


class HoursEntry(Entry):
    """A time of day at which a policy may act."""

    days: Annotated[list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]], Field(min_length=1)] | None = Field(
        None, description="The days on which it begins (default: all)."
    )
    begins: Text = Field("00:00", description="HH:MM in the policy's time zone.")
    ends: Text = Field("24:00", description="HH:MM; before the beginning: on the next day.")


class ApprovalEntry(Entry):
    """What an approval needs."""

    by_another: bool = Field(
        _APPROVAL.by_another, description="Whoever made the plan or applies it may not approve it."
    )
    expires_s: Annotated[float, Field(gt=0, le=WEEK_S, allow_inf_nan=False)] = Field(
        _APPROVAL.expires_s, description="How long a plan waits for its approval, and how long an approval holds."
    )
    by_hand: bool = Field(
        _APPROVAL.by_hand, description="Swaps that people plan of what this policy is about need an approval too."
    )


class EscalationEntry(Entry):
    """Whom to tell once more."""

    after_s: Seconds = Field(_ESCALATION.after_s, description="How long after nobody has approved a plan.")
    hook: Text | None = Field(None, description="The name of one of `receivers`, who is told as well.")


class PolicyEntry(Entry):
    """What may be done unasked about findings of one kind."""

    name: Text
    how: HowWord = Field(description="How far it may go.")
    rules: Patterns = Field(
        description="Rules, or RULE/CASE, as `lumctl health rules` has them; * stands for anything.",
        examples=[["gpu.lost", "gpu.xid/restart-machine"]],
    )
    kinds: Annotated[list[SubjectWord], Field(min_length=1)] = Field(
        [Subject.ACCELERATOR], description="What the finding is about."
    )
    states: Annotated[list[Literal["degraded", "failed"]], Field(min_length=1)] = Field(["failed"])
    components: Patterns | None = Field(None, description="Patterns of names (default: all).")
    jobs: Patterns | None = Field(None, description="Only what works in these jobs (default: in any).")
    racks: Patterns | None = Field(None, description="Only in these racks (default: in all).")
    quiet: Patterns | None = Field(None, description="Patterns of names that are left alone, come what may.")
    stands_s: Seconds = Field(30.0, description="How long a finding must have stood.")
    oldest_s: Seconds = Field(900.0, description="A finding that is older than this is left to people.")
    cool_down_s: Seconds = Field(600.0, description="How long after any change of the rack nothing is done.")
    limits: LimitsEntry | None = None
    breaker: BreakerEntry | None = None
    timezone: Text = Field("UTC", description="Of the hours, such as Europe/Berlin.")
    hours: Annotated[list[HoursEntry], Field(min_length=1)] | None = Field(
        None, description="When it may act (default: at any time)."
    )
    approval: ApprovalEntry | None = None
    escalate: EscalationEntry | None = None


def resolve_policies(
    entries: Iterable[PolicyEntry], scope: "Scope", receivers: Collection[str] = ()
) -> tuple[Policy, ...]:
    """The policies in the order of the file, by receivers of these names; what does not make sense is reported."""
    found: dict[str, Policy] = {}
    for entry in entries:
        if not _NAME.fullmatch(entry.name):
            scope.problems.add(entry.mark("name"), f"{entry.name!r} cannot be a name, expected letters, digits, - _ .")
        if entry.name in found:
            scope.problems.add(entry.mark("name"), f"policy {entry.name!r} is defined twice")
        found[entry.name] = _resolved(entry, scope)
        hook = entry.escalate.hook if entry.escalate is not None else None
        if entry.escalate is not None and hook is not None and hook not in receivers and hook not in scope.doubts.names:
            scope.problems.unknown(entry.escalate.mark("hook"), "receiver", hook, receivers)
    return tuple(found.values())


def _resolved(entry: PolicyEntry, scope: "Scope") -> Policy:
    _check_kinds(entry, scope)
    _check_times(entry, scope)
    _check_timezone(entry, scope)
    components = [*scope.hosts, *scope.accelerators, *scope.transponders, *scope.devices, *scope.racks]
    by_name = {
        "components": components,
        "jobs": list(scope.jobs),
        "racks": list(scope.racks),
        "quiet": components,
    }
    patterns = {key: _patterns(entry, key, known, scope) for key, known in by_name.items()}
    limits, breaker, approval, escalate = entry.limits, entry.breaker, entry.approval, entry.escalate
    return Policy(
        name=entry.name,
        how=entry.how,
        matching=Matching(
            rules=tuple(entry.rules),
            kinds=tuple(entry.kinds),
            states=tuple(entry.states),
            components=patterns["components"],
            jobs=patterns["jobs"],
            racks=patterns["racks"],
        ),
        quiet=patterns["quiet"],
        stands_s=entry.stands_s,
        oldest_s=entry.oldest_s,
        cool_down_s=entry.cool_down_s,
        limits=Limits(**limits.model_dump()) if limits else _LIMITS,
        breaker=Breaker(**breaker.model_dump()) if breaker else _BREAKER,
        timezone=entry.timezone,
        hours=tuple(hours for each in entry.hours or () if (hours := _hours(each, scope)) is not None),
        approval=Approval(**approval.model_dump()) if approval else _APPROVAL,
        escalation=Escalation(**escalate.model_dump()) if escalate else _ESCALATION,
        rule_marks=tuple(entry.mark("rules", at, len(entry.rules)) for at in range(len(entry.rules))),
    )


def _check_kinds(entry: PolicyEntry, scope: "Scope") -> None:
    if entry.how is How.NOTIFY:
        return
    for at, kind in enumerate(entry.kinds):
        if kind not in SWAPPABLE:
            mark = entry.mark("kinds", at, len(entry.kinds))
            able = listing(kind for kind in Subject if kind in SWAPPABLE)
            scope.problems.add(mark, f"a swap does nothing about a {kind}: expected {able}, or how: notify")


def _check_times(entry: PolicyEntry, scope: "Scope") -> None:
    if entry.oldest_s <= entry.stands_s and not entry.cut("oldest_s", "stands_s"):
        scope.problems.add(
            entry.mark("oldest_s" if "oldest_s" in entry.model_fields_set else "stands_s"),
            f"a finding that has stood for {entry.stands_s:g} s is older than {entry.oldest_s:g} s: nothing would ever "
            "be done, expected oldest_s above stands_s",
        )


def _check_timezone(entry: PolicyEntry, scope: "Scope") -> None:
    if entry.timezone == "UTC":
        return
    try:
        ZoneInfo(entry.timezone)
    except (ValueError, OSError, LookupError):
        scope.problems.unknown(entry.mark("timezone"), "time zone", entry.timezone, available_timezones())


def _patterns(entry: PolicyEntry, key: str, known: Sequence[str], scope: "Scope") -> tuple[str, ...]:
    """Patterns that match something each; a name that is misspelt would never match, and nobody would notice."""
    written: list[str] = getattr(entry, key) or []
    for at, pattern in enumerate(written):
        mark = entry.mark(key, at, len(written))
        if any(fnmatchcase(name, pattern) for name in known) or pattern in scope.doubts.names:
            continue
        if _WILD.search(pattern):
            scope.problems.add(mark, f"pattern {pattern!r} matches nothing in this file")
        else:
            scope.problems.unknown(mark, "name", pattern, known)
    return tuple(written)


def _hours(entry: HoursEntry, scope: "Scope") -> Hours | None:
    begins, ends = _minutes(entry, "begins", scope), _minutes(entry, "ends", scope)
    if begins is None or ends is None:
        return None
    if begins == ends:
        scope.problems.add(
            entry.mark("ends"), f"found {entry.ends!r}, expected another time than that of the beginning"
        )
        return None
    return Hours(frozenset(DAYS.index(day) for day in entry.days or DAYS), begins, ends)


def _minutes(entry: HoursEntry, key: Literal["begins", "ends"], scope: "Scope") -> int | None:
    text: str = getattr(entry, key)
    if not _CLOCK.fullmatch(text):
        mark: Mark = entry.mark(key)
        scope.problems.add(mark, f"found {text!r}, expected a time of day such as 08:30")
        return None
    hour, _, minute = text.partition(":")
    return int(hour) * 60 + int(minute)
