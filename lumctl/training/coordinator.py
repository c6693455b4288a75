"""Decides who has which rank of a job, and brings it back to its steps after a failure.

One thread decides; whatever happens is handed to it as work. It waits for nothing but the next piece of that, so that
a failure during a recovery is an event like any other: it begins a new generation of the group, and all that was on its
way for the one before counts no more.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from lumctl.errors import RefusedError
from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.running import JobRun
from lumctl.training.answering import Answering
from lumctl.training.choosing import REPLICATED, choose
from lumctl.training.standing import Means, Phase

QUITS_WITHIN_S = 5.0
"""How long an agent may take to end when it is told so."""


class Coordinator(Answering):
    """One job. :meth:`post` may be called from any thread, all else by the one that runs :meth:`run`."""

    def __init__(self, inventory: Inventory, job: Job, run: JobRun, means: Means) -> None:
        super().__init__(inventory, job, run, means)
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._kept_of = (0, 0)
        """The group, and the number of recoveries, of which it was kept how the job stands."""
        self.after_turn: Callable[[], None] = _nothing
        """Called after each piece of work, by the thread that decides: for whoever waits for something to become so."""

    def post(self, work: Callable[[], None]) -> None:
        """Have something done by the thread that decides."""
        self._work.put(work)

    def run(self) -> None:
        """Run the job to its end.

        Raises:
            RefusedError: an agent works for another lumctl, to which the job is left as it is.
        """
        for host in self.hosts():
            self.lines.open(host)
        while not self.phase.over:
            self.turn()
        if self.phase is Phase.LEFT:
            raise RefusedError(
                f"job {self.job.name} is left to another lumctl: {self.why_ended}",
                hint=f"end that one, or take the job over from it: lumctl job run {self.job.name} --take",
            )
        self._see_off()

    def turn(self) -> None:
        """Wait for the next piece of work, do it, and what follows from it."""
        with suppress(Empty):
            self._work.get(timeout=self._patience_s())()
        if self.means.now() >= self.group.due and self._work.empty():  # nobody has said it meanwhile
            self.late()
        if self.means.now() >= self.awaited_due and self._work.empty():
            self.see_awaited()
        if self.means.now() >= self.lines.next_at:
            self.lines.try_again(self.means.now())
        before = None
        while before is not self.phase:  # what follows from one phase may end it
            before = self.phase
            self._advance()
        if self.phase is Phase.RUNNING and self._kept_of != (so_far := (self.group.generation, len(self.told))):
            self._kept_of = so_far
            self.means.keep(self.document())
        self.after_turn()

    def _see_off(self) -> None:
        """Have those end that waited for a rank, and wait for the end of all; then their agents end too."""
        for worker in self.roster:
            if worker.alive and not worker.ready and not worker.generation:  # it has nothing, and may never listen
                self.means.ask(worker.host, {"ask": "kill", "worker": worker.name})
            elif worker.alive and not self.is_member(worker):
                self.tell(worker, {"do": "stop", "done": worker.done, "also": []})
            writes = worker.alive and self.is_member(worker) and not worker.ended
            within_s = self.run_as.exit_s + (self.run_as.stall_s if writes else 0.0)
            worker.leave_by = min(worker.leave_by, self.means.now() + within_s)
        self._await_ends()
        told = {host for host in self.hosts() if self.means.ask(host, {"ask": "quit"})}
        self._await(lambda: told <= self._left, QUITS_WITHIN_S)  # who hangs up at once is not heard
        self.ended_at = self.means.now()
        self.means.keep(self.document())
        self.answer_stops()

    def _await_ends(self) -> None:
        while self.leaving():
            self.see_leaving()
            with suppress(Empty):
                self._work.get(timeout=max(0.0, self.leaving_due - self.means.now()))()

    def _await(self, so: Callable[[], bool], within_s: float) -> None:
        deadline = self.means.now() + within_s
        while not so() and (left := deadline - self.means.now()) > 0:
            with suppress(Empty):
                self._work.get(timeout=left)()

    def hosts(self) -> tuple[str, ...]:
        """All hosts that run a worker, or may have to, or did before their accelerators were replaced."""
        found = (worker.accelerator for worker in self.roster)
        wanted = [*self.placement, *self.places.spares, *self.job.ranks, *found]
        return tuple(dict.fromkeys(self.host_of(name) for name in wanted))

    def _patience_s(self) -> float | None:
        again = self.trouble.retry_at if self.trouble is not None else None
        at = min(self.group.due, self.lines.next_at, self.awaited_due, math.inf if again is None else again)
        return None if at == math.inf else max(0.0, at - self.means.now())

    def _advance(self) -> None:
        if self.phase.over:
            return
        trouble = self.trouble
        if trouble is not None and trouble.retry_at is not None and self.means.now() >= trouble.retry_at:
            trouble.retry_at = None
        self.answer_pauses()
        if self.phase is Phase.STOPPING and self.all_parked():
            self._finish()
        if self.phase is Phase.FINISHING:
            self.conclude()
        if self.phase in {Phase.STARTING, Phase.RECOVERING} and self.all_listed():
            if self.phase is Phase.STARTING and not self.group.crew:
                taken_over = self.adopt()
                if taken_over:
                    self.before = self.means.before
                if self.stop_if_asked_before() or taken_over:
                    return
                self.look_first()
                trouble = self.trouble
            if trouble is not None and trouble.look and not self.looking and trouble.retry_at is None:
                self.looking, trouble.look, self.healing = self.with_neighbours(trouble.look), set(), trouble.story
                self.means.look(sorted(self.looking), trouble.first)
            self.regroup()

    def _finish(self) -> None:
        """All are parked: have them write what they have, and end."""
        members, crew = self.members(), self.group.crew
        held = {worker.name: worker.held for worker in members if worker.held is not None}
        living = {rank: name for rank, name in crew.items() if name in held}
        layout = members[0].layout if members else REPLICATED
        found = choose(layout, list(held.values()), living) if held else None
        for name, one in held.items():
            done = one.done if found is None else found.done
            also = [rank for rank in crew if rank not in living and done in one.of.get(rank, ())]
            self.tell(self.roster[name], {"do": "stop", "done": done, "also": also})
        self.phase = Phase.STOPPED


def _nothing() -> None:
    return None
