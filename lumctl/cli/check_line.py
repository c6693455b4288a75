"""The verdict of ``lumctl check`` in one line, by the convention of monitoring plug-ins."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lumctl.health.states import SEVERITY, Finding, State, gravest_first
from lumctl.printable import printable

if TYPE_CHECKING:
    from lumctl.context import Observation
    from lumctl.health.states import CircuitHealth, ComponentHealth

EXIT_CODES = {State.OK: 0, State.DISABLED: 0, State.DEGRADED: 1, State.FAILED: 2, State.UNKNOWN: 3}
WORDS = {0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN"}
_ILL = frozenset(SEVERITY[SEVERITY.index(State.UNKNOWN) :])
_SHORT = 60
"""How many characters a name may have in the short form."""
NAMED_AT_MOST = 3
"""A line goes to pagers and chat rooms: it names the gravest, ``status`` names all."""
Rank = tuple[int, int]
"""State and gravity of what a part of the line tells; the greatest comes first."""


def line(observation: "Observation", state: State) -> str:
    """The verdict in one line: incidents and what else is wrong, gravest first, with the findings of the worst state.

    What is a part of an incident is not told again; what is acknowledged or in maintenance is only counted.
    """
    from lumctl.cli.views import summary
    from lumctl.health.observation import acknowledged_count

    wrong = [*_incidents(observation), *_components(observation, state)]
    wrong += [(_UNFINISHED, f"run {run} is unfinished") for run in observation.unfinished]
    wrong.sort(key=lambda part: part[0], reverse=True)
    told = [text for _, text in wrong] or [_well(summary(observation))]
    if acknowledged := acknowledged_count(observation):
        told.append(f"{acknowledged} acknowledged")
    at_work = dict.fromkeys(window.component for window in observation.windows if window.open_at(observation.at))
    told += [f"maintenance on {component}" for component in at_work]
    if observation.not_kept is not None:
        told.append(f"not remembered: {observation.not_kept}")
    racks = ",".join(observation.inventory.racks)
    return f"LUMCTL {WORDS[EXIT_CODES[state]]} - {plain(racks)}: {plain('; '.join(told))}"


def _incidents(observation: "Observation") -> Iterator[tuple[Rank, str]]:
    """The gravest incidents by name, and how many others there are."""
    from lumctl.cli.views import incident_line
    from lumctl.health.observation import standing_incidents

    incidents = standing_incidents(observation)
    for incident in incidents[:NAMED_AT_MOST]:
        yield _rank(incident.state, incident.gravity), incident_line(incident)
    if others := incidents[NAMED_AT_MOST:]:
        yield _rank(others[0].state, others[0].gravity), f"{len(others)} more incidents"


def _components(observation: "Observation", state: State) -> Iterator[tuple[Rank, str]]:
    """How many components are in which state outside of incidents; those of the verdict's state by their findings."""
    from lumctl.health.observation import counted_states, own_trouble, standing_incidents

    counted = counted_states(observation)
    incidents = standing_incidents(observation)
    for bad in reversed(SEVERITY[SEVERITY.index(State.UNKNOWN) :]):
        for name, group in observation.report.groups().items():
            those = [h for h in group.values() if counted[name][h.id] is bad and own_trouble(h, incidents)]
            if those:
                findings = gravest_first(finding for h in those if (finding := _telling(h)) is not None)
                named = _named(findings) if bad is state else ""
                gravity = findings[0].gravity if findings else 0
                yield _rank(bad, gravity), f"{len(those)} of {len(group)} {name} {bad}{named}"


def short_line(observation: "Observation", state: State) -> str:
    """The verdict for the lock screen of a phone: the gravest thing by name and rule, and how many others there are."""
    from lumctl.cli.views import summary
    from lumctl.health.observation import counted_states, own_trouble, standing_incidents

    incidents = standing_incidents(observation)
    counted = counted_states(observation)
    found = [(_rank(each.state, each.gravity), f"{each.cause} {each.rule}") for each in incidents]
    for name, group in observation.report.groups().items():
        for health in group.values():
            finding = _telling(health)
            if finding is not None and counted[name][health.id] in _ILL and own_trouble(health, incidents):
                found.append((_rank(counted[name][health.id], finding.gravity), f"{health.id} {finding.rule}"))
    found += [(_UNFINISHED, f"{run} unfinished") for run in observation.unfinished]
    found.sort(key=lambda each: each[0], reverse=True)
    told = found[0][1] if found else _well(summary(observation))
    more = f", {len(found) - 1} more" if len(found) > 1 else ""
    place = _shortened(plain(",".join(observation.inventory.racks)))
    return f"{WORDS[EXIT_CODES[state]]} {place}: {_shortened(plain(told))}{more}"


def _rank(state: State, gravity: int) -> Rank:
    return SEVERITY.index(state), gravity


_UNFINISHED = _rank(State.DEGRADED, 0)
"""A run that waits for an operator is a warning, and follows the faults that are one."""


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def _telling(health: "ComponentHealth | CircuitHealth") -> Finding | None:
    """The gravest finding that nobody has acknowledged."""
    return next((finding for finding in health.findings if finding.acknowledged is None), None)


def _well(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How much is well: what a rack is for, else what there is (a capture may hold nothing but a table of ports)."""
    those = [name for name in ("accelerators", "circuits") if sum(counts[name].values())] or ["links", "hosts"]
    told = [f"{counts[name][State.OK]} {name if counts[name][State.OK] != 1 else name[:-1]}" for name in those]
    return f"{', '.join(told)} ok"


def _named(findings: Sequence[Finding]) -> str:
    named = [f"{finding.component}: {finding.evidence}" for finding in findings[:NAMED_AT_MOST]]
    if len(findings) > NAMED_AT_MOST:
        named.append(f"{len(findings) - NAMED_AT_MOST} more")
    return f" ({', '.join(named)})" if named else ""


def plain(text: str) -> str:
    """Text for one line: the convention takes ``|`` for the start of the performance data."""
    return printable(" ".join(text.replace("|", "/").split()))
