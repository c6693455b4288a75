"""The state of a job, and the effects through which the coordinator acts. This module neither decides nor sends."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec, Protocol

from lumctl.errors import ExitCode
from lumctl.inventory.job_run import JobRun
from lumctl.inventory.model import Inventory, Job
from lumctl.training.collective_record import CollectiveRecord
from lumctl.training.coordinator.changing_light import ChangingLight, PhaseEffects
from lumctl.training.coordinator.host_lines import HostLines, Retries, StorePlacement
from lumctl.training.coordinator.workers import JobWorker, JobWorkers, ResumePoint
from lumctl.training.phase_profile import PhaseProfiles, phases_digest
from lumctl.training.protocol import Reply

P = ParamSpec("P")
STANDBY_FIRST_S, STANDBY_LONGEST_S = 5.0, 600.0
"""Pauses before a standby process that died early is started again."""
RATE_STEPS = 64
"""The number of steps over which the training rate is averaged."""


@dataclass
class RecoveryRecord:
    """One recovery. Times are seconds since the epoch; durations count from ``at``, when the failure became known."""

    cause: str
    at: float
    failed: tuple[str, ...]
    caused_at: float = math.inf
    """When the cause happened; infinity if only a peer reported the failure."""
    error: Mapping[str, Any] | None = None
    """The error of the script that caused the failure, with rank and log."""
    bad: dict[str, str] = field(default_factory=dict)
    """The accelerators that were not healthy, with the reason."""
    replaced: dict[str, str] = field(default_factory=dict)
    without: list[int] = field(default_factory=list)
    """The ranks that the job continued without."""
    run: str | None = None
    """The run of the swap, if there was one."""
    marks: dict[str, float] = field(default_factory=dict)

    def mark(self, name: str, at: float) -> None:
        """Record the time of a moment; a later time of the same moment overwrites it."""
        self.marks[name] = at

    def since(self, name: str) -> float | None:
        """Seconds from the failure to a moment; ``None`` if the moment did not come."""
        at = self.marks.get(name)
        return None if at is None else round(at - self.at, 4)

    def line(self) -> str:
        """The recovery in one line of text."""
        took = self.since("step")
        ways = [f"{failed} replaced by {spare}" for failed, spare in self.replaced.items()]
        ways += [f"without rank {rank}" for rank in self.without]
        how = ", ".join(ways) or "in place"
        light = self.since("verified")
        shown = f", circuits verified after {light:.3f} s" if light is not None else ""
        return f"recovered ({how}): the next step was done {took:.3f} s after the failure was detected{shown}"

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


class JobStage(StrEnum):
    """The stage of a job, from its start to its end."""

    STARTING = "starting"
    RUNNING = "running"
    RECOVERING = "recovering"
    PAUSED = "paused"
    FINISHING = "finishing"
    """All training steps are done, and the ranks run the part of their script that follows."""
    STOPPING = "stopping"
    ENDED = "ended"
    STOPPED = "stopped"
    LEFT = "left"

    @property
    def over(self) -> bool:
        """Whether the job has ended for this coordinator."""
        return self in {JobStage.ENDED, JobStage.STOPPED, JobStage.LEFT}


class JobEnd(StrEnum):
    """How a job ended. ``DONE``: every rank reached the last line of its script."""

    DONE = "done"
    STOPPED = "stopped"
    UNFINISHED = "unfinished"
    SCRIPT_ERROR = "script-error"
    NO_PROGRESS = "no-progress"
    NOT_STARTED = "not-started"
    NO_SPARE = "no-spare"
    STATE_LOST = "state-lost"
    NO_LIGHT = "no-light"
    SIMULATOR_GONE = "simulator-gone"
    LEFT = "left"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of ``lumctl job run``."""
        return _EXIT_CODES.get(self, ExitCode.UNHEALTHY)


_EXIT_CODES = {
    JobEnd.DONE: ExitCode.DONE,
    JobEnd.STOPPED: ExitCode.DONE,
    JobEnd.UNFINISHED: ExitCode.HALF_DONE,
    JobEnd.NO_SPARE: ExitCode.REFUSED,
    JobEnd.SIMULATOR_GONE: ExitCode.UNREACHABLE,
    JobEnd.LEFT: ExitCode.REFUSED,
}


@dataclass
class OpenRecovery:
    """A failure that the job has not recovered from yet."""

    record: RecoveryRecord
    unexamined: set[str] = field(default_factory=set)
    """Accelerators whose health has not been read since the failure."""
    is_first_examination: bool = False
    """This is the examination before the first rank is started, without a failure."""
    stalled: bool = False
    """No process died, but the job made no step: a circuit may be dark."""
    attempts: int = 0
    """Swaps tried for this failure."""
    retry_at: float | None = None
    """When the accelerators are examined again; ``None`` if that is not scheduled."""
    why: str = ""
    """The condition that the recovery waits for, for the operator."""


@dataclass
class RankGroup:
    """The newest process group, formed or being formed."""

    generation: int = 0
    members: dict[int, str] = field(default_factory=dict)
    """The worker of each rank."""
    resume_point: ResumePoint | None = None
    """The step to resume from and the states to load first; ``None`` until that is settled."""
    files: Mapping[int, str] = field(default_factory=dict)
    """The checkpoint of each rank, if the group resumes from checkpoints."""
    loads_sent: set[str] = field(default_factory=set)
    """The workers that were ordered to load their state."""
    join_sent: bool = False
    """Whether all members were ordered to join."""
    hold_sent_at: float = 0.0
    """When the members were ordered to pause."""
    due: float = math.inf
    """Deadline of the next milestone: all members have paused, loaded or joined, or the next step is done."""
    joined: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Seating:
    """The result of a search for the worker of each rank, and what it depends on."""

    after: tuple[int, ...]
    seats: dict[int, str] | None
    """The worker of each rank; ``None`` if one is missing."""
    missing: int | None
    """A rank without a worker. As long as it has none, and ``after`` is the same, no search is needed."""


class Post(Protocol):
    """Posts an event to the coordinator's thread, which calls it with the state. Any thread may post."""

    def __call__(self, event: Callable[Concatenate["JobState", P], None], *arguments: P.args, **more: P.kwargs) -> None:
        """Post an event."""
        ...


def _nothing(_document: Mapping[str, Any]) -> None:
    return None


@dataclass(frozen=True)
class Effects:
    """Everything outside the coordinator that the coordinator reads or acts on."""

    ask: Callable[[str, Mapping[str, Any]], bool]
    """Send a request to the agent of a host; return whether it could be sent."""
    open: Callable[[str], None]
    """Open, or reopen, the line to a host's agent."""
    examine: Callable[[Sequence[str], bool], None]
    """Order an examination of accelerators that replaces unhealthy ones, or only those known to have failed."""
    placement: Callable[[], Sequence[str]]
    """The accelerator of each rank, as now in the store."""
    ready_on: Callable[[], Sequence[str]]
    """The accelerators without a rank on which a worker must be ready."""
    environment: Callable[[str], Mapping[str, str]]
    """The environment variables of a worker on a host."""
    say: Callable[[str], None]
    """Show the operator one line."""
    log: Callable[[str, str], str] = "{1}.log on {0}".format
    """The log of a worker, from its host and its name."""
    who: str = ""
    """The name of this lumctl process that agents are given: unique, and the same on every line."""
    lanes: Mapping[str, Any] | None = None
    """How ranks reach each other over the optical lanes of a simulated rack; ``None`` on a real one."""
    keep: Callable[[Mapping[str, Any]], None] = _nothing
    """Save the status of the job for a later lumctl."""
    phases: PhaseEffects | None = None
    """How light changes between phases; ``None`` if the job has none."""
    token: str = field(default="", repr=False)
    """The secret of the job."""
    lost: Callable[[], str] = str
    """Why the job can never continue: its simulator has ended. Empty otherwise."""
    before: Sequence[Mapping[str, Any]] = ()
    """The recoveries of this job that an earlier lumctl reported."""
    now: Callable[[], float] = time.time


@dataclass
class JobState:
    """All that is known of one job. Only the coordinator's thread reads and writes it."""

    inventory: Inventory
    job: Job
    run: JobRun
    effects: Effects

    # Processes and hosts
    workers: JobWorkers = field(default_factory=JobWorkers)
    lines: HostLines = field(init=False)
    standby_retries: Retries = field(default_factory=lambda: Retries(STANDBY_FIRST_S, STANDBY_LONGEST_S))
    hosts_left: set[str] = field(default_factory=set)
    """Hosts whose agents have ended on request, or refused to."""

    # Ranks
    store_placement: StorePlacement = field(init=False)
    placement: list[str] = field(init=False)
    """The accelerator of each rank; a planned swap counts already. Call :meth:`placement_changed` after a change."""
    vacant: dict[int, str] = field(default_factory=dict)
    """The ranks that the job runs without, and the accelerator that each rank lost."""
    placements: int = 0
    """The number of changes of the placement and of the vacant ranks."""
    _unlisted: list[str] = field(init=False)
    """Hosts of the placement that may not be known yet."""
    seating: Seating | None = None
    """The last search for the workers of a group."""
    standbys_complete: tuple[int, int, tuple[str, ...]] | None = None
    """Group, presence of workers, and spares at the last look that found all standby workers."""

    # Progress
    phase: JobStage = JobStage.STARTING
    group: RankGroup = field(default_factory=RankGroup)
    most_done: int = 0
    """The most steps that any worker has done; a checkpoint found at the start counts."""
    step_times: deque[float] = field(default_factory=lambda: deque(maxlen=RATE_STEPS))
    unreadable_checkpoints: set[str] = field(default_factory=set)
    steps_ended_at: float = math.inf
    """When the last step was done and the part of the scripts after it began."""
    limits_checked_at: float = -math.inf
    """When the processes were last compared with their time limits."""
    wait_reported_at: float = -math.inf
    """When the operator was last notified of what the job waits for."""

    collectives: CollectiveRecord = field(default_factory=CollectiveRecord)
    """When the ranks entered and left the collectives of the last steps."""
    ordered_schedule: tuple[int, int | None] = (0, None)
    """A generation of the group, and the late rank for which it was told to use a schedule."""

    light: ChangingLight | None = field(init=False)
    """The light of a job with phases; ``None`` for other jobs."""

    # Failures
    recovery: OpenRecovery | None = None
    recoveries: list[RecoveryRecord] = field(default_factory=list)
    """The completed recoveries."""
    earlier_recoveries: Sequence[Mapping[str, Any]] = ()
    """Recoveries of this job before it was taken over."""
    failed_attempts: int = 0
    """Failures since the last new step. A step is new if it is later than the step of the script's newest error."""
    error_step: int = -1
    """The step of the newest error of the script."""
    examined_first: bool = False
    """Whether the accelerators were examined before the first rank was started."""
    under_examination: frozenset[str] = frozenset()
    """The accelerators that the healer is examining; this may last beyond the recovery."""
    repair_of: RecoveryRecord | None = None
    """The recovery that the healer works for."""
    repair_planned: bool = False
    """Whether the healer has a plan, which states which spare replaces which accelerator."""

    # Requests
    pause_granted: bool = False
    """A run that changes light paths knows that the job is paused: no group joins until the run resumes the job."""
    pause_replies: list[Reply] = field(default_factory=list)
    stop_replies: list[Reply] = field(default_factory=list)
    stop_reason: str = ""
    """The reason to stop the job once all running workers are known; else ``None``."""
    light_reply: Reply | None = None
    """Answers the run that has moved light and waits for the job to continue."""

    # The end
    end: JobEnd | None = None
    why_ended: str = ""
    script_error: Mapping[str, Any] | None = None
    """The error of the script that ended the job; ``None`` if no such error ended it."""
    ended_at: float | None = None
    """When all processes had ended, in seconds since the epoch."""

    def __post_init__(self) -> None:
        effects = self.effects
        self.lines = HostLines(effects.open)
        profiles = PhaseProfiles(phases_digest(self.job))
        self.light = ChangingLight(effects.phases, profiles) if effects.phases is not None else None
        self.store_placement = StorePlacement(effects.placement, effects.ready_on, effects.say, effects.now)
        self.placement = list(self.store_placement.placed)
        self.placement_changed()

    def host_of(self, accelerator: str) -> str:
        """The host of an accelerator."""
        return self.inventory.accelerators[accelerator].host

    def hosts(self) -> tuple[str, ...]:
        """All hosts that run a worker, may have to run one, or ran one before their accelerators were replaced."""
        found = (worker.accelerator for worker in self.workers)
        wanted = [*self.placement, *self.store_placement.spares, *self.job.ranks, *found]
        return tuple(dict.fromkeys(self.host_of(name) for name in wanted))

    def place_ranks(self, placement: Sequence[str]) -> None:
        """Set the accelerator of each rank; a vacant rank that got another accelerator is filled again."""
        self.placement = list(placement)
        self.vacant = {rank: lost for rank, lost in self.vacant.items() if self.placement[rank] == lost}
        self.placement_changed()
        for name in self.placement:
            self.lines.want(self.host_of(name))  # this may be the job's first worker on the host

    def placement_changed(self) -> None:
        """Note that the placement, or the set of vacant ranks, has changed."""
        self.placements += 1
        self._unlisted = list(dict.fromkeys(map(self.host_of, self.placement)))

    def seat(self, members: dict[int, str]) -> None:
        """Set the worker of each rank of the group."""
        for name in self.group.members.values():
            self.workers[name].seat = None
        self.group.members = members
        for rank, name in members.items():
            self.workers[name].seat = rank

    def with_neighbours(self, accelerators: Iterable[str]) -> frozenset[str]:
        """The given accelerators and the job's others on their hosts; failed ones among these are replaced together."""
        wanted = set(accelerators)
        hosts = {self.host_of(name) for name in wanted}
        placed = (name for rank, name in enumerate(self.placement) if rank not in self.vacant)
        return frozenset(wanted | {name for name in placed if self.host_of(name) in hosts})

    @property
    def most_steps(self) -> int | None:
        """The most steps that may count as done: the light of later ones was wrong. ``None`` if that of none was."""
        return None if self.light is None else self.light.most_steps

    def living_members(self) -> list[JobWorker]:
        """The members of the group whose processes are running."""
        return [worker for worker in map(self.workers.__getitem__, self.group.members.values()) if worker.alive]

    def is_member(self, worker: JobWorker) -> bool:
        """Whether a worker has a rank in the group."""
        return worker.seat is not None

    def needs_worker(self, accelerator: str) -> bool:
        """Whether the job waits for a process on an accelerator."""
        waits = self.is_forming and accelerator in self.placement
        return waits and not any(worker.usable for worker in self.workers.on(accelerator))

    def all_parked(self) -> bool:
        """Whether no member is in a step or joining a group."""
        return not self.workers.in_step

    def all_listed(self) -> bool:
        """Whether each host of the job has reported its processes or does not answer."""
        while self._unlisted and self.lines.known(self._unlisted[-1:]):
            self._unlisted.pop()
        return not self._unlisted

    @property
    def is_forming(self) -> bool:
        """Whether a group is being formed, or about to be."""
        return self.phase in {JobStage.STARTING, JobStage.RECOVERING}

    @property
    def is_closing(self) -> bool:
        """Whether the job is ending or over: failures no longer count."""
        return self.phase in {JobStage.FINISHING, JobStage.STOPPING} or self.phase.over

    @property
    def is_settled(self) -> bool:
        """Whether the accelerator of each rank is known."""
        recovery = self.recovery
        open_yet = recovery is not None and (bool(recovery.unexamined) or recovery.retry_at is not None)
        return not open_yet and (not self.under_examination or self.repair_planned)

    @property
    def is_holding(self) -> bool:
        """Whether the members were ordered to pause, and no new group is being formed."""
        held = self.phase in {JobStage.RECOVERING, JobStage.PAUSED, JobStage.STOPPING}
        return held and self.group.resume_point is None and not self.group.join_sent

    def script_error_of(self, worker: JobWorker) -> Mapping[str, Any] | None:
        """The error of a worker's script as data; ``None`` if it had none."""
        if (error := worker.script_error) is None:
            return None
        return {
            "rank": worker.rank if worker.seat is None else worker.seat,
            "worker": worker.name,
            "accelerator": worker.accelerator,
            "host": worker.host,
            "step": error.step,
            "type": error.type,
            "error": error.text,
            "traceback": list(error.traceback),
            "log": self.effects.log(worker.host, worker.name),
            "at": error.at,
        }
