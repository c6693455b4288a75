"""Whether policies speak of rules that there are: the inventory does not know the rules, and a slip never matches."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from lumctl.health.rulebook import all_lines
from lumctl.inventory.model import Inventory
from lumctl.inventory.policies import How, Policy
from lumctl.inventory.problems import Problems


def require_sound(inventory: Inventory) -> None:
    """Refuse policies that could never mean anything.

    Raises:
        InventoryError: a rule is not known; each is named with file, line and column.
    """
    problems = Problems(inventory.path)
    lines = all_lines()
    known = [*dict.fromkeys(line.rule for line in lines), *(f"{line.rule}/{line.case}" for line in lines)]
    for policy in inventory.policies:
        for pattern, mark in zip(policy.matching.rules, policy.rule_marks, strict=False):
            if not any(fnmatchcase(word, pattern) for word in known):
                problems.unknown(mark, "rule", pattern, known)
    if problems:
        raise problems.error()


def remarks(inventory: Inventory) -> Iterator[str]:
    """What is allowed, and may not be what was meant."""
    for policy in inventory.policies:
        yield from (f"{policy.name}: {said}" for said in _remarks(policy))
    for at, policy in enumerate(inventory.policies):
        for earlier in inventory.policies[:at]:
            if _covers(earlier, policy):
                yield f"{policy.name}: it never decides, for {earlier.name} before it speaks of all that it does"
                break


def _remarks(policy: Policy) -> Iterator[str]:
    if policy.how is How.NOTIFY:
        return
    if policy.stands_s < 1:
        yield f"stands_s is {policy.stands_s:g}: the first fault of a storm is acted upon before the storm is seen"
    if policy.breaker.share >= 1:
        yield "breaker.share is 1: the breaker never opens"
    limits = policy.limits
    if 0 in {limits.accelerator_week, limits.rack_hour, limits.rack_day}:
        yield "a limit is 0: it never acts"
    if policy.how is How.APPLY and policy.approval.by_another:
        yield "approval.by_another means nothing where how is apply, but for what is planned by hand"


def _covers(earlier: Policy, later: Policy) -> bool:
    """Whether all that a policy matches is matched by an earlier one already; in doubt it is not."""
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
