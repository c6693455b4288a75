"""What an operator is called for: one case for each incident, not one for each of the components that it touches."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lumctl.health.states import (
    DEFAULT_GRAVITY,
    SEVERITY,
    CircuitHealth,
    ComponentHealth,
    Finding,
    HealthReport,
    State,
    gravest_first,
    place_of,
)

NOT_YET = frozenset({"host.missed"})
"""Rules that find what may be the beginning of a fault, and mostly is none."""
OF_NO_WEIGHT = frozenset({State.OK, State.DISABLED})

Health = ComponentHealth | CircuitHealth


@dataclass(frozen=True, slots=True)
class Case:
    """Something that is wrong. ``key`` is that of the incident, or ``KIND:ID`` alike where there is none.

    ``silent``: a person knows of it, or is at work on it.
    """

    key: str
    component: str
    rule: str
    state: State
    since: float
    members: tuple[str, ...]
    summary: str
    findings: tuple[Finding, ...]
    silent: bool
    gravity: int = DEFAULT_GRAVITY

    @property
    def out_of_service(self) -> bool:
        """Whether nobody is called for it, and not because a person knows of it."""
        return self.silent and any(finding.acknowledged is None for finding in self.findings)


def cases_of(report: HealthReport) -> dict[str, Case]:
    """Every incident of a report, and every component with a finding of weight that is part of none, gravest first."""
    grouped: dict[str | None, list[tuple[Health, Finding]]] = {incident.id: [] for incident in report.incidents}
    alone: dict[tuple[str, str], list[tuple[Health, Finding]]] = {}
    for health in _components(report):
        for finding in health.findings:
            if finding.incident in grouped:
                grouped[finding.incident].append((health, finding))
            elif finding.state not in OF_NO_WEIGHT and finding.rule not in NOT_YET:
                alone.setdefault(place_of(health), []).append((health, finding))
    cases = [
        Case(
            incident.id,
            incident.cause,
            incident.rule,
            incident.state,
            incident.since,
            incident.members,
            incident.summary,
            gravest_first(finding for _, finding in grouped[incident.id]),
            silent=_silent(grouped[incident.id]),
            gravity=incident.gravity,
        )
        for incident in report.incidents
        if incident.state not in OF_NO_WEIGHT and incident.rule not in NOT_YET
    ]
    cases += [_own(*place, pairs) for place, pairs in alone.items()]
    return {case.key: case for case in gravest_first(cases)}


def states_of(report: HealthReport) -> dict[str, State]:
    """The worst state under each name: a host and its only accelerator may share one."""
    states: dict[str, State] = {}
    for health in _components(report):
        known = states.get(health.id, health.state)
        states[health.id] = max(known, health.state, key=SEVERITY.index)
    return states


def _own(kind: str, component: str, pairs: list[tuple[Health, Finding]]) -> Case:
    key = f"{kind}:{component}"
    findings = gravest_first(finding for _, finding in pairs)
    worst = findings[0]
    since = min(finding.since for finding in findings)
    summary = f"{component}: {worst.evidence}"
    silent = _silent(pairs)
    return Case(key, component, worst.rule, worst.state, since, (component,), summary, findings, silent, worst.gravity)


def _silent(pairs: list[tuple[Health, Finding]]) -> bool:
    """Whether every finding is known to a person, or of something that is out of service."""
    return bool(pairs) and all(f.acknowledged is not None or h.state is State.DISABLED for h, f in pairs)


def _components(report: HealthReport) -> Iterator[Health]:
    groups: Iterable[Mapping[str, Health]] = report.groups().values()
    for group in groups:
        yield from group.values()
