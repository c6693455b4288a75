"""How rules are asked: every rule is a function from a case to findings; none raises and none knows of the others."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from lumctl.health.states import CircuitHealth, ComponentHealth, Finding, State, gravest_first, worst

Case = TypeVar("Case")
Rule = Callable[[Case], Iterator[Finding]]


def judge(rules: Iterable[Rule[Case]], case: Case) -> tuple[Finding, ...]:
    """All findings of some rules about one case, gravest first, else in the order of the rules."""
    return gravest_first(finding for rule in rules for finding in rule(case))


Judged = TypeVar("Judged", ComponentHealth, CircuitHealth)


def judged(health: Judged, findings: tuple[Finding, ...]) -> Judged:
    """A component with these findings, and the state that they give it."""
    state = State.DISABLED if health.disabled else state_of(findings, otherwise=health.otherwise)
    return replace(health, findings=findings, state=state)


def state_of(findings: Iterable[Finding], *, otherwise: State) -> State:
    """The worst state that findings give a component, ``otherwise`` where none is worse than it."""
    return worst((otherwise, *(finding.state for finding in findings)))
