"""What persons and runs ask of a job: how it stands, that it holds, goes on, or ends."""

from typing import Any

from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.running import JobRun
from lumctl.training.failing import NOT_YET
from lumctl.training.hearing import Hearing
from lumctl.training.standing import WAITING, Answer, Means, Phase
from lumctl.training.wire import Message
from lumctl.training.workers import Worker

LEFT = {"error": "lumctl job run has ended; the job goes on without it"}


class Answering(Hearing):
    """Answers requests; some are answered later."""

    def __init__(self, inventory: Inventory, job: Job, run: JobRun, means: Means) -> None:
        super().__init__(inventory, job, run, means)
        self._pauses: list[Answer] = []
        self._stops: list[Answer] = []
        self._stops_for = ""
        """Why it is to stop as soon as it is known who is at work."""

    def asked(self, request: Message, answer: Answer) -> None:
        """Answer a request; some are answered later."""
        match request.get("ask"):
            case "status":
                answer(self.document())
            case "pause":
                self._pause(answer)
            case "resume":
                self._resume(answer)
            case "stop":
                self._stops.append(answer)
                self.stop("somebody asked for it")
            case _:
                answer({"error": f"{request.get('ask')!r} is not known"})

    def _refused(self, answer: Answer) -> bool:
        """Say no where the job ends, or nobody knows where its ranks are placed; whether that was said."""
        if self.phase in {Phase.FINISHING, Phase.STOPPING} or self.phase.over:
            answer({"error": f"job {self.job.name} is {self.phase}"})
            return True
        if (error := self.places.read()) is not None:
            answer({"error": error.message})
            return True
        return False

    def _pause(self, answer: Answer) -> None:
        if self._refused(answer):
            return
        self._pauses.append(answer)
        if self.phase is Phase.RUNNING:
            self.phase = Phase.PAUSED
        if self.group.told:
            self.hold()

    def _resume(self, answer: Answer) -> None:
        if self._refused(answer):
            return
        self.kept = False
        moved = self.placement != list(self.places.placed)
        if self.phase is Phase.RUNNING and not moved:
            answer({"state": "running"})
            return
        if moved and self.group.told:
            self.hold()
        if self.phase is not Phase.STARTING:
            self.phase = Phase.RECOVERING
        if self._still_waits():
            answer(NOT_YET)
            return
        self.place(self.places.placed)
        self.answer_light(NOT_YET)
        self.light = answer

    def _still_waits(self) -> bool:
        """Whether ranks are placed where none can run: a swap that is taken back has the job resumed as well."""
        if (trouble := self.trouble) is None:
            return False
        placed = set(self.places.placed)
        trouble.look &= placed  # a person may have replaced the others
        if not trouble.look:
            trouble.retry_at = None
        return bool(trouble.look or (self.looking & trouble.story.bad.keys() & placed))

    def stop(self, why: str) -> None:
        """Have the job end, and nobody wait for a pause any more."""
        for answer in self._pauses:
            answer({"error": f"the job stops: {why}"})
        self._pauses.clear()
        if self.phase is Phase.STARTING and not self.group.crew and not self.all_listed():
            self._stops_for = why  # those who are at work, and not known yet, are to write their checkpoints too
            return
        super().stop(why)

    def stop_if_asked_before(self) -> bool:
        """Stop now that it is known who is at work, if that was asked for before; whether it was."""
        why, self._stops_for = self._stops_for, ""
        if why:
            self.stop(why)
        return bool(why)

    def answer_pauses(self) -> None:
        """Answer whoever waits for the job to hold, once it does."""
        if self._pauses and self.phase is Phase.RUNNING:  # it was about to
            self.phase = Phase.PAUSED
            self.hold()
        if self._pauses and self._holds():
            self.kept = True
            for answer in self._pauses:
                answer({"state": "paused"})
            self._pauses.clear()

    def _holds(self) -> bool:
        if self.phase is Phase.STARTING and not self.group.crew:  # who was found may be at work
            return self.all_listed() and not any(worker.alive and worker.busy for worker in self.roster)
        return self.phase in {Phase.STARTING, Phase.PAUSED, Phase.RECOVERING} and self.all_parked()

    def answer_stops(self) -> None:
        """Answer whoever waits for the job to end."""
        done, saved = self._reached(), self._saved()
        for answer in self._stops:
            answer({"state": str(self.phase), "done": done, "saved": saved})
        self._stops.clear()

    def _reached(self) -> int:
        return max((worker.done for worker in self.roster if self.is_member(worker)), default=0)

    def _saved(self) -> list[str]:
        """The checkpoints of the steps that are done."""
        done = self._reached()
        return sorted({path for worker in self.roster for (_, at), path in worker.saved.items() if at == done})

    def leave(self) -> None:
        """Answer whoever waits for something: nobody is here any more to do it."""
        for answer in (*self._pauses, *self._stops):
            answer(LEFT)
        self.answer_light(LEFT)

    def document(self) -> dict[str, Any]:
        """The job as it stands, as data."""
        first = self.roster.get(self.group.crew.get(0, ""))
        return {
            "job": self.job.name,
            "state": self.state,
            "why": self._why(),
            "end": str(self.end) if self.phase.over and self.end is not None else None,
            "script_error": self.error or (self.trouble.story.error if self.trouble is not None else None),
            "parked": self.all_parked(),
            "generation": self.group.generation,
            "of": len(self.placement),
            "done": self._reached() if self.phase.over else first.done if first is not None else 0,
            "ended_at": self.ended_at,
            "saved": self._saved() if self.phase.over else [],
            "loss": first.loss if first is not None else None,
            "rate_steps_per_s": self.rate,
            "ranks": [
                {"rank": rank, **_told(worker), "state": self._state_of(worker), "done": worker.done}
                for rank, worker in ((rank, self.roster[name]) for rank, name in sorted(self.group.crew.items()))
            ],
            "ready": [_told(worker) for worker in self.roster if self._is_ready(worker)],
            "recoveries": [*self.before, *(story.document() for story in self.told)],
        }

    def _is_ready(self, worker: Worker) -> bool:
        wanted = worker.accelerator in self.placement or worker.accelerator in self.places.spares
        return wanted and worker.usable and not self.is_member(worker)

    @property
    def state(self) -> str:
        """What the job does, as a person is told: it is paused as long as it may not go on."""
        held = self.kept and self.phase in {Phase.STARTING, Phase.RECOVERING} and not self.looking
        lacks = self.phase in {Phase.STARTING, Phase.RECOVERING} and self.trouble is not None and self.trouble.why
        return str(Phase.PAUSED if held else WAITING if lacks else self.phase)

    def _why(self) -> str:
        if self.phase is Phase.FINISHING:
            return self.waits_for()
        if self.phase in {Phase.STARTING, Phase.RECOVERING} and self.settled:
            placed = [self.host_of(name) for rank, name in enumerate(self.placement) if rank not in self.vacant]
            if waits := self.lines.away(dict.fromkeys(placed)) or self.waits_for():
                return waits
        if self.phase is Phase.STOPPING or self.phase.over or self.trouble is None:
            return self.why_ended
        return self.trouble.why

    def _state_of(self, worker: Worker) -> str:
        if self.phase.over:
            return str(self.phase)
        if not worker.alive:
            return "lost"
        return "held" if worker.held is not None else self.state


def _told(worker: Worker) -> dict[str, Any]:
    return {"accelerator": worker.accelerator, "host": worker.host, "worker": worker.name, "pid": worker.pid}
