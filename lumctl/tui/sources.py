"""Where the dashboard reads, and what its screens share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lumctl.errors import UsageError
from lumctl.health.observation import Observation
from lumctl.tui.actions import Acts, PlanView
from lumctl.tui.look.marks import Marks
from lumctl.tui.threads.apply import Applying
from lumctl.tui.views.comparison import Comparing, ComparisonView
from lumctl.tui.views.history import History, Kept, Ring, joined, nothing_kept
from lumctl.tui.views.meshes import MeshView
from lumctl.tui.views.records import RecordedLook, Records
from lumctl.tui.views.runs import RunView


def no_run(name: str) -> RunView:
    """The answer of a dashboard without a store."""
    raise UsageError(f"no run {name!r}: this dashboard reads no store")


def no_store(*_: object) -> Any:
    """As :func:`no_run`, of anything else that a store keeps."""
    raise UsageError("this dashboard reads no store")


def no_mesh(device: str) -> MeshView:
    """The answer of a dashboard that asks no device."""
    raise UsageError(f"{device} is not read: this dashboard asks no device")


@dataclass(frozen=True, slots=True)
class Sources:
    """What the dashboard reads with. Every call blocks, so that threads make it, and may raise ``LumctlError``."""

    observe: Callable[[], Observation]
    records: Callable[[], Records] = Records
    run: Callable[[str], RunView] = no_run
    mesh: Callable[[str], MeshView] = no_mesh
    runbook: Callable[[str], Mapping[str, Any]] = no_store
    """The runbook of a run, ``RACK/ID``, as ``runbook show`` prints it; each step with what it needs and proves."""
    compare: Callable[[str, str], ComparisonView] = no_store
    """How the runbooks of two runs differ."""
    explain: Callable[[Observation, str], Sequence[Mapping[str, Any]]] = no_store
    """What would be decided in a rack by a look, as ``policy explain`` prints it; nothing is done."""
    asked_plan: Callable[[str, str], PlanView] = no_store
    """A plan that waits for approval, by its rack and its id."""

    history: Kept = nothing_kept
    """What the store keeps of a component's readings, so many seconds back."""
    ring: Ring = field(default_factory=Ring)

    def look(self) -> RecordedLook:
        """Everything that is shown all the time; its readings are remembered for a while."""
        seen = RecordedLook(self.observe(), self.records())
        self.ring.add(seen.observation)
        return seen

    def readings(self, component: str, seconds: float) -> History:
        """The readings of a component over time, so many seconds back: kept and seen; never raises."""
        return joined(self.history, self.ring, component, seconds)


@dataclass(frozen=True, slots=True)
class ScreenContext:
    """The input of every screen: the target, the newest observation, the readers and the actions."""

    target: str
    marks: Marks
    now: Callable[[], float]
    seen: Callable[[], RecordedLook | None]
    sources: Sources
    acts: Acts
    applying: Applying
    comparing: Comparing = field(default_factory=Comparing)
