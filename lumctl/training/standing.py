"""How a job stands: what its coordinator knows, and what it acts through. Nothing here decides."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.running import JobRun
from lumctl.training.choosing import GoOn
from lumctl.training.lines import Lines
from lumctl.training.places import Places
from lumctl.training.story import Story
from lumctl.training.workers import Roster, Worker

if TYPE_CHECKING:
    from lumctl.training.ends import End

Answer = Callable[[Mapping[str, Any]], None]
"""Takes the one answer to a request."""


WAITING = "waiting"
"""What a job does, as persons are told, that recovers and lacks what it needs for that."""


def _nothing(_document: Mapping[str, Any]) -> None:
    return None


class Phase(StrEnum):
    """What a job does."""

    STARTING = "starting"
    RUNNING = "running"
    RECOVERING = "recovering"
    PAUSED = "paused"
    FINISHING = "finishing"
    """All steps are done, and the ranks run the rest of their script."""
    STOPPING = "stopping"
    ENDED = "ended"
    STOPPED = "stopped"
    LEFT = "left"

    @property
    def over(self) -> bool:
        """Whether nothing follows."""
        return self in {Phase.ENDED, Phase.STOPPED, Phase.LEFT}


@dataclass
class Trouble:
    """A failure that is being recovered from."""

    story: Story
    look: set[str] = field(default_factory=set)
    """Accelerators that nobody has looked at yet."""
    first: bool = False
    """Nothing has failed yet: no rank has been started before its accelerator was looked at."""
    stalled: bool = False
    """Nobody has died: it may be the light."""
    attempts: int = 0
    retry_at: float | None = None
    why: str = ""
    """Why it waits, for a person to read."""


@dataclass
class Group:
    """The newest process group, or the one that is being formed."""

    generation: int = 0
    crew: dict[int, str] = field(default_factory=dict)
    """The worker of each rank."""
    go_on: GoOn | None = None
    """From which step, and what has to be loaded before; ``None`` until that is settled."""
    files: Mapping[int, str] = field(default_factory=dict)
    """The checkpoint of each rank, where it goes on from those."""
    told: bool = False
    """All were told to join."""
    held_at: float = 0.0
    """When its members were told to hold."""
    due: float = math.inf
    """By when all have to hold, to have loaded, to have joined, or to have done the next step: whichever is next."""
    joined: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Means:
    """What a coordinator acts through."""

    ask: Callable[[str, Mapping[str, Any]], bool]
    """Ask the agent of a host for something; whether it could be sent."""
    open: Callable[[str], None]
    """Open the line to a host's agent, again."""
    look: Callable[[Sequence[str], bool], None]
    """Have accelerators looked at, and replaced: those that are not well, or only those known to have failed."""
    placement: Callable[[], Sequence[str]]
    """Where the store places the ranks now."""
    ready_on: Callable[[], Sequence[str]]
    """On which accelerators without a rank a worker is to be ready."""
    environment: Callable[[str], Mapping[str, str]]
    """The variables that a worker on a host is given."""
    say: Callable[[str], None]
    log: Callable[[str, str], str] = "{1}.log on {0}".format
    """Where the output of a worker is: its host and its name."""
    who: str = ""
    """Who agents are told asks: the same at every line, and in no other run."""
    lanes: Mapping[str, Any] | None = None
    keep: Callable[[Mapping[str, Any]], None] = _nothing
    """Have written down how the job stands, for whoever asks or comes when this lumctl is no more."""
    lost: Callable[[], str] = str
    """Why the job cannot go on, whatever it tries: empty unless the ground under it is gone."""
    before: Sequence[Mapping[str, Any]] = ()
    """The recoveries that a former lumctl has told of."""
    now: Callable[[], float] = time.time


class Standing:
    """All that is known of one job."""

    def __init__(self, inventory: Inventory, job: Job, run: JobRun, means: Means) -> None:
        self.inventory, self.job, self.run_as, self.means = inventory, job, run, means
        self.roster = Roster()
        self.phase = Phase.STARTING
        self.group = Group()
        self.lines = Lines(means.open)
        self.places = Places(means.placement, means.ready_on, means.say, means.now)
        self.placement = list(self.places.placed)
        self.vacant: dict[int, str] = {}
        """The ranks that the job goes on without, and the accelerator that each has lost."""
        self.kept = False
        """Somebody who moves light was told that the job holds: no group joins until it is resumed."""
        self.trouble: Trouble | None = None
        self.looking: frozenset[str] = frozenset()
        """The accelerators that the healer is at work on; it may still be when the trouble is over."""
        self.healing: Story | None = None
        """The recovery for which it is at work."""
        self.is_planned = False
        """What the healer is at work on has a plan: who takes whose place is known."""
        self.told: list[Story] = []
        """The recoveries that are over."""
        self.before: Sequence[Mapping[str, Any]] = ()
        """Those of this job before it was taken over."""
        self.ended_at: float | None = None
        """When all its processes had ended, in seconds since the epoch."""
        self.looked_first = False
        """The accelerators were looked at before a rank was started."""
        self.steps_over_at = math.inf
        """Since when the ranks run the rest of their script."""
        self.why_ended = ""
        self.end: End | None = None
        """How it ends, once that is settled."""
        self.error: Mapping[str, Any] | None = None
        """The error of the script for which it ends, if it does."""
        self.fruitless = 0
        """Failures since the last step that was done and is later than the newest error of the script."""
        self.stuck_at = -1
        """The step of the newest error of the script."""
        self.most_done = 0
        """How many steps somebody has done; a checkpoint that was found at the start counts."""
        self.spoilt: set[str] = set()
        """Checkpoints that could not be read."""
        self.light: Answer | None = None
        """A run that has moved light waits for the job to go on."""

    def host_of(self, accelerator: str) -> str:
        """The host of an accelerator."""
        return self.inventory.accelerators[accelerator].host

    def place(self, placement: Sequence[str]) -> None:
        """Have the ranks where they are placed; one that got another accelerator comes back."""
        self.placement = list(placement)
        self.vacant = {rank: lost for rank, lost in self.vacant.items() if self.placement[rank] == lost}
        for name in self.placement:
            self.lines.want(self.host_of(name))  # it may have had nothing to do with the job until now

    def with_neighbours(self, accelerators: Iterable[str]) -> frozenset[str]:
        """These, and the others of the job on their hosts: what a host loses at once is replaced at once."""
        wanted = set(accelerators)
        hosts = {self.host_of(name) for name in wanted}
        placed = (name for rank, name in enumerate(self.placement) if rank not in self.vacant)
        return frozenset(wanted | {name for name in placed if self.host_of(name) in hosts})

    def members(self) -> list[Worker]:
        """Those of the group who live."""
        names = set(self.group.crew.values())
        return [worker for worker in self.roster if worker.name in names and worker.alive]

    def is_member(self, worker: Worker) -> bool:
        """Whether a worker has a rank of the group."""
        return worker.name in self.group.crew.values()

    def all_parked(self) -> bool:
        """Whether no member works on a step, or on a group."""
        return not any(worker.busy for worker in self.members())

    @property
    def settled(self) -> bool:
        """Whether it is known where each rank goes on."""
        trouble = self.trouble
        open_yet = trouble is not None and (bool(trouble.look) or trouble.retry_at is not None)
        return not open_yet and (not self.looking or self.is_planned)

    @property
    def holding(self) -> bool:
        """Whether the members were told to hold, and nothing has followed from it yet."""
        held = self.phase in {Phase.RECOVERING, Phase.PAUSED, Phase.STOPPING}
        return held and self.group.go_on is None and not self.group.told

    def tell(self, worker: Worker, message: Mapping[str, Any]) -> None:
        """Have a worker told something by its agent; what it does not answer is told again with the next line."""
        worker.order = message
        self.means.ask(worker.host, {"ask": "tell", "worker": worker.name, "message": message})

    def hold(self) -> None:
        """Have all members give the group up and park. What was on its way for it counts no more."""
        group = self.group
        group.generation += 1
        group.go_on, group.told, group.joined = None, False, set()
        group.held_at = self.means.now()
        group.due = group.held_at + self.run_as.stall_s
        for worker in self.roster:
            if worker.alive and (worker.busy or self.is_member(worker)):
                self.hold_also(worker)

    def hold_also(self, worker: Worker) -> None:
        """Have a worker park before it is given a rank: one that was found may be in a group, or about to be."""
        if worker.alive and not worker.ended:
            worker.held, worker.loaded, worker.busy = None, False, True
            self.tell(worker, {"do": "hold", "generation": self.group.generation})

    def answer_light(self, answer: Mapping[str, Any]) -> None:
        """Answer the run that waits for the job to go on, if one does."""
        if self.light is not None:
            self.light(answer)
            self.light = None
