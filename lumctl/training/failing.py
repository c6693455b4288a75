"""What a failure sets off: the group is given up, and the healer looks at the accelerators."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.running import PAUSED_WITHIN_S, JobRun
from lumctl.training.ends import End
from lumctl.training.pauses import Pauses
from lumctl.training.standing import Means, Phase, Standing, Trouble
from lumctl.training.story import Story
from lumctl.training.workers import ScriptError, Worker

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
        if self.phase in {Phase.FINISHING, Phase.STOPPING} or self.phase.over or worker.ended:
            return
        self.places.changed()
        if not (was_member or worker.ready or self.needs_one(worker.accelerator)):
            self._put_off(worker, why)
            return
        rank = next((rank for rank, name in self.group.crew.items() if name == worker.name), None)
        told = f"{worker.name} {why}" if rank is None else f"rank {rank} ({worker.name}) {why}"
        named = worker.script_error is not None or not worker.ready
        log = f" (log: {self.means.log(worker.host, worker.name)})" if named else ""
        self.means.say(told + log)
        if was_member:
            self.fail([worker.accelerator], f"{worker.accelerator}: {why}", at, self.error_of(worker))
            return
        if self.trouble is not None and worker.accelerator in self.placement:
            self.trouble.look.add(worker.accelerator)  # it was to take a rank over
            self.answer_light(NOT_YET)
        if not worker.ready:
            self.fruitless += 1
            if self.fruitless > self.run_as.restarts:
                self.error = self.error_of(worker)
                self.give_up(told + log, End.SCRIPT_ERROR if self.error is not None else End.NOT_STARTED)

    def script_failed(self, worker: Worker, error: ScriptError) -> None:
        """The script's own error ends a process."""
        if self.is_member(worker):
            self.stuck_at = max(self.stuck_at, error.step)
        when = f"failed in step {error.step}" if worker.ready else f"failed {EARLY}"
        self.leaves(worker, f"{when}: {error.text}", error.at)

    def leaves(self, worker: Worker, why: str, at: float) -> None:
        """A process ends, and may take its time for that; it is no part of the job any more."""
        worker.dying, worker.dies_at = True, self.means.now()
        worker.leave_by = worker.dies_at + self.run_as.exit_s
        self.gone(worker, why, at)

    def error_of(self, worker: Worker) -> Mapping[str, Any] | None:
        """The error of a worker's script as data; ``None`` if it had none."""
        if (error := worker.script_error) is None:
            return None
        return {
            "rank": next((rank for rank, name in self.group.crew.items() if name == worker.name), worker.rank),
            "worker": worker.name,
            "accelerator": worker.accelerator,
            "host": worker.host,
            "step": error.step,
            "type": error.type,
            "error": error.text,
            "traceback": list(error.traceback),
            "log": self.means.log(worker.host, worker.name),
            "at": error.at,
        }

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
        if self.phase in {Phase.FINISHING, Phase.STOPPING} or self.phase.over or worker.ended:
            return
        if worker.leave_by < math.inf:
            return  # it has said itself how it ends
        self.means.say(f"{worker.name} {how}")
        if self.trouble is not None and self.trouble.story.cause.startswith(f"{worker.accelerator}: dies"):
            self.trouble.story.cause = f"{worker.accelerator}: {how}"

    def late(self) -> None:
        """What all wait for has not come. Whoever keeps the others waiting is killed; else the light is looked at."""
        group, now, within = self.group, self.means.now(), f"{self.run_as.stall_s:g} s"
        group.due = math.inf
        if self.phase.over or self.phase is Phase.FINISHING:
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

    def fail(self, accelerators: Sequence[str], cause: str, at: float, error: Mapping[str, Any] | None = None) -> None:
        """Begin to recover, or begin again. ``accelerators`` failed themselves; a peer's word for it names none.

        The cause is what failed first by itself: all else is a consequence.
        """
        if self.trouble is None:
            self.trouble = Trouble(Story(cause, at, ()))
        story = self.trouble.story
        if accelerators:
            if at < story.caused_at:
                story.cause, story.caused_at, story.error = cause, at, error
            story.failed = tuple(dict.fromkeys([*story.failed, *accelerators]))
        if self.phase is Phase.RUNNING or not accelerators:
            self.fruitless += 1  # whether that is too often is asked when all of this failure is known
        if any(self.roster[name].ended for name in self.group.crew.values()):
            self.finish()
            return
        if self.phase is not Phase.STARTING:
            self.phase = Phase.RECOVERING
        self.trouble.look |= set(accelerators)
        self.answer_light(NOT_YET)
        if not self.holding:
            self.hold()

    def stop_if_fruitless(self) -> bool:
        """Stop a job that fails again and again with no new step in between; whether it was."""
        if self.trouble is None or self.fruitless <= self.run_as.restarts:
            return False
        story = self.trouble.story
        if story.error is not None:
            self.error = story.error
            times = f"{self.fruitless} attempts have ended so, with no new step (restarts: {self.run_as.restarts})"
            self.give_up(f"{_of_script(story.error)}; {times}", End.SCRIPT_ERROR)
        else:
            why = f"{self.fruitless} failures with no step done in between; the last: {story.cause}"
            self.give_up(why, End.NO_PROGRESS)
        return True

    def state_lost(self) -> None:
        """Stop a job whose state is nowhere any more, and say what has cost it."""
        why = "the state of a rank is lost, and no checkpoint of all ranks was written"
        story = self.trouble.story if self.trouble is not None else None
        if story is not None and story.error is not None:
            self.error = story.error
            self.give_up(f"{_of_script(story.error)}; with it {why}", End.SCRIPT_ERROR)
        else:
            self.give_up(f"{why} ({story.cause})" if story is not None else why, End.STATE_LOST)

    # The end

    def finish(self) -> None:
        """All steps are done: wait until each rank has come to the end of its script.

        Where some have left the group and another's failure keeps the rest in it, no group can do the last step again:
        it is done, and the rest are told so.
        """
        self.phase, self.steps_over_at = Phase.FINISHING, self.means.now()
        self.answer_light({"error": "all steps are done"})
        rest = [worker for worker in self.members() if not worker.ended]
        if rest:
            self.hold()
        for worker in rest:
            self.tell(worker, {"do": "finish"})
        self.group.due = math.inf

    def conclude(self) -> None:
        """Once no process of a rank is left, settle how the job has ended."""
        crew = [(rank, self.roster[name]) for rank, name in sorted(self.group.crew.items())]
        if any(worker.alive or worker.dying for _, worker in crew):
            return
        lacking = [(rank, worker) for rank, worker in crew if not _came_to_its_end(worker)]
        errors = [error for _, worker in lacking if (error := self.error_of(worker)) is not None]
        self.phase = Phase.ENDED
        if not lacking:
            self.end, self.why_ended = End.DONE, f"all {max(worker.done for _, worker in crew)} steps are done"
        elif errors:
            self.error = min(errors, key=lambda error: float(error["at"]))
            self.end, self.why_ended = End.SCRIPT_ERROR, f"all steps are done, and then {_of_script(self.error)}"
        else:
            rank, worker = lacking[0]
            how = f"{worker.how or 'its process is gone'} (log: {self.means.log(worker.host, worker.name)})"
            self.end = End.UNFINISHED
            self.why_ended = f"all steps are done, but not the rest of the script: rank {rank} ({worker.name}) {how}"

    def give_up(self, why: str, end: End) -> None:
        """Stop the job, with a checkpoint of what is whole."""
        if self.phase in {Phase.FINISHING, Phase.STOPPING} or self.phase.over:
            return
        lost = self.means.lost()
        self.end = End.SIMULATOR_GONE if lost else end
        self.stop(lost or why)

    def stop(self, why: str) -> None:
        """Have the job end with a checkpoint of the newest step that is whole."""
        if self.phase in {Phase.FINISHING, Phase.STOPPING} or self.phase.over:
            return
        self.end = self.end or End.STOPPED
        self.means.say(f"the job stops: {why}")
        self.why_ended, self.phase, self.kept = why, Phase.STOPPING, False
        self.answer_light({"error": f"the job stops: {why}"})
        self.hold()


def _of_script(error: Mapping[str, Any]) -> str:
    """An error of a script in a line."""
    where = f"rank {error['rank']} ({error['worker']}) failed in step {error['step']}"
    return f"{where}: {error['error']} (log: {error['log']})"


def _came_to_its_end(worker: Worker) -> bool:
    """Whether the last line of its script has run: its exit code says so, or it has itself where that is not known."""
    if not worker.ended or worker.script_error is not None:
        return False
    return worker.code == 0 or (worker.code is None and worker.exiting)
