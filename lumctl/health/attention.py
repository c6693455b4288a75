"""What operators said about components: findings that are known, and times at which faults are expected."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A person knows of a finding. ``rule`` is ``None`` for all findings of the component.

    It ends at ``until`` (seconds since the epoch; ``None``: open), or when the finding has cleared; it does not cover
    a worse state than the one it was given for.
    """

    component: str
    rule: str | None
    by: str
    comment: str
    at: float
    until: float | None = None

    @property
    def told(self) -> str:
        """Who said what, as a finding carries it."""
        return f"by {self.by}: {self.comment}" if self.comment else f"by {self.by}"


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
        """Whether the work goes on at a time."""
        return self.starts <= now < self.ends

    @property
    def told(self) -> str:
        """Who works on what and why, as a component in maintenance carries it."""
        return f"{self.component} by {self.by}: {self.comment}" if self.comment else f"{self.component} by {self.by}"
