"""The differences between two reports: the history of a rack, one line for each state change of a component."""

from dataclasses import dataclass

from lumctl.health.states import Health, HealthReport, State


@dataclass(frozen=True, slots=True)
class Transition:
    """A component changed its state. ``before`` is ``None`` if it was unknown.

    ``kind`` is ``accelerator``, ``circuit``, ``link``, ``host`` or ``device``. ``rules`` are the rules whose findings
    give the present state, and ``evidence`` is that of the first finding. Without rules, ``evidence`` describes the
    work on the component, or the cause and rule of its incident; it is empty if the component is ok.
    """

    at: float
    component: str
    kind: str
    before: State | None
    after: State
    rules: tuple[str, ...]
    evidence: str


def transitions(before: HealthReport | None, after: HealthReport) -> tuple[Transition, ...]:
    """All changes of state, in the order of the report. A new component that is ok is not a change."""
    known = {} if before is None else before.groups()
    changed: list[Transition] = []
    for group, components in after.groups().items():
        for name, health in components.items():
            earlier = known.get(group, {}).get(name)
            was = None if earlier is None else earlier.state
            if health.state is not was and not (was is None and health.state is State.OK):
                changed.append(_transition(after, group.removesuffix("s"), was, health))
    return tuple(changed)


def _transition(after: HealthReport, kind: str, was: State | None, health: Health) -> Transition:
    telling = [finding for finding in health.findings if finding.state is health.state]
    # Out of service, or unknown because of another component: no finding has this state, so all of them are evidence.
    telling = telling or ([] if health.state is State.OK else list(health.findings))
    rules = tuple(dict.fromkeys(finding.rule for finding in telling))
    evidence = telling[0].evidence if telling else _elsewhere(after, health)
    return Transition(after.at, health.id, kind, was, health.state, rules, evidence)


def _elsewhere(report: HealthReport, health: Health) -> str:
    """Why a component without findings is not ok: work on it, or an incident that it belongs to."""
    if health.maintenance is not None:
        return f"in maintenance: {health.maintenance}"
    part_of = (i for i in report.incidents if health.state is State.UNKNOWN and health.id in i.members)
    return next((f"{incident.cause}: {incident.rule}" for incident in part_of), "")
