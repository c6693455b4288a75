"""The state of every component, who knows of it, and how old what is known is."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.making import gauge
from lumctl.health.states import State
from lumctl.site.counted import counted_states
from lumctl.site.observation import Observation

_LABELS = ("kind", "id")
_OF_NO_WEIGHT = frozenset({State.OK, State.DISABLED})


def components(look: Observation, now: float, *, ages: bool) -> Iterator[Metric]:
    """One series of each family for each component, and one for each state that it may be in."""
    states = gauge("component_state", "Whether a component is in a state (1) or not (0).", [*_LABELS, "state"])
    read_at = gauge("component_read_timestamp_seconds", "When a component was last read.", _LABELS)
    age = gauge("component_read_age_seconds", "How long ago a component was last read.", _LABELS)
    maintenance = gauge("component_in_maintenance", "1 for each component in a maintenance window.", _LABELS)
    known = gauge("component_acknowledged", "1 for each ill component of which all that counts is known.", _LABELS)
    counted = counted_states(look)
    for group, of_group in look.report.groups().items():
        kind = group.removesuffix("s")
        for health in of_group.values():
            place = [look.target, kind, health.id]
            for state in State:
                states.add_metric([*place, state.value], float(health.state is state))
            if health.maintenance is not None:
                maintenance.add_metric(place, 1)
            if health.state not in _OF_NO_WEIGHT and counted[group][health.id] is State.OK:
                known.add_metric(place, 1)
            if health.read_at is not None:
                read_at.add_metric(place, health.read_at)
                age.add_metric(place, max(now - health.read_at, 0.0))
    yield states
    yield read_at
    yield maintenance
    yield known
    if ages:
        yield age
