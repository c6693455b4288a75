"""The record of one recovery: what happened and when."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class RecoveryRecord:
    """One recovery. Times are seconds since the epoch; ``at`` is when the failure was known, t0 of all durations."""

    cause: str
    at: float
    failed: tuple[str, ...]
    caused_at: float = math.inf
    """When that failed which the cause names; infinity if that is a peer's word for it."""
    error: Mapping[str, Any] | None = None
    """The error of a script that is the cause, with its rank and its log."""
    bad: dict[str, str] = field(default_factory=dict)
    """The accelerators that were not well, with the reason."""
    replaced: dict[str, str] = field(default_factory=dict)
    without: list[int] = field(default_factory=list)
    """The ranks that the job went on without."""
    run: str | None = None
    """The run of the swap, if there was one."""
    marks: dict[str, float] = field(default_factory=dict)

    def mark(self, name: str, at: float) -> None:
        """Record the time of a moment; a repeated moment overwrites the earlier time."""
        self.marks[name] = at

    def since(self, name: str) -> float | None:
        """Seconds from the failure to a moment; ``None`` if it never came."""
        at = self.marks.get(name)
        return None if at is None else round(at - self.at, 4)

    def line(self) -> str:
        """The recovery in a line."""
        took = self.since("step")
        ways = [f"{failed} replaced by {spare}" for failed, spare in self.replaced.items()]
        ways += [f"without rank {rank}" for rank in self.without]
        how = ", ".join(ways) or "in place"
        light = self.since("verified")
        shown = f", circuits verified after {light:.3f} s" if light is not None else ""
        return f"recovered ({how}): the next step was done {took:.3f} s after the failure was seen{shown}"

    def document(self) -> dict[str, Any]:
        """The recovery as data."""
        return {
            "at": self.at,
            "cause": self.cause,
            "failed": list(self.failed),
            "script_error": self.error,
            "replaced_by": self.replaced,
            "without": self.without,
            "failure_to_circuits_s": self.since("verified"),
            "failure_to_step_s": self.since("step"),
            "run": self.run,
            "marks": {name: self.since(name) for name in self.marks},
        }
