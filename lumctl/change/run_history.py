"""What has changed since a run was cut or left half done: later runs wrote over it, or the inventory was edited.

Such a run is neither continued nor rolled back where that would undo what came later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from lumctl.change.foreign_circuits import placed_by
from lumctl.change.plan import Do, Plan, Step, StepEvidence, from_document
from lumctl.change.settings import same
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.wiring import circuits_of, moved_words
from lumctl.jobs import QUIET, RUNNING
from lumctl.site import Site
from lumctl.store import Entry, Store
from lumctl.store import Run as StoredRun

MOVES_NOTHING = frozenset({Do.CHECK, Do.VERIFY})


@dataclass(frozen=True)
class RunHistory:
    """What is known of each step of a run."""

    plan: Plan
    tried: tuple[Step, ...] = ()
    """The steps that may stand, in the order of the plan: they acted or may have, and were not taken back since."""
    evidence: Mapping[str, StepEvidence] = field(default_factory=dict)
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
        evidence: dict[str, StepEvidence] = {}
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
    def found(self) -> Mapping[str, StepEvidence]:
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

    def was_known(self, step: Step) -> StepEvidence | None:
        """What a step that may stand found before it acted first; ``None`` if it was cut before it could tell."""
        return self.evidence.get(step.id) if step in self.tried else None


def as_first_found(step: Step, evidence: StepEvidence, history: RunHistory) -> StepEvidence:
    """The evidence of a step that is done again, with what it found when it was done first.

    What it finds now may be its own work, and an undo must not take that for what was before.
    """
    if "was" not in evidence or step not in history.tried:
        return evidence
    first = history.was_known(step)
    if first is not None and "was" in first:
        return {**evidence, "was": first["was"]}
    if step.do is Do.TRANSMIT and evidence["was"] == step.data["enabled"] and not history.looked_at(step):
        return {**evidence, "was": True}  # a transmitter that shines without need does less harm than a dark one
    if step.do is Do.SET and same(evidence["was"], step.data["after"]):
        return {**evidence, "was": step.data["before"]}
    if step.do is Do.JOB and evidence["was"] in QUIET:
        return {**evidence, "was": RUNNING}
    return evidence


LIGHT = frozenset({Do.CHECK, Do.TRANSMIT, Do.PROGRAM, Do.VERIFY, Do.CONFIRM, Do.ASSIGN})
"""Steps that only make sense together: a job runs where its circuits lead, and these need their transmitters."""
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Superseded:
    """The steps of a run whose work later runs have written over, and in words how; nothing where there is none."""

    steps: tuple[Step, ...] = ()
    why: tuple[str, ...] = ()


NOTHING = Superseded()


def superseded(site: Site, run: StoredRun, history: RunHistory) -> Superseded:
    """What of a run is no longer as it left it, as far as our record tells.

    Raises:
        StoreError: the store cannot be read.
    """
    store = site.store(run.rack)
    why = [*_written_over(store, run, history), *_moved(site, history)]
    steps = {step.id for step in history.tried if why and step.do in LIGHT and not _darkened(site, step)}
    for step, later in _set_since(store, run, history):
        steps.add(step.id)
        why.append(f"{' '.join(_key(step) or ())} was last set by {later}")
    return Superseded(tuple(step for step in history.tried if step.id in steps), tuple(why))


def _written_over(store: Store, run: StoredRun, history: RunHistory) -> list[str]:
    devices = dict.fromkeys(str(step.data["device"]) for step in history.tried if step.do is Do.PROGRAM)
    writers = {device: store.fabric.last_written_by(device) for device in devices}
    return [f"{device} was last written by {by}" for device, by in writers.items() if by not in {None, run.id}]


def _darkened(site: Site, step: Step) -> bool:
    """Whether a step put out a transmitter that a job needs where it runs now: it is right to light it in any case."""
    if step.do is not Do.TRANSMIT or step.data["enabled"]:
        return False
    standing = circuits_of(site.inventory, site.assignment(sound=False))
    return step.data["transponder"] in {end.transponder for circuit in standing for end in (circuit.a, circuit.b)}


def _moved(site: Site, history: RunHistory) -> list[str]:
    """The jobs that do not run where the run left them. Whoever only sets something is not hindered by swaps."""
    plan = history.plan
    if all(step.do is Do.SET for step in plan.steps):
        return []
    standing = dict(plan.start.assignment)
    for step in history.tried:
        if step.do is Do.ASSIGN and step.id in history.ended:
            standing |= placed_by(step.data["assignment"])
    placed = site.assignment(sound=False)
    return [moved_words(job) for job, ranks in standing.items() if placed.get(job, ()) != ranks]


def _set_since(store: Store, run: StoredRun, history: RunHistory) -> list[tuple[Step, str]]:
    """The steps after which another run has set the same thing, with that run."""
    mine = _last_intents(store.journal.of_run(run.id))
    meant = {key: step for step in history.tried if (key := _key(step)) is not None}
    if not meant:
        return []
    others = [other for other in store.runs.all() if other.id != run.id]
    undone = {other.id for other in others if other.state == "undone"}
    found: dict[str, tuple[Step, str]] = {}
    for other in others:  # the newest first
        if other.id in undone or other.plan.get("undoes") in undone:
            continue  # what these did is as it was before them
        for key, at in _keys_of(store, other, meant).items():
            step = meant[key]
            if at > mine.get(step.id, 0):
                found.setdefault(step.id, (step, other.id))
    return list(found.values())


def _keys_of(store: Store, run: StoredRun, meant: Mapping[Key, Step]) -> dict[Key, int]:
    """Which of some things a run has set that may still stand, each with the number of its intent in the journal."""
    try:
        plan: Plan = from_document(run.plan)
    except UsageError:  # of an action, which sets nothing
        return {}
    if not any(_key(step) in meant for step in plan.steps):
        return {}
    entries = store.journal.of_run(run.id)
    at = _last_intents(entries)
    tried = RunHistory.of(plan, entries).tried
    return {key: at[step.id] for step in tried if (key := _key(step)) in meant and key is not None}


def _key(step: Step) -> Key | None:
    """What a step sets: a component, and which of its settings. Transmitters are switched by swaps and by hand."""
    if step.do is Do.SET:
        return str(step.data["component"]), str(step.data["setting"])
    return (str(step.data["transponder"]), "transmit") if step.do is Do.TRANSMIT else None


def _last_intents(entries: tuple[Entry, ...]) -> dict[str, int]:
    return {entry.step: entry.seq for entry in entries if entry.kind == "intent"}


def require_fit(site: Site, run: str, plan: Plan, *, is_open: bool = False) -> None:
    """Require of an inventory that a run's circuits end where they did.

    One that ``is_open`` is closed once the circuits of the jobs are programmed as the inventory is now.

    Raises:
        RefusedError: a lane is elsewhere now, or no more.
    """
    apply = f"lumctl fabric apply --rewrite --rack {plan.rack} --target {site.target}"
    hint = f"program the circuits of the jobs as they are now: {apply}"
    if is_open:
        hint += f"; then close the run: lumctl swap abort {run} --leave-later --target {site.target}"
    for circuit in (*plan.remove, *plan.add, *plan.keep):
        for end in circuit.ends:
            lane = site.inventory.transponders.get(str(end["lane"]))
            if lane is None or lane.lane.device != circuit.device or end["port"] not in lane.lane.ports:
                raise RefusedError(
                    f"{run} can neither go on nor be undone: {end['lane']} is no longer on {circuit.device} port "
                    f"{end['port']} in {site.inventory.path}",
                    hint=hint,
                )
