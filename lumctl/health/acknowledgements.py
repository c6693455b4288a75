"""What operators stated about components: known findings, ended events, and maintenance windows."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lumctl.health.states import SEVERITY, Finding, State


class CoveredFinding(NamedTuple):
    """A finding that an acknowledgement covers, up to a state; ``about`` distinguishes findings of one rule."""

    component: str
    rule: str
    about: str
    state: str

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is this one, and not worse."""
        same = (finding.component, finding.rule, finding.about) == self[:3]
        return same and SEVERITY.index(finding.state) <= SEVERITY.index(State(self.state))

    @property
    def words(self) -> str:
        """Rule and state, and the subject of the finding if it has one: ``gpu.xid 79 (failed)``."""
        return f"{self.rule}{f' {self.about}' if self.about else ''} ({self.state})"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A person knows of a finding. ``rule`` is ``None`` for all findings that the component had then.

    It ends at ``until`` (seconds since the epoch; ``None``: open), or when the findings have cleared. ``covers`` are
    the findings that it was given for, ``None`` where that is not known; it covers no others, and no worse state.
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
        """The user and the comment, as a finding carries them."""
        return f"by {self.by}: {self.comment}" if self.comment else f"by {self.by}"

    @property
    def covers_text(self) -> str:
        """The findings that it covers, each with the component where that is another one than its own."""
        if self.covers is None:
            return f"{self.rule or 'all'}, as the next look finds it"
        own = self.component
        return ", ".join(e.words if e.component == own else f"{e.component}: {e.words}" for e in self.covers)

    def concerns(self, components: Collection[str]) -> bool:
        """Whether it covers one of these components."""
        return self.component in components or any(entry.component in components for entry in self.covers or ())


def acknowledgement_from(document: Mapping[str, Any]) -> Acknowledgement:
    """An acknowledgement whose fields went through JSON."""
    covers = document.get("covers")
    return Acknowledgement(**{**document, "covers": covered_from(covers)})


def covered_from(written: Any) -> tuple[CoveredFinding, ...] | None:
    """What an acknowledgement covers, out of JSON values."""
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

    A window on an accelerator covers its links, on a host everything on it, on a rack everything in it; circuits are
    covered with either of their ends, and so are the links at their other ends.
    """

    id: str
    component: str
    by: str
    comment: str
    starts: float
    ends: float

    def open_at(self, now: float) -> bool:
        """Whether the work continues at a time."""
        return self.starts <= now < self.ends

    @property
    def told(self) -> str:
        """Who works on what and why, as a component in maintenance carries it."""
        return f"{self.component} by {self.by}: {self.comment}" if self.comment else f"{self.component} by {self.by}"
