"""The rules by name, and what there is to acknowledge of a component."""

from typing import TYPE_CHECKING

from lumctl.errors import RefusedError, UsageError
from lumctl.health.states import State
from lumctl.inventory.problems import nearest

if TYPE_CHECKING:
    from lumctl.context import Observation
    from lumctl.health.states import Finding


def require_rule(rule: str) -> None:
    """Check that there is a rule of this name.

    Raises:
        UsageError: there is none.
    """
    from lumctl.health.rulebook import all_rules

    rules = all_rules()
    if rule not in rules:
        near = nearest(rule, rules)
        raise UsageError(
            f"no rule {rule!r}", hint=f"did you mean {near}?" if near else "the rules are: lumctl health rules"
        )


def faults_of(seen: "Observation", component: str) -> "list[Finding]":
    """The faults of a component, or of everything in a rack.

    Notes are left out: ``check`` does not count them, and they need no acknowledgement.
    """
    from lumctl.health.observation import rack_of

    findings = [finding for finding in seen.report.findings() if finding.state is not State.OK]
    if component in seen.inventory.racks:
        return [f for f in findings if rack_of(seen.inventory, f.component, seen.circuits) == component]
    return [finding for finding in findings if finding.component == component]


def nothing_to_acknowledge(
    seen: "Observation", component: str, rule: str | None, standing: "list[Finding]"
) -> RefusedError:
    """The refusal to acknowledge what is not there. ``standing`` are the faults that other rules find."""
    if standing:
        found = ", ".join(dict.fromkeys(finding.rule for finding in standing))
        return RefusedError(
            f"{rule} finds no fault of {component}; {found} does",
            hint=f"to acknowledge all that is found: lumctl health ack {component} --comment WHY",
        )
    inventory = seen.inventory
    states = {group[component].state.value for group in seen.report.groups().values() if component in group}
    on = inventory.accelerators.get(component) or inventory.transponders.get(component)
    hint = f"see why: lumctl health explain {component}"
    if on and faults_of(seen, on.host):
        hint = f"its host has some: lumctl health ack {on.host} --comment WHY"
    is_so = f"is {' and '.join(sorted(states))} and " if states else ""
    return RefusedError(f"{component} {is_so}has no faults: there is nothing to acknowledge", hint=hint)
