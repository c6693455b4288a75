"""The runs that move light in a fake cluster: the healer's own, and those of persons."""

from dataclasses import dataclass

from lumctl.errors import RefusedError
from lumctl.training.coordinator import failures, requests


@dataclass(frozen=True)
class Pair:
    job: str
    failed: str
    spare: str
    rank: int


@dataclass(frozen=True)
class Plan:
    replacements: list[Pair]

    @property
    def title(self):
        return ", ".join(f"replace {pair.failed} by {pair.spare}" for pair in self.replacements)


@dataclass(frozen=True)
class Result:
    run: str


class FakeRuns:
    """Runs of a cluster, one at a time; each has the job pause and continue."""

    def examine(self, accelerators, _failed_only):
        """The healer: a swap takes several turns, during which anything may fail."""
        bad = {name: "it is lost" for name in accelerators if not self.well(name)}
        self.later("healer", lambda: failures.examined(self.state, bad))
        if not bad:
            why = self.dark
            self.later(
                "healer",
                lambda: failures.circuits_dark(self.state, why) if why else failures.repaired(self.state, None),
            )
            return
        free = [name for name in self.spares() if self.well(name)]
        failed = [name for name in bad if name in self.placed]
        if self.locked:
            self.later("healer", lambda: failures.not_repaired(self.state, RefusedError("a run has the rack")))
            return
        if len(free) < len(failed) or self.no_light:
            self.later("healer", lambda: failures.not_repaired(self.state, RefusedError("no spare is left")))
            return
        pairs = list(zip(failed, free, strict=False))
        plan = Plan([Pair("train", old, new, self.placed.index(old)) for old, new in pairs])
        self.runs += 1
        run = f"swap-{self.runs:04}"
        self.locked, answers = True, []

        def assigned():
            if not answers:  # the job is not quiet yet
                self.patient.append(assigned)
                return
            if "error" in answers[0]:
                self.locked = False
                failures.not_repaired(self.state, RefusedError(answers[0]["error"]))
                return
            for old, new in pairs:
                self.placed[self.placed.index(old)] = new
            failures.verified(self.state)
            requests.receive(self.state, {"ask": "resume"}, answers.append)
            self.later("healer", lambda: self.over(run, answers))

        self.later("healer", lambda: failures.planned(self.state, plan))
        self.later("healer", lambda: requests.receive(self.state, {"ask": "pause"}, answers.append))
        self.later("healer", assigned)

    def over(self, run, answers):
        if len(answers) < 2:  # it waits for the job to continue
            self.patient.append(lambda: self.over(run, answers))
        else:
            self.locked = False
            failures.repaired(self.state, Result(run))

    def by_hand(self, rank=None):
        """A person's run pauses the job, moves light (that of a rank to a spare), and has the job continue."""
        if self.locked:
            return
        self.locked, answers = True, []

        def paused():
            if not answers:
                self.patient.append(paused)
            elif "error" in answers[0]:
                self.locked = False
            else:
                self.moves = True
                self.later("person", moved)

        def moved():
            free = [name for name in self.spares() if self.well(name)]
            if rank is not None and free:
                self.placed[rank] = free[0]
            self.moves = self.locked = False
            requests.receive(self.state, {"ask": "resume"}, answers.append)

        self.later("person", lambda: requests.receive(self.state, {"ask": "pause"}, answers.append))
        self.later("person", paused)
