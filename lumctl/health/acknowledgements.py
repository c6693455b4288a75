"""What operators stated about components: known findings, ended events, and maintenance windows."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lumctl.health.states import SEVERITY, Finding, State


class CoveredFinding(NamedTuple):
    """A finding that an acknowledgement covers, up to ``state``; ``about`` distinguishes findings of one rule."""

    component: str
    rule: str
    about: str
    state: str

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is this one, in the same or a less severe state."""
        # The case is not compared: a fault may go on under another case of its rule, if its state is no worse.
        same = (finding.component, finding.rule, finding.about) == self[:3]
        return same and SEVERITY.index(finding.state) <= SEVERITY.index(State(self.state))

    @property
    def words(self) -> str:
        """Rule and state, and the subject of the finding if it has one: ``gpu.xid 79 (failed)``."""
        return f"{self.rule}{f' {self.about}' if self.about else ''} ({self.state})"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An operator acknowledges findings of a component. ``rule`` is ``None`` for all findings that it had at that time.

    An acknowledgement ends at ``until`` (seconds since the epoch; ``None``: open), or when the findings have cleared.
    ``covers`` lists the findings that the operator acknowledged; ``None`` if they are unknown. The acknowledgement
    covers no other finding and no worse state.
    """

    component: str
    rule: str | None
    by: str
    comment: str
    at: float
    until: float | None = None
    covers: tuple[CoveredFinding, ...] | None = None

    @property
    def told(self) -> str:
        """The user and the comment, as shown with a finding."""
        return f"by {self.by}: {self.comment}" if self.comment else f"by {self.by}"

    @property
    def covers_text(self) -> str:
        """The findings that it covers; a finding of another component is shown with that component's name."""
        if self.covers is None:
            return f"{self.rule or 'all'}, with the evidence of the next observation"
        own = self.component
        return ", ".join(e.words if e.component == own else f"{e.component}: {e.words}" for e in self.covers)

    def concerns(self, components: Collection[str]) -> bool:
        """Whether it covers one of these components."""
        return self.component in components or any(entry.component in components for entry in self.covers or ())


def acknowledgement_from(document: Mapping[str, Any]) -> Acknowledgement:
    """Read an acknowledgement from JSON values."""
    covers = document.get("covers")
    return Acknowledgement(**{**document, "covers": covered_from(covers)})


def covered_from(written: Any) -> tuple[CoveredFinding, ...] | None:
    """Read from JSON values what an acknowledgement covers."""
    return None if written is None else tuple(CoveredFinding(*map(str, entry)) for entry in written)


def covered(findings: Iterable[Finding]) -> tuple[CoveredFinding, ...]:
    """What an acknowledgement of these findings covers: each in its worst state."""
    worst: dict[tuple[str, str, str], State] = {}
    for finding in findings:
        key = (finding.component, finding.rule, finding.about)
        worst[key] = max(worst.get(key, finding.state), finding.state, key=SEVERITY.index)
    return tuple(CoveredFinding(*key, state.value) for key, state in worst.items())


@dataclass(frozen=True, slots=True)
class EventClear:
    """An operator ends the error events (XIDs, SXids) of an accelerator or a host that were seen up to ``at``.

    ``rule`` is ``None`` for all rules. ``at`` is in seconds since the epoch.
    """

    component: str
    rule: str | None
    by: str
    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """Work on a component from ``starts`` to ``ends`` (seconds since the epoch).

    A window on an accelerator covers its links. A window on a host covers everything on the host, and a window on a
    rack everything in the rack. If one end of a circuit is covered, the circuit and the link at its other end are
    covered too.
    """

    id: str
    component: str
    by: str
    comment: str
    starts: float
    ends: float

    def open_at(self, now: float) -> bool:
        """Whether the window is open at a time."""
        return self.starts <= now < self.ends

    @property
    def told(self) -> str:
        """Who works on what and why, as shown with a component in maintenance."""
        return f"{self.component} by {self.by}: {self.comment}" if self.comment else f"{self.component} by {self.by}"
