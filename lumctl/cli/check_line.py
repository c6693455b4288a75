"""The verdict of ``lumctl check`` in one line, by the convention of monitoring plug-ins."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lumctl.health.states import SEVERITY, Finding, State
from lumctl.printable import printable

if TYPE_CHECKING:
    from lumctl.health.states import CircuitHealth, ComponentHealth
    from lumctl.site import Observation

EXIT_CODES = {State.OK: 0, State.DISABLED: 0, State.DEGRADED: 1, State.FAILED: 2, State.UNKNOWN: 3}
WORDS = {0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN"}
_ILL = frozenset(SEVERITY[SEVERITY.index(State.UNKNOWN) :])
_SHORT = 60
"""How many characters a name may have in the short form."""
NAMED_AT_MOST = 3
"""A line goes to pagers and chat rooms: it names the worst, ``status`` names all."""


def line(observation: "Observation", state: State) -> str:
    """The verdict in one line: incidents first, then what else is wrong, worst first, with the findings of the worst.

    What is a part of an incident is not told again; what is acknowledged or in maintenance is only counted.
    """
    from lumctl.cli.views import incident_line, summary
    from lumctl.site.counted import acknowledged_count, counted_states, own_trouble, standing_incidents

    counted = counted_states(observation)
    incidents = standing_incidents(observation)
    told = [incident_line(incident) for incident in incidents[:NAMED_AT_MOST]]
    if len(incidents) > NAMED_AT_MOST:
        told.append(f"{len(incidents) - NAMED_AT_MOST} more incidents")
    for bad in reversed(SEVERITY[SEVERITY.index(State.UNKNOWN) :]):
        for name, group in observation.report.groups().items():
            those = [h for h in group.values() if counted[name][h.id] is bad and own_trouble(h, incidents)]
            if those:
                findings = [finding for h in those if (finding := _telling(h)) is not None]
                named = _named(findings) if bad is state else ""
                told.append(f"{len(those)} of {len(group)} {name} {bad}{named}")
    told += [f"run {run} is unfinished" for run in observation.unfinished]
    told = told or [_well(summary(observation))]
    if acknowledged := acknowledged_count(observation):
        told.append(f"{acknowledged} acknowledged")
    at_work = dict.fromkeys(window.component for window in observation.windows if window.open_at(observation.at))
    told += [f"maintenance on {component}" for component in at_work]
    if observation.not_kept is not None:
        told.append(f"not remembered: {observation.not_kept}")
    racks = ",".join(observation.inventory.racks)
    return f"LUMCTL {WORDS[EXIT_CODES[state]]} - {plain(racks)}: {plain('; '.join(told))}"


def short_line(observation: "Observation", state: State) -> str:
    """The verdict for the lock screen of a phone: the gravest thing by name and rule, and how many others there are."""
    from lumctl.cli.views import summary
    from lumctl.site.counted import counted_states, own_trouble, standing_incidents

    incidents = standing_incidents(observation)
    counted = counted_states(observation)
    found = [(incident.state, f"{incident.cause} {incident.rule}") for incident in incidents]
    for name, group in observation.report.groups().items():
        for health in group.values():
            finding = _telling(health)
            if finding is not None and counted[name][health.id] in _ILL and own_trouble(health, incidents):
                found.append((counted[name][health.id], f"{health.id} {finding.rule}"))
    found += [(State.DEGRADED, f"{run} unfinished") for run in observation.unfinished]
    found.sort(key=lambda each: -SEVERITY.index(each[0]))
    told = found[0][1] if found else _well(summary(observation))
    more = f", {len(found) - 1} more" if len(found) > 1 else ""
    place = _shortened(plain(",".join(observation.inventory.racks)))
    return f"{WORDS[EXIT_CODES[state]]} {place}: {_shortened(plain(told))}{more}"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def _telling(health: "ComponentHealth | CircuitHealth") -> Finding | None:
    """The worst finding that nobody has acknowledged."""
    return next((finding for finding in health.findings if finding.acknowledged is None), None)


def _well(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How much is well: what a rack is for, else what there is (a capture may hold nothing but a table of ports)."""
    those = [name for name in ("accelerators", "circuits") if sum(counts[name].values())] or ["links", "hosts"]
    told = [f"{counts[name][State.OK]} {name if counts[name][State.OK] != 1 else name[:-1]}" for name in those]
    return f"{', '.join(told)} ok"


def _named(findings: list[Finding]) -> str:
    named = [f"{finding.component}: {finding.evidence}" for finding in findings[:NAMED_AT_MOST]]
    if len(findings) > NAMED_AT_MOST:
        named.append(f"{len(findings) - NAMED_AT_MOST} more")
    return f" ({', '.join(named)})" if named else ""


def plain(text: str) -> str:
    """Text for one line: the convention takes ``|`` for the start of the performance data."""
    return printable(" ".join(text.replace("|", "/").split()))
