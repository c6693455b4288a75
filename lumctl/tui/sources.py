"""The functions with which the dashboard reads, and the context that its screens share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lumctl.errors import RefusedError, UsageError
from lumctl.health.observation import Observation
from lumctl.health.states import HealthReport
from lumctl.jobs.stopped_jobs import ResumptionWatch
from lumctl.tui.actions import Acts, PlanView
from lumctl.tui.look.marks import Marks
from lumctl.tui.threads.apply import Applying
from lumctl.tui.views.comparison import Comparing, ComparisonView
from lumctl.tui.views.history import History, Kept, Ring, joined, nothing_kept
from lumctl.tui.views.job_waits import JobWaits
from lumctl.tui.views.meshes import MeshView
from lumctl.tui.views.records import RecordedLook, Records
from lumctl.tui.views.runs import RunView

if TYPE_CHECKING:
    from lumctl.fleet.bundle.host_answers import HostAnswer


def no_run(name: str) -> RunView:
    """Raise the UsageError of a dashboard without a store, for a run."""
    raise UsageError(f"no run {name!r}: this dashboard reads no store")


def no_store(*_: object) -> Any:
    """Raise the UsageError of a dashboard without a store, for anything else."""
    raise UsageError("this dashboard reads no store")


def no_mesh(device: str) -> MeshView:
    """Raise the UsageError of a dashboard that reads no devices."""
    raise UsageError(f"{device} cannot be read: this dashboard reads no device")


def no_host(host: str) -> Any:
    """The error of a dashboard that cannot reach hosts."""
    raise RefusedError(f"{host} cannot be reached: this dashboard plays a recording")


@dataclass(frozen=True, slots=True)
class Sources:
    """The functions with which the dashboard reads. Each blocks, so threads call it, and may raise ``LumctlError``."""

    observe: Callable[[], Observation]
    records: Callable[[], Records] = Records
    run: Callable[[str], RunView] = no_run
    mesh: Callable[[str], MeshView] = no_mesh
    runbook: Callable[[str], Mapping[str, Any]] = no_store
    """The runbook of a run (``RACK/ID``), as ``runbook show`` prints it."""
    compare: Callable[[str, str], ComparisonView] = no_store
    """The differences of the runbooks of two runs."""
    explain: Callable[[Observation, str], Sequence[Mapping[str, Any]]] = no_store
    """The autopilot's decisions in a rack for an observation, as ``policy explain`` prints them; nothing is done."""
    asked_plan: Callable[[str, str], PlanView] = no_store
    """A plan that waits for approval, by its rack and its id."""
    host_output: "Callable[[str], Iterator[HostAnswer]]" = no_host
    """The output of each probe of a host, run now, one after the other; raises an error if the host is unreachable."""
    scheduled: Callable[[str], Sequence[tuple[str, str]]] = lambda _component: ()
    """The jobs of schedulers on an accelerator or a host, as labels and texts; never raises."""
    job_waits: Callable[[Observation, str], JobWaits | None] = lambda _observation, _job: None
    """Who is late in a job, by the record of its collectives; ``None`` if it has none."""
    shell: Callable[[str], Sequence[str]] = no_host
    """The words of the command that opens a shell on a host. This call does not block."""
    forgotten_target: Callable[[HealthReport], str] = lambda _report: ""
    """Says that no host answers because the simulator was not named as the target; else empty."""

    check_swaps: Callable[[RecordedLook], RecordedLook] = lambda seen: seen
    """The same look with its ``swap_checks``, ``return_checks`` and ``avoid_checks``."""

    aimed: Callable[[str], str] = str
    """Completes the commands in a text: they are typed in a shell, which may have no other inventory or target."""

    history: Kept = nothing_kept
    """The stored readings of a component for the last seconds."""
    ring: Ring = field(default_factory=Ring)
    resumptions: ResumptionWatch = field(default_factory=ResumptionWatch)

    def look(self) -> RecordedLook:
        """Read an observation and the stores' records, and add the observation's readings to the ring."""
        observation, records = self.observe(), self.records()
        seen = RecordedLook(
            observation,
            records,
            forgotten_target=self.forgotten_target(observation.report),
            stopped_jobs=self.resumptions.stopped(observation, records.runs),
            aimed=self.aimed,
        )
        self.ring.add(seen.observation)
        return self.check_swaps(seen)

    def readings(self, component: str, seconds: float) -> History:
        """The stored and the recent readings of a component, ``seconds`` back; never raises."""
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
    # Shared by all screens: a runbook marked on one is compared on another.
    comparing: Comparing = field(default_factory=Comparing)
