"""The progress of an open run, from its journal, and what has changed since: later runs, or an edited inventory.

A run is neither continued nor rolled back if that would undo later changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from lumctl.change.foreign_circuits import placed_by
from lumctl.change.plan import Do, Plan, Step, StepEvidence, from_document
from lumctl.change.refusal_advice import REVERSIBLE, plan_again
from lumctl.change.settings import same
from lumctl.context import Context
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.wiring import circuits_of, moved_words
from lumctl.jobs import QUIET, RUNNING
from lumctl.store import JournalEntry, Store, StoredRun

MOVES_NOTHING = frozenset({Do.CHECK, Do.VERIFY})


@dataclass(frozen=True)
class RunHistory:
    """What the journal says about each step of a run. Later entries override earlier ones: runs can be resumed."""

    plan: Plan
    tried: tuple[Step, ...] = ()
    """The steps that may be in force, in the order of the plan: they may have acted, and were not undone since."""
    evidence: Mapping[str, StepEvidence] = field(default_factory=dict)
    """The newest evidence of each step that ever finished, by step id."""
    ended: frozenset[str] = frozenset()
    """The finished steps that are in force."""
    passed_over: frozenset[str] = frozenset()
    """The steps that failed and are not required."""
    intended: frozenset[str] = frozenset()
    """Every step that was ever recorded as about to act, including steps undone since."""
    going_back: bool = False
    """Whether the journal ends while the run was undoing steps."""

    @classmethod
    def of(cls, plan: Plan, entries: Iterable[JournalEntry]) -> Self:
        """Read a run's journal."""
        may_stand: dict[str, bool] = {}
        before: dict[str, bool] = {}
        evidence: dict[str, StepEvidence] = {}
        ended: set[str] = set()
        failed: set[str] = set()
        going_back = False
        for entry in entries:
            step, data = entry.step, entry.data
            if entry.kind == "intent":
                before[step], may_stand[step], going_back = may_stand.get(step, False), True, False
                if "was" in data and not before[step]:
                    evidence[step] = {"was": data["was"]}  # seen before its first attempt
                ended.discard(step)
                failed.discard(step)
            elif entry.kind == "outcome" and data.get("done"):
                evidence[step] = data
                ended.add(step)
            elif entry.kind == "outcome":
                # A failed step may have acted in part, so it still may be in force.
                failed.add(step)
                if data.get("nothing_sent"):
                    # This attempt sent nothing, but an earlier one may have acted.
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
        """Whether every required step was done, except those that resume jobs."""
        needed = {step.id for step in self.plan.steps if not step.resumes_job}
        return not self.going_back and needed <= self.ended | self.passed_over

    @property
    def to_resume(self) -> tuple[Step, ...]:
        """The steps that resume jobs and have no known outcome."""
        known = self.ended | self.passed_over
        return tuple(step for step in self.plan.steps if step.resumes_job and step.id not in known)

    @property
    def touched(self) -> bool:
        """Whether any change may be in force."""
        return any(step.do not in MOVES_NOTHING for step in self.tried)

    @property
    def found(self) -> Mapping[str, StepEvidence]:
        """Evidence for an undo: that of the steps in force, and what other steps found before their first attempt."""
        lasting = {"was", "sound"}
        return {step: data for step, data in self.evidence.items() if step in self.ended or data.keys() & lasting}

    @property
    def unclear(self) -> tuple[Step, ...]:
        """The steps with an unknown outcome."""
        return tuple(step for step in self.tried if step.id not in self.ended)

    def looked_at(self, step: Step) -> bool:
        """Whether the run recorded the earlier state of a transmitter that a step switches."""
        name = step.data["transponder"]
        return any(name in data.get("transmitting", {}) for data in self.evidence.values())

    def was_known(self, step: Step) -> StepEvidence | None:
        """What a step found before its first attempt; ``None`` if it was interrupted before it could record that."""
        return self.evidence.get(step.id) if step in self.tried else None


def as_first_found(step: Step, evidence: StepEvidence, history: RunHistory) -> StepEvidence:
    """The evidence of a repeated step, with what it found at its first attempt.

    A later attempt may find the result of the first one, which an undo must not restore.
    """
    if "was" not in evidence or step not in history.tried:
        return evidence
    first = history.was_known(step)
    if first is not None and "was" in first:
        return {**evidence, "was": first["was"]}
    if step.do is Do.TRANSMIT and evidence["was"] == step.data["enabled"] and not history.looked_at(step):
        return {**evidence, "was": True}  # an unneeded light does less harm than a dark transmitter
    if step.do is Do.SET and same(evidence["was"], step.data["after"]):
        return {**evidence, "was": step.data["before"]}
    if step.do is Do.JOB and evidence["was"] in QUIET:
        return {**evidence, "was": RUNNING}
    return evidence


LIGHT = frozenset({Do.CHECK, Do.TRANSMIT, Do.PROGRAM, Do.VERIFY, Do.CONFIRM, Do.ASSIGN})
"""Groups of steps that depend on each other: jobs need their circuits, and circuits need their transmitters."""
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Superseded:
    """The steps of a run that later runs have overwritten, and the reasons in words; empty if there are none."""

    steps: tuple[Step, ...] = ()
    why: tuple[str, ...] = ()


NOTHING = Superseded()


def superseded(context: Context, run: StoredRun, history: RunHistory) -> Superseded:
    """The steps of a run whose results later changes have overwritten, according to the record.

    Raises:
        StoreError: the store cannot be read.
    """
    store = context.store(run.rack)
    why = [*_written_over(store, run, history), *_moved(context, history)]
    steps = {step.id for step in history.tried if why and step.do in LIGHT and not _darkened(context, step)}
    for step, later in _set_since(store, run, history):
        steps.add(step.id)
        why.append(f"{' '.join(_key(step) or ())} was last set by {later}")
    return Superseded(tuple(step for step in history.tried if step.id in steps), tuple(why))


def _written_over(store: Store, run: StoredRun, history: RunHistory) -> list[str]:
    devices = dict.fromkeys(str(step.data["device"]) for step in history.tried if step.do is Do.PROGRAM)
    writers = {device: store.fabric.last_written_by(device) for device in devices}
    return [f"{device} was last written by {by}" for device, by in writers.items() if by not in {None, run.id}]


def _darkened(context: Context, step: Step) -> bool:
    """Whether a step turned off a transmitter that a job needs now: undoing it is always right."""
    if step.do is not Do.TRANSMIT or step.data["enabled"]:
        return False
    standing = circuits_of(context.inventory, context.assignment(sound=False))
    return step.data["transponder"] in {end.transponder for circuit in standing for end in (circuit.a, circuit.b)}


def _moved(context: Context, history: RunHistory) -> list[str]:
    """The jobs that have moved since the run ended; empty for a run of settings, which does not place jobs."""
    plan = history.plan
    if all(step.do is Do.SET for step in plan.steps):
        return []
    standing = dict(plan.start.assignment)
    for step in history.tried:
        if step.do is Do.ASSIGN and step.id in history.ended:
            standing |= placed_by(step.data["assignment"])
    placed = context.assignment(sound=False)
    return [f"{moved_words(job)} then" for job, ranks in standing.items() if placed.get(job, ()) != ranks]


def _set_since(store: Store, run: StoredRun, history: RunHistory) -> list[tuple[Step, str]]:
    """The steps whose setting another run has changed later, with that run."""
    mine = _last_intents(store.journal.of_run(run.id))
    meant = {key: step for step in history.tried if (key := _key(step)) is not None}
    if not meant:
        return []
    others = [other for other in store.runs.all() if other.id != run.id]
    undone = {other.id for other in others if other.state == "undone"}
    found: dict[str, tuple[Step, str]] = {}
    for other in others:  # the newest first
        if other.id in undone or other.plan.get("undoes") in undone:
            continue  # their changes are undone
        for key, at in _keys_of(store, other, meant).items():
            step = meant[key]
            if at > mine.get(step.id, 0):
                found.setdefault(step.id, (step, other.id))
    return list(found.values())


def _keys_of(store: Store, run: StoredRun, meant: Mapping[Key, Step]) -> dict[Key, int]:
    """The settings among ``meant`` that a run may have changed, each with the number of its intent in the journal."""
    try:
        plan: Plan = from_document(run.plan)
    except UsageError:  # the run of an action has no steps
        return {}
    if not any(_key(step) in meant for step in plan.steps):
        return {}
    entries = store.journal.of_run(run.id)
    at = _last_intents(entries)
    tried = RunHistory.of(plan, entries).tried
    return {key: at[step.id] for step in tried if (key := _key(step)) in meant and key is not None}


def _key(step: Step) -> Key | None:
    """The component and setting that a step changes. Transmitters count, because swaps and operators switch them."""
    if step.do is Do.SET:
        return str(step.data["component"]), str(step.data["setting"])
    return (str(step.data["transponder"]), "transmit") if step.do is Do.TRANSMIT else None


def _last_intents(entries: tuple[JournalEntry, ...]) -> dict[str, int]:
    return {entry.step: entry.seq for entry in entries if entry.kind == "intent"}


def require_in_force(context: Context, run: StoredRun) -> None:
    """Refuse to roll back a run none of whose changes is in force any more, even if a later run made the same ones.

    Raises:
        RefusedError: the run was rolled back, or ended without changes.
    """
    if run.state in REVERSIBLE:
        return
    if run.undone_by:
        raise RefusedError(
            f"{run.id} is no longer in force: it was rolled back by {run.undone_by}",
            hint=f"see: lumctl swap list --target {context.target}",
        )
    raise RefusedError(
        f"{run.id} changed nothing to roll back: it ended {run.state}",
        hint=plan_again(context, from_document(run.plan)),
    )


def require_fit(context: Context, run: str, plan: Plan, *, is_open: bool = False) -> None:
    """Require that a run's circuits still end at the same ports in the inventory.

    If the run ``is_open``, the hint also says how to close it.

    Raises:
        RefusedError: a lane has moved or no longer exists.
    """
    apply = f"lumctl fabric apply --rewrite --rack {plan.rack} --target {context.target}"
    hint = f"program the current circuits of the jobs: {apply}"
    if is_open:
        hint += f"; then close the run: lumctl swap abort {run} --leave-later --target {context.target}"
    for circuit in (*plan.remove, *plan.add, *plan.keep):
        for end in circuit.ends:
            lane = context.inventory.transponders.get(str(end["lane"]))
            if lane is None or lane.lane.device != end["device"] or end["port"] not in lane.lane.ports:
                raise RefusedError(
                    f"{run} can neither continue nor be undone: {end['lane']} is no longer on {end['device']} port "
                    f"{end['port']} in {context.inventory.path}",
                    hint=hint,
                )
