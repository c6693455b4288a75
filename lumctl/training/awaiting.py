"""Processes that the job waits for, for a while now: who is not ready yet, and who has not left the step that failed.

They are told; who does not get ready is given up after a limit.
"""

import math

from lumctl.inventory.folding import fold
from lumctl.training.ends import End
from lumctl.training.failing import EARLY
from lumctl.training.regrouping import Regrouping
from lumctl.training.standing import Phase
from lumctl.training.workers import Worker

KILLED_WITHIN_S = 5.0
"""How long a process may live that was killed."""
TOLD_AFTER_S = 30.0
"""How long the job waits for a process before that is told; then again each time it has waited twice as long."""


class Awaiting(Regrouping):
    """Looks after processes that are waited for."""

    _told_at = -math.inf
    """When it was told last for whom the job waits."""

    def _beginners(self) -> list[Worker]:
        return [worker for worker in self.roster if worker.alive and not (worker.ready or worker.ended)]

    def _waited_for(self) -> list[Worker]:
        return [worker for worker in self._beginners() if self.needs_one(worker.accelerator)]

    def _in_a_step(self) -> list[Worker]:
        """Those who were told to hold, and work on a step or wait for others in it."""
        return [worker for worker in self.members() if worker.busy] if self.holding else []

    def _at_the_rest(self) -> list[Worker]:
        """Those who have done all steps and run the rest of their script."""
        return [worker for worker in self.members() if not worker.exiting] if self.phase is Phase.FINISHING else []

    def leaving(self) -> list[Worker]:
        """Those whose processes are there still."""
        return [worker for worker in self.roster if worker.alive or worker.dying]

    @property
    def leaving_due(self) -> float:
        """When :meth:`see_leaving` is to be called next; infinity if nobody has to end."""
        return min((worker.leave_by for worker in self.leaving()), default=math.inf)

    def see_leaving(self) -> None:
        """Kill those who do not come to their end in time; who outlives that is left to its agent."""
        now = self.means.now()
        for worker in self.leaving():
            if now < worker.leave_by:
                continue
            if worker.killed:
                worker.alive = worker.dying = False
                continue
            self.means.say(f"{worker.name} has not ended within {self.run_as.exit_s:g} s (exit_s), and is killed")
            worker.killed, worker.leave_by = True, now + KILLED_WITHIN_S
            self.means.ask(worker.host, {"ask": "kill", "worker": worker.name})

    def _since(self) -> float:
        """Since when somebody has been waited for; infinity if nobody is."""
        if self.phase is Phase.FINISHING:
            return self.steps_over_at if self._at_the_rest() else math.inf
        held = [self.group.held_at] if self._in_a_step() else []
        return min([*held, *(worker.begun_at for worker in self._waited_for())], default=math.inf)

    @property
    def awaited_due(self) -> float:
        """When :meth:`see_awaited` is to be called next; infinity if nobody is waited for."""
        limits = (worker.begun_at + self.run_as.start_s for worker in self._beginners())
        return min([*limits, self._tell_next(), self.leaving_due])

    def _tell_next(self) -> float:
        since = self._since()
        if self._told_at < since:
            return since + TOLD_AFTER_S
        return self._told_at + max(self._told_at - since, TOLD_AFTER_S)

    def see_awaited(self) -> None:
        """Say for whom the job waits, where it is time for that, and give those up who take too long to get ready."""
        now = self.means.now()
        self.see_leaving()
        for worker in self._beginners():
            if now >= worker.begun_at + self.run_as.start_s:
                self._too_late(worker, now)
        if now >= self._tell_next() and not self.phase.over:
            self._told_at = now
            self.means.say(f"{self.phase}: {self.waits_for()}")

    def waits_for(self) -> str:
        """For the processes of which accelerators the job waits, what for, and for how long; empty if for none."""
        coming, in_a_step = self._waited_for(), self._in_a_step()
        told = []
        if coming:
            told.append(self._named(coming, "", min(worker.begun_at for worker in coming)))
        if rest := self._at_the_rest():
            told.append(self._named(rest, " to come to the end of the script", self.steps_over_at))
        if in_a_step:
            told.append(self._named(in_a_step, " to leave the step", self.group.held_at))
        return f"waiting for {' and '.join(told)}" if told else ""

    def _named(self, workers: list[Worker], to: str, since: float) -> str:
        names = {worker.accelerator for worker in workers}
        told = fold([*(name for name in self.placement if name in names), *sorted(names - {*self.placement})])
        return f"{', '.join(told)}{to} ({self.means.now() - since:.0f} s)"

    def _too_late(self, worker: Worker, now: float) -> None:
        """End one that does not get ready. A job that never ran stops: another would not get further."""
        missing = "has not come to its steps" if worker.met else "has not said that it belongs to the job"
        within = f"within {self.run_as.start_s:g} s (start_s)"
        worker.silent = True
        self.means.ask(worker.host, {"ask": "kill", "worker": worker.name})
        if self.phase is Phase.STARTING and self.needs_one(worker.accelerator):
            log = self.means.log(worker.host, worker.name)
            self.give_up(f"{worker.name} {missing} {within} (log: {log})", End.NOT_STARTED)
        else:
            self.gone(worker, f"hangs {EARLY}: it {missing} {within}", now)
