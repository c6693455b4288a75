"""Policies, receivers and sharing, from the document to the model. Values that make no sense are reported."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

from lumctl.inventory.model import Role, classes_of
from lumctl.inventory.policies import (
    DAYS,
    SWAPPABLE,
    ApprovalTerms,
    Breaker,
    Escalation,
    Hours,
    How,
    Limits,
    NotificationReceiver,
    Policy,
    PolicySubject,
    Selector,
)
from lumctl.inventory.policy_entries import HoursEntry, PolicyEntry, ReceiverEntry, SharingEntry
from lumctl.inventory.problems import Mark, listing
from lumctl.inventory.scope import Scope
from lumctl.inventory.sharing import Sharing
from lumctl.printable import counted

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])|24:00")


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


_WILD = re.compile(r"[*?\[]")


def resolve_policies(
    entries: Iterable[PolicyEntry], scope: Scope, receivers: Collection[str] = ()
) -> tuple[Policy, ...]:
    """The policies in the order of the file. ``receivers`` are known names. Values that make no sense are reported."""
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


def _resolved(entry: PolicyEntry, scope: Scope) -> Policy:
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
        matching=Selector(
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
        limits=Limits(**limits.model_dump()) if limits else Limits(),
        breaker=Breaker(**breaker.model_dump()) if breaker else Breaker(),
        timezone=entry.timezone,
        hours=tuple(hours for each in entry.hours or () if (hours := _hours(each, scope)) is not None),
        approval=ApprovalTerms(**approval.model_dump()) if approval else ApprovalTerms(),
        escalation=Escalation(**escalate.model_dump()) if escalate else Escalation(),
        rule_marks=tuple(entry.mark("rules", at, len(entry.rules)) for at in range(len(entry.rules))),
    )


def _check_kinds(entry: PolicyEntry, scope: Scope) -> None:
    if entry.how is How.NOTIFY:
        return
    for at, kind in enumerate(entry.kinds):
        if kind not in SWAPPABLE:
            mark = entry.mark("kinds", at, len(entry.kinds))
            able = listing(kind for kind in PolicySubject if kind in SWAPPABLE)
            scope.problems.add(mark, f"a swap does not repair a {kind}: expected {able}, or how: notify")


def _check_times(entry: PolicyEntry, scope: Scope) -> None:
    if entry.oldest_s <= entry.stands_s and not entry.cut("oldest_s", "stands_s"):
        scope.problems.add(
            entry.mark("oldest_s" if "oldest_s" in entry.model_fields_set else "stands_s"),
            f"a finding that has lasted {entry.stands_s:g} s is older than {entry.oldest_s:g} s: the policy would "
            "never act, expected oldest_s above stands_s",
        )


def _check_timezone(entry: PolicyEntry, scope: Scope) -> None:
    if entry.timezone == "UTC":
        return
    try:
        ZoneInfo(entry.timezone)
    # An unknown name is a LookupError, an absolute path a ValueError, and a folder of zones such as Europe an OSError.
    except (ValueError, OSError, LookupError):
        scope.problems.unknown(entry.mark("timezone"), "time zone", entry.timezone, available_timezones())


def _patterns(entry: PolicyEntry, key: str, known: Sequence[str], scope: Scope) -> tuple[str, ...]:
    """The patterns under a key. One that matches nothing is reported: a misspelt name would silently never match."""
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


def _hours(entry: HoursEntry, scope: Scope) -> Hours | None:
    begins, ends = _minutes(entry, "begins", scope), _minutes(entry, "ends", scope)
    if begins is None or ends is None:
        return None
    if begins == ends:
        scope.problems.add(entry.mark("ends"), f"found {entry.ends!r}, expected a time other than the beginning")
        return None
    return Hours(frozenset(DAYS.index(day) for day in entry.days or DAYS), begins, ends)


def _minutes(entry: HoursEntry, key: Literal["begins", "ends"], scope: Scope) -> int | None:
    text: str = getattr(entry, key)
    if not _CLOCK.fullmatch(text):
        mark: Mark = entry.mark(key)
        scope.problems.add(mark, f"found {text!r}, expected a time of day such as 08:30")
        return None
    hour, _, minute = text.partition(":")
    return int(hour) * 60 + int(minute)


def resolve_sharing(entry: SharingEntry | None, scope: Scope) -> Sharing:
    """How spares are shared. Unknown jobs and classes, and reserves that no rack can hold, are reported."""
    if entry is None:
        return Sharing()
    for job in entry.weights:
        scope.refer("job", job, scope.jobs, entry.item_mark("weights", job))
    classes = classes_of(scope.accelerators)
    spares = Counter((a.rack, classes[a.id]) for a in scope.accelerators.values() if a.role is Role.SPARE)
    for name, held in entry.reserve.items():
        mark = entry.item_mark("reserve", name)
        most = max((count for (_, of), count in spares.items() if of == name), default=0)
        if name not in classes.values():
            scope.problems.unknown(mark, "class", name, sorted(set(classes.values())), listed=True)
        elif held > most:
            scope.problems.add(
                mark, f"found a reserve of {held}, but no rack has more than {counted(most, 'spares')} of {name}"
            )
    return Sharing(
        policy=entry.policy,
        weights=dict(entry.weights),
        reserve=dict(entry.reserve),
        ageing_s=entry.ageing_s,
        preemption=entry.preemption,
        return_cost_s=entry.return_cost_s,
        mark=entry.mark("policy"),
    )


def resolve_receivers(entries: Iterable[ReceiverEntry], scope: Scope) -> dict[str, NotificationReceiver]:
    """The receivers by name. Values that make no sense are reported."""
    found: dict[str, NotificationReceiver] = {}
    for entry in entries:
        if entry.name in found:
            scope.problems.add(entry.mark("name"), f"receiver {entry.name!r} is defined twice")
        found[entry.name] = _receiver(entry, scope)
    return found


def _receiver(entry: ReceiverEntry, scope: Scope) -> NotificationReceiver:
    both = entry.webhook_file is not None and entry.command is not None
    neither = entry.webhook_file is None and entry.command is None
    if (both or neither) and not entry.cut("webhook_file", "command"):
        scope.problems.add(
            entry.mark("command"), f"found {'both' if both else 'neither'}, expected one of webhook_file and command"
        )
    if entry.token_file is not None and entry.webhook_file is None and not entry.cut("webhook_file"):
        scope.problems.add(entry.mark("token_file"), "a token needs a webhook_file")
    command = tuple(entry.command or ())
    if command and "/" not in command[0]:
        # A daemon does not have its operator's PATH.
        scope.problems.add(
            entry.mark("command", 0, len(command)), f"found {command[0]!r}, expected the path of a program"
        )
    elif command:
        command = (str(scope.path(command[0], entry.mark("command", 0, len(command)))), *command[1:])
    return NotificationReceiver(
        entry.name,
        scope.path(entry.webhook_file, entry.mark("webhook_file")) if entry.webhook_file else None,
        scope.path(entry.token_file, entry.mark("token_file")) if entry.token_file else None,
        command,
        entry.timeout_s,
        entry.give_up_after_s,
    )
