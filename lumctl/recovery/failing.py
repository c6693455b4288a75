"""What a failure sets off: the group is given up, and the healer looks at the accelerators."""

import math
from collections.abc import Sequence

from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.running import PAUSED_WITHIN_S, JobRun
from lumctl.recovery.choosing import REPLICATED
from lumctl.recovery.pauses import Pauses
from lumctl.recovery.standing import Means, Phase, Standing, Trouble
from lumctl.recovery.story import Story
from lumctl.recovery.workers import Worker

NOT_YET = {"state": "recovering"}
"""What a run is told that has moved light and has the job go on, while another failure keeps it: the run is done."""
EARLY = "before it was ready"
"""When a process ended that never waited for a rank."""
STANDBY_FIRST_S, STANDBY_LONGEST_S = 5.0, 600.0
"""The pauses after which a process that nobody needs yet is started again when it died before it was ready."""


class Failing(Standing):
    """How failures are taken."""

    def __init__(self, inventory: Inventory, job: Job, run: JobRun, means: Means) -> None:
        super().__init__(inventory, job, run, means)
        self.standby = Pauses(STANDBY_FIRST_S, STANDBY_LONGEST_S)

    def gone(self, worker: Worker, why: str, at: float) -> None:
        """A worker is dead, or as good as dead."""
        was_member = self.is_member(worker)
        worker.alive = False
        if self.phase is Phase.STOPPING or self.phase.over or worker.ended:
            return
        self.places.changed()
        if not (was_member or worker.ready or self.needs_one(worker.accelerator)):
            self._put_off(worker, why)
            return
        rank = next((rank for rank, name in self.group.crew.items() if name == worker.name), None)
        told = f"{worker.name} {why}" if rank is None else f"rank {rank} ({worker.name}) {why}"
        log = "" if worker.ready else f" (log: {self.means.log(worker.host, worker.name)})"
        self.means.say(told + log)
        if was_member:
            self.fail([worker.accelerator], f"{worker.accelerator}: {why}", at)
            return
        if self.trouble is not None and worker.accelerator in self.placement:
            self.trouble.look.add(worker.accelerator)  # it was to take a rank over
            self.answer_light(NOT_YET)
        if not worker.ready:
            self.fruitless += 1
            if self.fruitless > self.run_as.restarts:
                self.give_up(told + log)

    def needs_one(self, accelerator: str) -> bool:
        """Whether the job waits for a process on an accelerator."""
        waits = self.phase in {Phase.STARTING, Phase.RECOVERING} and accelerator in self.placement
        return waits and not any(worker.usable for worker in self.roster.on(accelerator))

    def _put_off(self, worker: Worker, why: str) -> None:
        """A process that was to wait for a rank died before it was ready: the job runs well without it."""
        if self.standby.failed(worker.accelerator, self.means.now()) > 1:
            worker.dying = False  # how it ends is not told again and again
            return
        log = self.means.log(worker.host, worker.name)
        self.means.say(f"{worker.name} {why} (log: {log}); another is started later")

    def dead(self, worker: Worker, how: str) -> None:
        """One that was dying has ended; what follows from it is under way."""
        worker.dying = False
        if self.phase is Phase.STOPPING or self.phase.over or worker.ended:
            return
        self.means.say(f"{worker.name} {how}")
        if self.trouble is not None and self.trouble.story.cause.startswith(f"{worker.accelerator}: dies"):
            self.trouble.story.cause = f"{worker.accelerator}: {how}"

    def late(self) -> None:
        """What all wait for has not come. Whoever keeps the others waiting is killed; else the light is looked at."""
        group, now, within = self.group, self.means.now(), f"{self.run_as.stall_s:g} s"
        group.due = math.inf
        if self.phase.over:
            return
        if self.phase is Phase.RUNNING:
            self._stalled(f"no step was done within {within}")
        elif group.told and self.phase in {Phase.STARTING, Phase.RECOVERING}:
            self._stalled(f"the ranks found no group within {PAUSED_WITHIN_S:.0f} s")
        else:
            for worker in [each for each in self.roster if each.alive]:
                if worker.busy or (group.go_on is not None and worker.loading is not None):
                    worker.silent = True
                    self.means.ask(worker.host, {"ask": "kill", "worker": worker.name})
                    does = "does not hold" if worker.busy else "has not loaded its state"
                    self.gone(worker, f"hangs: it {does} within {within}", now)

    def _stalled(self, why: str) -> None:
        """All live, and nothing goes on: see whether all are well, and their light."""
        self.means.say(why)
        self.fail([], why, self.means.now())
        if self.trouble is not None and self.phase in {Phase.STARTING, Phase.RECOVERING}:
            self.trouble.stalled = True
            self.trouble.look |= {name for rank, name in enumerate(self.placement) if rank not in self.vacant}

    def broken(self, worker: Worker, why: str, at: float) -> None:
        """A collective failed. Mostly a peer has died, which its agent tells in a moment; else something is dark."""
        self.fail([], f"{worker.accelerator}: {why}", at)

    def fail(self, accelerators: Sequence[str], cause: str, at: float) -> None:
        """Begin to recover, or begin again."""
        if self.trouble is None:
            self.trouble = Trouble(Story(cause, at, tuple(accelerators)))
        else:
            story = self.trouble.story
            if accelerators and not story.failed:
                story.cause = cause  # it was a peer's word for it until now
            story.failed = tuple(dict.fromkeys([*story.failed, *accelerators]))
        if self.phase is Phase.RUNNING or not accelerators:
            self.fruitless += 1
            if self.fruitless > self.run_as.restarts:
                self.give_up(f"{self.fruitless} failures with no step done in between; the last: {cause}")
                return
        if any(worker.ended for worker in self.members()):
            self._failed_at_the_end(cause)
            return
        if self.phase is not Phase.STARTING:
            self.phase = Phase.RECOVERING
        self.trouble.look |= set(accelerators)
        self.answer_light(NOT_YET)
        if not self.holding:
            self.hold()

    def _failed_at_the_end(self, cause: str) -> None:
        """Some have done all steps and are gone; there is no group any more that could do the others' last again."""
        members = self.members()
        if all(worker.layout == REPLICATED for worker in members):
            self.why_ended, self.phase = f"all steps are done; at their end failed {cause}", Phase.ENDED
        else:
            self.give_up(f"failed while the others ended: {cause}")

    def give_up(self, why: str) -> None:
        """Stop the job, with a checkpoint of what is whole."""
        if self.phase is not Phase.STOPPING and not self.phase.over:
            self.failed = True
            self.stop(self.means.lost() or why)

    def stop(self, why: str) -> None:
        """Have the job end with a checkpoint of the newest step that is whole."""
        if self.phase is Phase.STOPPING or self.phase.over:
            return
        self.means.say(f"the job stops: {why}")
        self.why_ended, self.phase, self.kept = why, Phase.STOPPING, False
        self.answer_light({"error": f"the job stops: {why}"})
        self.hold()
