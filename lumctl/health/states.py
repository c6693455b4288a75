"""States, findings and reports: the verdict of health on each component."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol, TypeVar


class State(StrEnum):
    """A component's state. The order of ``SEVERITY`` decides which of several wins."""

    OK = "ok"
    DISABLED = "disabled"
    UNKNOWN = "unknown"
    DEGRADED = "degraded"
    FAILED = "failed"


SEVERITY: tuple[State, ...] = (State.OK, State.DISABLED, State.UNKNOWN, State.DEGRADED, State.FAILED)


def worst(states: tuple[State, ...]) -> State:
    """The most severe of some states; ``UNKNOWN`` of none, for nothing is ok by default."""
    return max(states, key=SEVERITY.index, default=State.UNKNOWN)


def is_fault(state: State) -> bool:
    """Whether a state means a fault, not only missing information."""
    return SEVERITY.index(state) >= SEVERITY.index(State.DEGRADED)


DEFAULT_GRAVITY = 50
"""The gravity of a rule that states none."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's verdict about a component: the rule and its case, the evidence, and the advice.

    ``since`` is when it first became active without a break (seconds since the epoch). ``acknowledged`` is the user
    who knows of it and the comment, ``incident`` the id of its incident. ``about`` distinguishes findings of one case
    if a component may have several (an XID, a receiver). ``gravity`` ranks findings of equal states; see
    ``rules/gravity.yaml``.
    """

    component: str
    rule: str
    state: State
    evidence: str
    advice: str
    since: float
    case: str = ""
    acknowledged: str | None = None
    incident: str | None = None
    about: str = ""
    gravity: int = DEFAULT_GRAVITY


class Graded(Protocol):
    """What has a state and a gravity: a finding, an incident."""

    @property
    def state(self) -> State:
        """How ill the component is by it."""

    @property
    def gravity(self) -> int:
        """Its rank among those of equal states."""


T = TypeVar("T", bound=Graded)


def weight(graded: Graded) -> tuple[int, int]:
    """The rank of a finding or an incident: the higher one is named first. Its state decides, then its gravity."""
    return SEVERITY.index(graded.state), graded.gravity


def gravest_first(graded: Iterable[T]) -> tuple[T, ...]:
    """Findings or incidents by weight; equals keep their order."""
    return tuple(sorted(graded, key=weight, reverse=True))


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings with one cause. ``cause`` is a component or a rack; ``members`` are all components that it affects.

    ``id`` stays the same as long as the incident lasts. ``rule``, ``state`` and ``gravity`` are those of its gravest
    finding, which ``summary`` names. If no reading shows which component is at fault, ``suspects`` are the possible
    ones: transponders, each with the fibre, media converter and port behind it, or PUCs.
    """

    id: str
    cause: str
    rule: str
    state: State
    since: float
    members: tuple[str, ...]
    summary: str
    suspects: tuple[str, ...] = ()
    gravity: int = DEFAULT_GRAVITY


@dataclass(frozen=True, slots=True)
class ComponentHealth:
    """State of one component, its findings gravest first, and when it was last read (``None``: never).

    ``otherwise`` is its state without its findings, and ``disabled``: it is out of service, whatever the findings;
    ``maintenance`` describes the work. ``seen`` are the probes that reported it at this observation: a finding of
    another probe is neither confirmed nor refuted.
    """

    id: str
    kind: str
    state: State
    findings: tuple[Finding, ...] = ()
    read_at: float | None = None
    otherwise: State = State.UNKNOWN
    maintenance: str | None = None
    disabled: bool = False
    seen: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CircuitEndHealth:
    """One end of a circuit as read. ``hears`` is the transponder that the receiver hears, or ``None``."""

    transponder: str
    port: int
    rx_power_dbm: float | None
    hears: str | None
    expected: str | None


@dataclass(frozen=True, slots=True)
class CircuitHealth:
    """A circuit that a job needs, judged by what its receivers hear. Its last fields are those of every component."""

    id: str
    owner: str
    device: str
    direction: str
    state: State
    ends: tuple[CircuitEndHealth, ...]
    loss_db: float | None
    findings: tuple[Finding, ...] = ()
    read_at: float | None = None
    otherwise: State = State.UNKNOWN
    maintenance: str | None = None
    disabled: bool = False
    seen: frozenset[str] = frozenset()


def place_of(health: ComponentHealth | CircuitHealth) -> tuple[str, str]:
    """Kind and id of a component: a host and its only accelerator may share a name."""
    return ("circuit" if isinstance(health, CircuitHealth) else health.kind), health.id


@dataclass(frozen=True, slots=True)
class HealthReport:
    """All verdicts of one evaluation, by component id, in the order of the inventory."""

    at: float
    hosts: Mapping[str, ComponentHealth]
    accelerators: Mapping[str, ComponentHealth]
    links: Mapping[str, ComponentHealth]
    devices: Mapping[str, ComponentHealth]
    circuits: Mapping[str, CircuitHealth]
    incidents: tuple[Incident, ...] = ()

    def groups(self) -> dict[str, Mapping[str, ComponentHealth | CircuitHealth]]:
        """All components by what they are, in the order of importance to an operator."""
        return {
            "accelerators": self.accelerators,
            "circuits": self.circuits,
            "links": self.links,
            "hosts": self.hosts,
            "devices": self.devices,
        }

    def findings(self) -> tuple[Finding, ...]:
        """Every finding, gravest first, then in the order of the inventory."""
        everything = [
            finding
            for group in (self.hosts, self.devices, self.accelerators, self.links, self.circuits)
            for component in group.values()
            for finding in component.findings
        ]
        return gravest_first(everything)


Case = TypeVar("Case")
Rule = Callable[[Case], Iterator[Finding]]


def judge(rules: Iterable[Rule[Case]], case: Case) -> tuple[Finding, ...]:
    """All findings of some rules about one case, gravest first, else in the order of the rules."""
    return gravest_first(finding for rule in rules for finding in rule(case))


Judged = TypeVar("Judged", ComponentHealth, CircuitHealth)


def judged(health: Judged, findings: tuple[Finding, ...]) -> Judged:
    """A component with these findings and the state that follows from them."""
    state = State.DISABLED if health.disabled else state_of(findings, otherwise=health.otherwise)
    return replace(health, findings=findings, state=state)


def state_of(findings: Iterable[Finding], *, otherwise: State) -> State:
    """The worst state of the findings; ``otherwise`` if none is worse."""
    return worst((otherwise, *(finding.state for finding in findings)))
