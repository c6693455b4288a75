"""States, findings and reports: the verdict of health on each component."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from math import inf
from typing import Protocol, TypeVar


class State(StrEnum):
    """A component's state. ``SEVERITY`` orders the states: among several, the last one in it counts."""

    OK = "ok"
    DISABLED = "disabled"
    UNKNOWN = "unknown"
    DEGRADED = "degraded"
    FAILED = "failed"


SEVERITY: tuple[State, ...] = (State.OK, State.DISABLED, State.UNKNOWN, State.DEGRADED, State.FAILED)
HARMLESS = frozenset({State.OK, State.DISABLED})
"""The states that need no attention: ok, and out of service. A finding of such a state is a note."""


def worst(states: tuple[State, ...]) -> State:
    """The most severe of some states; ``UNKNOWN`` if there are none, because nothing is ok by default."""
    return max(states, key=SEVERITY.index, default=State.UNKNOWN)


def is_fault(state: State) -> bool:
    """Whether a state means a fault, not only missing information."""
    return SEVERITY.index(state) >= SEVERITY.index(State.DEGRADED)


DEFAULT_GRAVITY = 50
"""The gravity of a rule that states none."""
SPARE_FIRST = "swap in a spare, then "
"""The start of the advice for an accelerator that may run a rank; removed if it is out of service or idle."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's verdict about a component: the rule and its case, the evidence, and the advice.

    ``since`` is the start of the present uninterrupted period in which it is active (seconds since the epoch).
    ``acknowledged`` is the user who acknowledged it and the comment, ``incident`` the id of its incident. ``about``
    distinguishes findings of one case if a component may have several (an XID, a receiver). ``gravity`` ranks findings
    of equal states; see ``rules/gravity.yaml``.
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case of a rule. ``limit`` has the unit ``unit`` of the reading; it is infinite if the case has none.

    If a case counts events, ``counter`` names what is counted and ``window_s`` is the time span. The value is the
    number of events in the window; with ``per_s`` it is a rate, in events per ``per_s`` seconds. ``strict``: the limit
    itself is still ok. ``limits`` are further numbers by name.

    A finding becomes active after its case was seen for ``appears_after_s`` and in ``appears_looks`` new readings.
    It stays until the case was not seen for ``clears_after_s``. A case with state ``ok`` makes a note, which is shown
    but does not affect the component's state. ``gravity`` ranks findings of equal states. ``edition`` is that of the
    file. ``ends`` is what ends an event of the kernel log: ``age``, ``reset`` (a GPU reset or a reboot of its host), or
    ``reboot``; an operator may end it as well.
    """

    rule: str
    case: str
    state: State
    advice: str
    origin: str
    limit: float = inf
    unit: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    counter: str = ""
    window_s: float = 0.0
    per_s: float = 0.0
    strict: bool = False
    appears_after_s: float = 0.0
    appears_looks: int = 1
    clears_after_s: float = 0.0
    ends: str = "age"
    gravity: int = DEFAULT_GRAVITY
    edition: str = ""

    @property
    def at_once(self) -> bool:
        """Whether one observation is enough to make the finding active."""
        return self.appears_looks <= 1 and self.appears_after_s <= 0

    def reached_by(self, events: int) -> bool:
        """Whether the number of events in the window fulfils the case."""
        value = self.rate(events)
        return value > self.limit if self.strict else value >= self.limit

    def rate(self, events: int) -> float:
        """Convert a number of events in the window to the unit of the limit."""
        return events * self.per_s / self.window_s if self.per_s else events


@dataclass(frozen=True, slots=True)
class LooksAt:
    """What a rule uses: the probes without which it finds nothing, and the names of the readings."""

    probes: frozenset[str] = frozenset()
    readings: tuple[str, ...] = ()


class Graded(Protocol):
    """Something with a state and a gravity: a finding or an incident."""

    @property
    def state(self) -> State:
        """The state that it gives the component."""

    @property
    def gravity(self) -> int:
        """Its rank among findings or incidents of the same state."""


T = TypeVar("T", bound=Graded)


def weight(graded: Graded) -> tuple[int, int]:
    """The rank of a finding or an incident, by its state, then its gravity; higher ranks are named first."""
    return SEVERITY.index(graded.state), graded.gravity


def gravest_first(graded: Iterable[T]) -> tuple[T, ...]:
    """Findings or incidents by weight; equals keep their order."""
    # `reverse` keeps the order of equals too.
    return tuple(sorted(graded, key=weight, reverse=True))


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings with one cause. ``cause`` is a component or a rack; ``members`` are all components that it affects.

    ``id`` stays the same as long as the incident lasts. ``rule``, ``state`` and ``gravity`` are those of its most
    severe finding, which ``summary`` gives. If no reading shows which component is at fault, ``suspects`` are the
    possible
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
    """State of one component, its findings worst first, and when it was last read (``None``: never).

    ``otherwise`` is its state without its findings. ``disabled``: it is out of service, regardless of its findings;
    ``maintenance`` describes the work on it, if any. ``seen`` are the probes that reported it at this observation:
    findings from other probes are neither confirmed nor refuted. ``if_used``: the rules that would find a fault in a
    lane that no circuit uses, if one used it as it is now.
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
    if_used: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CircuitEndHealth:
    """One end of a circuit as read. ``hears`` is the transponder that the receiver hears, or ``None``."""

    transponder: str
    device: str
    port: int
    rx_power_dbm: float | None
    hears: str | None
    expected: str | None


@dataclass(frozen=True, slots=True)
class CircuitHealth:
    """A circuit that a job needs, judged by what its receivers hear.

    The fields from ``findings`` on mean the same as in :class:`ComponentHealth`.
    """

    id: str
    owner: str
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

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of its ends, each once."""
        return tuple(dict.fromkeys(end.device for end in self.ends))


Health = ComponentHealth | CircuitHealth
"""The health of a component of any kind."""


def kind_and_id(health: Health) -> tuple[str, str]:
    """Kind and id of a component: a host and its only accelerator may share a name."""
    return ("circuit" if isinstance(health, CircuitHealth) else health.kind), health.id


@dataclass(frozen=True)
class HealthReport:
    """All verdicts of one evaluation, by component id, in the order of the inventory.

    ``slots`` are the known PCI slots of the accelerators, by which lines of kernel logs were assigned to them.
    """

    at: float
    hosts: Mapping[str, ComponentHealth]
    accelerators: Mapping[str, ComponentHealth]
    links: Mapping[str, ComponentHealth]
    devices: Mapping[str, ComponentHealth]
    circuits: Mapping[str, CircuitHealth]
    incidents: tuple[Incident, ...] = ()
    slots: Mapping[str, str] = field(default_factory=dict)

    def groups(self) -> dict[str, Mapping[str, Health]]:
        """All components by kind, in the order of importance to an operator."""
        return {
            "accelerators": self.accelerators,
            "circuits": self.circuits,
            "links": self.links,
            "hosts": self.hosts,
            "devices": self.devices,
        }

    @cached_property
    def with_findings(self) -> tuple[Health, ...]:
        """The components that have findings, in the order of :meth:`groups`: few of many, on most days."""
        return tuple(health for group in self.groups().values() for health in group.values() if health.findings)

    @cached_property
    def circuits_by_owner(self) -> "Mapping[str, tuple[CircuitHealth, ...]]":
        """The circuits of each job."""
        found: dict[str, list[CircuitHealth]] = {}
        for circuit in self.circuits.values():
            found.setdefault(circuit.owner, []).append(circuit)
        return {owner: tuple(circuits) for owner, circuits in found.items()}

    def why(self, health: Health, host: str) -> str:
        """Why a component that is read through a host is not ok: its own worst finding, or else that of the host."""
        if health.findings:
            return health.findings[0].evidence
        read_through = self.hosts.get(host)
        if read_through is not None and read_through.findings:
            return f"its host {host} is {read_through.state}: {read_through.findings[0].evidence}"
        return "it has no reading"

    def findings(self) -> tuple[Finding, ...]:
        """Every finding, worst first; equals are in the order of the inventory."""
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
    """All findings of some rules about one case, worst first; equals are in the order of the rules."""
    return gravest_first(finding for rule in rules for finding in rule(case))


Judged = TypeVar("Judged", ComponentHealth, CircuitHealth)


def judged(health: Judged, findings: tuple[Finding, ...]) -> Judged:
    """A component with these findings and the state that follows from them."""
    state = State.DISABLED if health.disabled else state_of(findings, otherwise=health.otherwise)
    return replace(health, findings=findings, state=state)


def state_of(findings: Iterable[Finding], *, otherwise: State) -> State:
    """The worst state of the findings; ``otherwise`` if none is worse than that."""
    return worst((otherwise, *(finding.state for finding in findings)))
