"""Processes that have been started and are not ready yet: told while the job waits for them, given up after a limit."""

import math

from lumctl.inventory.folding import fold
from lumctl.recovery.failing import EARLY
from lumctl.recovery.regrouping import Regrouping
from lumctl.recovery.standing import Phase
from lumctl.recovery.workers import Worker

TOLD_AFTER_S = 30.0
"""How long the job waits for a process before that is told; then again each time it has waited twice as long."""


class Beginning(Regrouping):
    """Looks after processes on their way up."""

    _told_at = math.inf
    """When it is told next for whom the job waits; infinity while it waits for nobody."""

    def _beginners(self) -> list[Worker]:
        return [worker for worker in self.roster if worker.alive and not (worker.ready or worker.ended)]

    def _waited_for(self) -> list[Worker]:
        return [worker for worker in self._beginners() if self.needs_one(worker.accelerator)]

    @property
    def beginners_due(self) -> float:
        """When :meth:`see_beginners` is to be called next; infinity if nobody is on its way up."""
        limits = [worker.begun_at + self.run_as.start_s for worker in self._beginners()]
        if not limits:
            return math.inf
        return min([*limits, self._tell_next() if self._waited_for() else math.inf])

    def _tell_next(self) -> float:
        first = min(worker.begun_at for worker in self._waited_for()) + TOLD_AFTER_S
        return first if self._told_at == math.inf else self._told_at

    def see_beginners(self) -> None:
        """Say for whom the job waits, where it is time for that, and give those up who take too long."""
        now = self.means.now()
        for worker in self._beginners():
            if now >= worker.begun_at + self.run_as.start_s:
                self._too_late(worker, now)
        if self.phase is Phase.STOPPING or self.phase.over or not self._waited_for():
            self._told_at = math.inf
        elif now >= self._tell_next():
            waits_from = min(worker.begun_at for worker in self._waited_for())
            self._told_at = waits_from + max(2 * (now - waits_from), 2 * TOLD_AFTER_S)
            self.means.say(f"{self.phase}: {self.waits_for()}")

    def waits_for(self) -> str:
        """For the processes of which accelerators the job waits, and for how long; empty if for none."""
        waited = self._waited_for()
        if not waited:
            return ""
        longest_s = self.means.now() - min(worker.begun_at for worker in waited)
        names = fold([name for name in self.placement if name in {worker.accelerator for worker in waited}])
        return f"waiting for {', '.join(names)} ({longest_s:.0f} s)"

    def _too_late(self, worker: Worker, now: float) -> None:
        """End one that does not get ready. A job that never ran stops: another would not get further."""
        missing = "has not come to its steps" if worker.met else "has not said that it belongs to the job"
        within = f"within {self.run_as.start_s:g} s (start_s)"
        worker.silent = True
        self.means.ask(worker.host, {"ask": "kill", "worker": worker.name})
        if self.phase is Phase.STARTING and self.needs_one(worker.accelerator):
            log = self.means.log(worker.host, worker.name)
            self.give_up(f"{worker.name} {missing} {within} (log: {log})")
        else:
            self.gone(worker, f"hangs {EARLY}: it {missing} {within}", now)
