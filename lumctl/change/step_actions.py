"""What each kind of step does to the rack, and how it is undone. One class per kind, all with the same two methods.

``act`` returns evidence for the journal, or raises a domain error; ``undo`` takes that evidence (``None`` if the step
was cut before it could give any) and puts things back. Neither touches the store: the run does.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Protocol

from lumctl.change.concurrency import all_of
from lumctl.change.light import LightProof
from lumctl.change.origin import origin
from lumctl.change.plan import Do, Plan, Step, StepEvidence
from lumctl.change.settings import Settable, same, settable
from lumctl.devices import transaction
from lumctl.devices.errors import DeviceError
from lumctl.devices.progress import goes_on_for_s, in_words
from lumctl.devices.types import Capability, Progress, Receipt
from lumctl.errors import LumctlError, RefusedError
from lumctl.health.evaluate import evaluate
from lumctl.health.states import State
from lumctl.inventory.wiring import Circuit
from lumctl.jobs import QUIET, RUNNING, HookFailedError, Hooks, passed_over
from lumctl.jobs.hooks import NOBODY, PAUSE, RESUME, Facts
from lumctl.site import Site

REVERT_AFTER_S = 60.0
"""What a device with a revert timer of its own is given beyond twice the light's deadline before it goes back."""


MOST_READS = 8
"""Reads side by side: beside the loop that reads its probes, a host may run nine commands over one connection."""


Circuits = Mapping[str, Circuit]


class StepContext:
    """What the steps of one run share: the site, the circuits before and after, and what was learnt on the way."""

    def __init__(self, site: Site, before: Circuits, after: Circuits, *, covered: frozenset[str] = frozenset()) -> None:
        self.site = site
        self.before = before
        self.after = after
        self.covered = covered
        """Devices and components that a revert guard of ours would put back."""
        self.light = LightProof(site.inventory, site.fleet, site.devices, now=site.now)
        self.sound: dict[str, str] = {}
        """Receivers that were shown to hear whom they should before anything moved, with their transmitters."""
        self.lit: dict[str, bool] = {}
        """Which transmitters were on before anything moved, of those that the run switches."""
        self.switched: Sequence[str] = ()
        """The transmitters that the run switches."""
        self.powers: dict[str, float] = {}
        """Received powers (dBm) before anything moved, of receivers that cannot say whom they hear."""
        self.receipts: dict[str, Receipt[Any]] = {}
        self.held: dict[str, dict[int, str]] = {}
        """By device what it held before it was written, where the plan did not know that and the device told."""
        self.unasked = False
        """Whether what is undone is undone by a guard, and not by a person's word."""
        self.facts = NOBODY
        """What the hooks of jobs are told of the run."""
        self.say: Callable[[str], None] = lambda _line: None
        """Reports progress within a step; called from several threads."""
        chassis = {lane.module.device for lane in site.inventory.transponders.values() if lane.module}
        self._turns = {device: threading.Lock() for device in chassis}

    def turn(self, transponder: str) -> AbstractContextManager[Any]:
        """Transmitters of one chassis take turns: it lets one session change its configuration at a time."""
        module = self.site.inventory.transponders[transponder].module
        return self._turns[module.device] if module else nullcontext()

    def watch(self, device: str, progress: Progress) -> None:
        """Report how far a device has come."""
        self.say(f"{device} {in_words(progress)}")

    def settle(self, device: str) -> None:
        """Wait until a device's cells have settled: nothing tells, the inventory states how long."""
        threading.Event().wait(self.site.inventory.devices[device].settle_ms / 1000)


class StepAction(Protocol):
    """One kind of step."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:
        """Do it."""
        ...

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        """Put back what it did."""
        ...


class CheckStep:
    """Find how the rack is before anything moves: well spares, receivers that hear whom they should, transmitters."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:
        """Read hosts and light, all at once.

        Raises:
            RefusedError: an accelerator that has to be healthy is not.
        """
        circuits = [context.before[name] for name in (*step.data["kept"], *step.data["replaced"])]
        carrying = {transmitter for circuit in circuits for _, transmitter in circuit.receivers}
        calls = [
            partial(self._hear, context, circuits),  # the longest
            partial(require_healthy, context.site, step.data["healthy"]),
            *(partial(self._look_at, context, name) for name in context.switched if name not in carrying),
        ]
        all_of(calls, most=MOST_READS)
        # Whom somebody hears, shines: only of the others has to be asked.
        context.lit |= dict.fromkeys(carrying & set(context.sound.values()) & set(context.switched), True)
        unheard = [name for name in context.switched if name in carrying and name not in context.lit]
        all_of([partial(self._look_at, context, name) for name in unheard], most=MOST_READS)
        lit = {receiver: power for receiver, power in context.powers.items() if math.isfinite(power)}
        return {
            "sound": context.sound,
            **({"powers": lit} if lit else {}),
            **({"transmitting": dict(sorted(context.lit.items()))} if context.lit else {}),
        }

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:  # noqa: ARG002 - as others
        """Nothing was done."""
        return {}

    @staticmethod
    def _hear(context: StepContext, circuits: list[Circuit]) -> None:
        context.sound = context.light.sound(circuits)
        context.powers = context.light.powers(circuits)

    @staticmethod
    def _look_at(context: StepContext, transponder: str) -> None:
        """Who cannot be asked now is heard of when it is switched."""
        with suppress(DeviceError):
            context.lit[transponder] = context.site.devices.transponder(transponder).transmitting()


def require_healthy(site: Site, accelerators: Sequence[str]) -> None:
    """Require of accelerators that a fresh reading says ok.

    Raises:
        RefusedError: one is not; it says why.
    """
    inventory = site.inventory
    if not accelerators:
        return
    snapshot = site.fleet.collect({inventory.accelerators[a].host for a in accelerators})
    now = site.now()
    events = site.recollection.events(snapshot, now)
    report = evaluate(inventory, snapshot, (), losses={}, devices={}, now=now, events=events)
    for accelerator in accelerators:
        health = report.accelerators[accelerator]
        if health.state is not State.OK:
            why = health.findings[0].evidence if health.findings else "there is no reading of it"
            raise RefusedError(f"{accelerator} is {health.state}, not ok: {why}")


class TransmitStep:
    """Switch one transmitter; what it was before the run is kept for the undo."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:
        name, meant = step.data["transponder"], step.data["enabled"]
        driver = context.site.devices.transponder(name)
        with context.turn(name):
            was = context.lit.get(name)
            if was is None or was == meant:  # it is left alone only if it shows now that it can be
                was = driver.transmitting()
            if was != meant:
                driver.set_transmit(meant)
        return {"was": was, "is": meant}

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        name = step.data["transponder"]
        # Where nobody knows what it had been: one that shines without need does less harm than a dark one.
        was = bool(evidence["was"]) if evidence else context.lit.get(name, True)
        if evidence is None or was != step.data["enabled"]:
            with context.turn(name):
                context.site.devices.transponder(name).set_transmit(was)
        return {"is": was}


class ProgramStep:
    """Write PUC states or joins of one device; one with a revert timer of its own is armed."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:
        device = step.data["device"]
        driver = context.site.devices.changing(device)
        staged = transaction.stage(driver, step.data["changes"])
        if transaction.readable(driver) and any(before is None for _, before, _ in step.data["changes"]):
            context.held[device] = transaction.held_before(staged)
        timer = None
        if Capability.CONFIRM_TIMER in driver.capabilities:
            # The timer starts at the answer; the device may keep working on the change long after that.
            timer = REVERT_AFTER_S + 2 * context.site.inventory.thresholds.light_deadline_s + goes_on_for_s(driver)
        watch = partial(context.watch, device)
        context.receipts[device] = receipt = transaction.write(driver, staged, revert_after_s=timer, watch=watch)
        context.settle(device)
        timer_of = "device" if receipt.revert_armed else "ours" if device in context.covered else "none"
        held = {"held": [list(cell) for cell in context.held[device].items()]} if device in context.held else {}
        return {"cells": len(step.data["changes"]), "revert_timer": timer_of, "answer": receipt.text, **held}

    @staticmethod
    def with_held(context: StepContext, step: Step, evidence: StepEvidence | None) -> Step:
        """The step with what the device itself held before it, where the plan did not know that."""
        held = context.held.get(step.data["device"], {}) | {
            int(cell): str(was) for cell, was in (evidence or {}).get("held", ())
        }
        changes = [[cell, held.get(cell) if was is None else was, after] for cell, was, after in step.data["changes"]]
        return replace(step, data={**step.data, "changes": changes})

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:  # noqa: ARG002
        device = step.data["device"]
        driver = context.site.devices.changing(device)
        receipt = context.receipts.get(device)
        armed = receipt is not None and receipt.revert_armed
        token = receipt.staged.token if receipt else ""
        meant = transaction.committed(driver, step.data["changes"], token)
        transaction.take_back(driver, Receipt(meant, revert_armed=armed), watch=partial(context.watch, device))
        context.settle(device)
        return {"cells": len(step.data["changes"])}


class VerifyStep:
    """Prove the new circuits, and that every other one on the same devices still hears whom it heard."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:
        kept = [context.after[name] for name in step.data["kept"]]
        circuits = [context.after[name] for name in step.data["circuits"]]
        shown = context.light.prove(circuits, kept=kept, sound=context.sound)
        context.light.require_powers(kept, context.powers)
        proofs = [asdict(proof) for proof in shown if proof.circuit in step.data["circuits"]]
        heard = {proof.receiver for proof in shown}
        silent = [c.id for c in kept if any(context.sound.get(r) == t and r not in heard for r, t in c.receivers)]
        return {"proofs": proofs, "kept": len(shown) - len(proofs), **({"silent": silent} if silent else {})}

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        if evidence is None:
            context.light.relight([context.after[name] for name in step.data["circuits"]])
        return {}

    @staticmethod
    def prove_still_sound(context: StepContext, kept: Sequence[str], put_back: Sequence[str]) -> None:
        """Prove again every receiver that was sound before the change; those that cannot say, by their power."""
        meant = [context.before[name] for name in (*kept, *put_back)]
        context.light.require_powers(meant, context.powers)
        context.light.prove([], kept=meant, sound=context.sound, put_back=put_back)

    @classmethod
    def as_before(cls, context: StepContext, steps: Sequence[Step]) -> list[str]:
        """What was sound before a run must be sound again after its undo, or the rack is not as it was: in words."""
        try:
            for step in steps:
                if step.do is Do.CHECK:
                    cls.prove_still_sound(context, step.data["kept"], step.data["replaced"])
        except LumctlError as error:
            return [f"the cells were put back, but {error.message}"]
        return []


class ConfirmStep:
    """Tell devices with a revert timer to keep the change."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:
        for device in step.data["devices"]:
            if device in context.receipts:
                context.site.devices.changing(device).confirm(context.receipts[device])
        return {"devices": list(step.data["devices"])}

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:  # noqa: ARG002 - Program undoes it
        return {}


class AssignStep:
    """Write down who runs where: the run records it with the outcome, so there is nothing to do here."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:  # noqa: ARG002
        return {"assignment": step.data["assignment"]}

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:  # noqa: ARG002
        return {"assignment": step.data["before"]}


class SetStep:
    """Set one setting; what the component showed before is kept for the undo."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:
        setting, after = self._meant(context, step), step.data["after"]
        was = setting.read()
        if same(was, after):
            return {"was": was, "is": was}
        return {"was": was, "is": setting.write(after)}

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        setting, after = self._meant(context, step), step.data["after"]
        was = evidence["was"] if evidence else step.data["before"]
        if not setting.setting.reversible(after):
            raise RefusedError(f"{setting.component.id}: there is no way back from {setting.text(after)}")
        if was is None:
            raise RefusedError(f"what {setting.setting.name} of {setting.component.id} was is not known")
        return {"is": was if evidence and same(evidence["is"], was) else setting.write(was)}

    @staticmethod
    def _meant(context: StepContext, step: Step) -> Settable:
        site = context.site
        return settable(site.inventory, site.devices, step.data["component"], step.data["setting"])


class RecordStep:
    """Say again what was said, in the store; in the name of who asks now."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:
        return context.site.store(step.data["rack"]).actions.perform(step.data, who=origin(), now=context.site.now())

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        if evidence is not None:
            context.site.store(step.data["rack"]).actions.undo(step.data, evidence)
        return {}


class JobStep:
    """Call a job's hook. What it did before is kept: a job that was quiet already is not set going by an undo."""

    def act(self, context: StepContext, step: Step) -> StepEvidence:
        """Pause the job, or have it go on.

        Raises:
            HookRefusedError: its hook said no, and the job is as it was.
            HookFailedError: nobody knows what the job does.
        """
        job, pauses = step.data["job"], step.data["act"] == PAUSE
        named = {"job": job, "act": step.data["act"]}
        if (why := passed_over(context.site, job)) is not None:
            return {**named, "hook": {"passed_over": why}}
        hooks = Hooks(context.site, job, context.facts)
        if pauses:
            found = hooks.pause()
        else:
            try:
                found = _resumed(context, job, hooks)
            except KeyboardInterrupt as error:  # all light is right: that is no reason to take it back
                raise HookFailedError(f"the resume hook of job {job} was interrupted") from error
        return {**named, "was": found.pop("was"), "hook": found}

    def undo(self, context: StepContext, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        """Have a paused job go on; pause one again that is not to use the light that is taken back now."""
        job = step.data["job"]
        if passed_over(context.site, job) is not None:
            return {}
        hooks = Hooks(context.site, job, context.facts)
        if step.data["act"] == RESUME:
            return {"hook": hooks.pause()}
        if evidence is not None and evidence.get("was") in QUIET:
            return {}
        if evidence is None and context.unasked and hooks.status() != RUNNING:
            raise HookFailedError(f"whether this run has paused job {job} is not known: it is left as it is")
        return {"hook": _resumed(context, job, hooks)}


def _resumed(context: StepContext, job: str, hooks: Hooks) -> dict[str, str]:
    """Have a job go on; where its control names the accelerators or hosts of its ranks, they are the placement's.

    Raises:
        HookFailedError: they are others, though its control reported success.
    """
    found = hooks.resume()
    if "ranks" not in found:
        return found
    known = context.site.inventory.accelerators
    placed = [known[each] for each in context.site.assignment(sound=False)[job] if each in known]
    runs_at = [each.strip() for each in found["ranks"].split(",")]
    if len(runs_at) != len(placed) or any(
        at not in {each.id, each.host} for at, each in zip(runs_at, placed, strict=True)
    ):
        raise HookFailedError(
            f"job {job} runs at {', '.join(runs_at)}, and is placed at {', '.join(each.id for each in placed)}: "
            "stop it there first"
        )
    return found


def job_states_before(
    site: Site, steps: Iterable[Step], about_to_ask: Callable[[Step], None]
) -> dict[str, StepEvidence]:
    """What the jobs do that are about to be paused, by step, where their hooks tell: it is on disk before that.

    They are asked one after the other, and each may take its time: ``about_to_ask`` is called before each of them.
    """
    found: dict[str, StepEvidence] = {}
    for step in steps:
        if step.do is Do.JOB and step.data["act"] == PAUSE and passed_over(site, step.data["job"]) is None:
            about_to_ask(step)
            with suppress(LumctlError):  # then it is not paused either
                if (was := Hooks(site, step.data["job"]).status()) is not None:
                    found[step.id] = {"was": was}
    return found


def facts_of(plan: Plan, run: str) -> Facts:
    """What the hooks of a run are told of it."""
    return Facts(run, [r.failed for r in plan.replacements], [r.spare for r in plan.replacements])


ACTIONS: Mapping[Do, StepAction] = {
    Do.CHECK: CheckStep(),
    Do.TRANSMIT: TransmitStep(),
    Do.PROGRAM: ProgramStep(),
    Do.VERIFY: VerifyStep(),
    Do.CONFIRM: ConfirmStep(),
    Do.ASSIGN: AssignStep(),
    Do.SET: SetStep(),
    Do.JOB: JobStep(),
    Do.RECORD: RecordStep(),
}
