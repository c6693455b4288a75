"""How far a run came, by its journal. Later entries count for more than earlier ones: a run may have been resumed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from lumctl.change.plan import Do, Plan, Step
from lumctl.change.settings import same
from lumctl.jobs import QUIET, RUNNING
from lumctl.store import Entry

Evidence = Mapping[str, Any]

MOVES_NOTHING = frozenset({Do.CHECK, Do.VERIFY})


@dataclass(frozen=True)
class Trail:
    """What is known of each step of a run."""

    plan: Plan
    tried: tuple[Step, ...] = ()
    """The steps that may stand, in the order of the plan: they acted or may have, and were not taken back since."""
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    """The last evidence of each step that ever came to its end, by the step's id."""
    ended: frozenset[str] = frozenset()
    """The steps that came to their end and stand."""
    passed_over: frozenset[str] = frozenset()
    """The steps that failed and may: nobody waits for them."""
    intended: frozenset[str] = frozenset()
    """The steps that ever were about to act, taken back since or not."""
    going_back: bool = False
    """Whether the last that the run did was to take steps back."""

    @classmethod
    def of(cls, plan: Plan, entries: Iterable[Entry]) -> Self:
        """Read a run's journal."""
        may_stand: dict[str, bool] = {}
        before: dict[str, bool] = {}
        evidence: dict[str, Evidence] = {}
        ended: set[str] = set()
        failed: set[str] = set()
        going_back = False
        for entry in entries:
            step, data = entry.step, entry.data
            if entry.kind == "intent":
                before[step], may_stand[step], going_back = may_stand.get(step, False), True, False
                if "was" in data and not before[step]:
                    evidence[step] = {"was": data["was"]}  # what was seen before it acted first
                ended.discard(step)
                failed.discard(step)
            elif entry.kind == "outcome" and data.get("done"):
                evidence[step] = data
                ended.add(step)
            elif entry.kind == "outcome":
                failed.add(step)
                if data.get("nothing_sent"):
                    may_stand[step] = before.get(step, False)
            elif entry.kind == "undo-intent":
                going_back = True
                ended.discard(step)
            elif entry.kind == "undo-outcome" and data.get("undone"):
                may_stand[step], going_back = False, True
                ended.discard(step)
        return cls(
            plan,
            tuple(step for step in plan.steps if may_stand.get(step.id)),
            evidence,
            frozenset(ended),
            frozenset(step.id for step in plan.steps if step.id in failed and not step.required),
            frozenset(may_stand),
            going_back,
        )

    @property
    def complete(self) -> bool:
        """Whether every step was done, or may be left out and was; but for jobs that are to go on."""
        needed = {step.id for step in self.plan.steps if not step.resumes_job}
        return not self.going_back and needed <= self.ended | self.passed_over

    @property
    def to_resume(self) -> tuple[Step, ...]:
        """The steps by which jobs go on and of which nobody knows an outcome."""
        known = self.ended | self.passed_over
        return tuple(step for step in self.plan.steps if step.resumes_job and step.id not in known)

    @property
    def touched(self) -> bool:
        """Whether anything may stand that was changed."""
        return any(step.do not in MOVES_NOTHING for step in self.tried)

    @property
    def found(self) -> Mapping[str, Evidence]:
        """What an undo may rely on: the evidence of steps that stand, and what others found before they acted first."""
        lasting = {"was", "sound"}
        return {step: data for step, data in self.evidence.items() if step in self.ended or data.keys() & lasting}

    @property
    def unclear(self) -> tuple[Step, ...]:
        """The steps of which nobody knows what they did."""
        return tuple(step for step in self.tried if step.id not in self.ended)

    def looked_at(self, step: Step) -> bool:
        """Whether it is known from before anything moved if a transmitter was on that a step switches."""
        name = step.data["transponder"]
        return any(name in data.get("transmitting", {}) for data in self.evidence.values())

    def was_known(self, step: Step) -> Evidence | None:
        """What a step that may stand found before it acted first; ``None`` if it was cut before it could tell."""
        return self.evidence.get(step.id) if step in self.tried else None


def as_first_found(step: Step, evidence: Evidence, trail: Trail) -> Evidence:
    """The evidence of a step that is done again, with what it found when it was done first.

    What it finds now may be its own work, and an undo must not take that for what was before.
    """
    if "was" not in evidence or step not in trail.tried:
        return evidence
    first = trail.was_known(step)
    if first is not None and "was" in first:
        return {**evidence, "was": first["was"]}
    if step.do is Do.TRANSMIT and evidence["was"] == step.data["enabled"] and not trail.looked_at(step):
        return {**evidence, "was": True}  # a transmitter that shines without need does less harm than a dark one
    if step.do is Do.SET and same(evidence["was"], step.data["after"]):
        return {**evidence, "was": step.data["before"]}
    if step.do is Do.JOB and evidence["was"] in QUIET:
        return {**evidence, "was": RUNNING}
    return evidence
