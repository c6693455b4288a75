"""What each kind of step does to the rack, and how it is undone. One class per kind, each with the same two methods.

``act`` returns evidence for the journal, or raises a domain error. ``undo`` takes that evidence (``None`` if the step
was interrupted before it could return any) and restores the earlier state. Neither writes the run's journal: the run
does.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Protocol

from lumctl.change.concurrency import MOST_AT_A_HOST, all_of
from lumctl.change.light_proof import NotProvedError
from lumctl.change.origin import origin
from lumctl.change.plan import Do, Plan, Step, StepEvidence
from lumctl.change.refusal_advice import why_silent
from lumctl.change.run_scope import RunScope
from lumctl.change.settings import Settable, same, settable
from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.devices.errors import DeviceError, InconsistentError
from lumctl.devices.progress import goes_on_for_s
from lumctl.devices.types import Capability, Receipt
from lumctl.errors import LumctlError, RefusedError
from lumctl.health.evaluation import evaluate
from lumctl.health.states import State
from lumctl.inventory.wiring import Circuit
from lumctl.jobs import QUIET, RUNNING, HookFailedError, Hooks, passed_over
from lumctl.jobs.hooks import PAUSE, RESUME, Facts, placement_of

REVERT_AFTER_S = 60.0
"""How much longer than twice the light deadline a device's own revert timer runs."""


class StepAction(Protocol):
    """One kind of step."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:
        """Do the step and return its evidence."""
        ...

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        """Restore the state before the step."""
        ...


class CheckStep:
    """Read the rack before anything changes: healthy spares, what receivers hear, which transmitters are on."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:
        """Read hosts and light at the same time.

        Raises:
            RefusedError: an accelerator that must be healthy is not, or a host without which a new circuit cannot be
                proved does not answer.
        """
        circuits = [run.before[name] for name in (*step.data["kept"], *step.data["replaced"])]
        carrying = {transmitter for circuit in circuits for _, transmitter in circuit.receivers}
        calls = [
            partial(self._hear, run, circuits),  # this call takes longest, so it starts first
            partial(require_healthy, run.context, step.data["healthy"]),
            partial(self._require_provable, run),
            *(partial(self._look_at, run, name) for name in run.switched if name not in carrying),
        ]
        all_of(calls, most=MOST_AT_A_HOST)
        # A transmitter that is heard is on; only the others must be asked.
        run.lit |= dict.fromkeys(carrying & set(run.sound.values()) & set(run.switched), True)
        unheard = [name for name in run.switched if name in carrying and name not in run.lit]
        all_of([partial(self._look_at, run, name) for name in unheard], most=MOST_AT_A_HOST)
        lit = {receiver: power for receiver, power in run.powers.items() if math.isfinite(power)}
        return {
            "sound": run.sound,
            **({"powers": lit} if lit else {}),
            **({"transmitting": dict(sorted(run.lit.items()))} if run.lit else {}),
        }

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:  # noqa: ARG002 - as others
        """Nothing to undo."""
        return {}

    @staticmethod
    def _require_provable(run: RunScope) -> None:
        if silent := sorted(run.light.silent_hosts(run.after[name] for name in run.proved)):
            answers = "do not answer" if silent[1:] else "does not answer"
            raise RefusedError(
                f"{' and '.join(silent)} {answers}: the light of the new circuits could not be proved",
                hint=why_silent(silent, run.context.target),
            )

    @staticmethod
    def _hear(run: RunScope, circuits: list[Circuit]) -> None:
        run.sound = run.light.sound(circuits)
        run.powers = run.light.powers(circuits)

    @staticmethod
    def _look_at(run: RunScope, transponder: str) -> None:
        """Read a transmitter's state. An error is ignored here: it is reported when the transmitter is switched."""
        with suppress(DeviceError):
            run.lit[transponder] = run.context.devices.transponder(transponder).transmitting()


def require_healthy(context: Context, accelerators: Sequence[str]) -> None:
    """Require that accelerators are ok according to a fresh reading.

    Raises:
        RefusedError: an accelerator is not; the message says why.
    """
    inventory = context.inventory
    if not accelerators:
        return
    hosts = {inventory.accelerators[a].host for a in accelerators}
    snapshot = context.fleet.collect(hosts, context.fleet.accelerator_probes(hosts))
    now = context.now()
    events = context.recollection.events(snapshot, now)
    report = evaluate(inventory, snapshot, (), losses={}, devices={}, now=now, events=events, accelerators=accelerators)
    for accelerator, health in report.accelerators.items():
        if health.state is not State.OK:
            why = report.why(health, inventory.accelerators[accelerator].host)
            raise RefusedError(f"{accelerator} is {health.state}, not ok: {why}")


class TransmitStep:
    """Switch one transmitter; its earlier state is stored for the undo."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:
        name, meant = step.data["transponder"], step.data["enabled"]
        driver = run.context.devices.transponder(name)
        with run.turn(name):
            was = run.lit.get(name)
            if was is None or was == meant:  # skip the write only if a read now confirms its state
                was = driver.transmitting()
            if was != meant:
                driver.set_transmit(meant)
        return {"was": was, "is": meant}

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        name = step.data["transponder"]
        # Without a known earlier state it is switched on: an unneeded light does less harm than a dark transmitter.
        was = bool(evidence["was"]) if evidence else run.lit.get(name, True)
        if evidence is None or was != step.data["enabled"]:
            with run.turn(name):
                run.context.devices.transponder(name).set_transmit(was)
        return {"is": was}


def revert_timer_s(context: Context, device: str) -> float:
    """How long a device with a revert timer waits for the confirmation of a change, in seconds."""
    # The timer starts when the device answers; the device may still work on the change long after that.
    goes_on_s = goes_on_for_s(context.devices.changing(device))
    return REVERT_AFTER_S + 2 * context.inventory.thresholds.light_deadline_s + goes_on_s


class ProgramStep:
    """Write PUC states or connections of one device; arm its own revert timer if it has one."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:
        device = step.data["device"]
        driver = run.context.devices.changing(device)
        staged = transaction.stage(driver, step.data["changes"])
        if transaction.readable(driver) and any(before is None for _, before, _ in step.data["changes"]):
            run.held[device] = transaction.held_before(staged)
        timer = None
        if Capability.CONFIRM_TIMER in driver.capabilities:
            timer = revert_timer_s(run.context, device)
        watch = partial(run.watch, device)
        try:
            run.receipts[device] = receipt = transaction.write(driver, staged, revert_after_s=timer, watch=watch)
        except InconsistentError as error:
            run.stuck += [f"{device}/puc/{puc}" for puc in error.pucs]
            raise
        run.settle(device)
        timer_of = "device" if receipt.revert_armed else "ours" if device in run.covered else "none"
        held = {"held": [list(cell) for cell in run.held[device].items()]} if device in run.held else {}
        return {"cells": len(step.data["changes"]), "revert_timer": timer_of, "answer": receipt.text, **held}

    @staticmethod
    def with_held(run: RunScope, step: Step, evidence: StepEvidence | None) -> Step:
        """The step with the earlier states that the device itself reported, if the plan did not contain them."""
        held = run.held.get(step.data["device"], {}) | {
            int(cell): str(was) for cell, was in (evidence or {}).get("held", ())
        }
        changes = [[cell, held.get(cell) if was is None else was, after] for cell, was, after in step.data["changes"]]
        return replace(step, data={**step.data, "changes": changes})

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:  # noqa: ARG002
        device = step.data["device"]
        driver = run.context.devices.changing(device)
        receipt = run.receipts.get(device)
        armed = receipt is not None and receipt.revert_armed
        token = receipt.staged.token if receipt else ""
        meant = transaction.committed(driver, step.data["changes"], token)
        transaction.take_back(driver, Receipt(meant, revert_armed=armed), watch=partial(run.watch, device))
        run.settle(device)
        return {"cells": len(step.data["changes"])}


class VerifyStep:
    """Prove the new circuits, and that all others on the same devices still hear the same transmitters as before."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:
        kept = [run.after[name] for name in step.data["kept"]]
        circuits = [run.after[name] for name in step.data["circuits"]]
        try:
            shown = run.light.prove(circuits, kept=kept, sound=run.sound)
        except NotProvedError as error:
            run.unproved = error.circuits
            raise
        run.light.require_powers(kept, run.powers)
        proofs = [asdict(proof) for proof in shown if proof.circuit in step.data["circuits"]]
        heard = {proof.receiver for proof in shown}
        silent = [c.id for c in kept if any(run.sound.get(r) == t and r not in heard for r, t in c.receivers)]
        return {"proofs": proofs, "kept": len(shown) - len(proofs), **({"silent": silent} if silent else {})}

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        if evidence is None:
            run.light.relight([run.after[name] for name in step.data["circuits"]])
        return {}

    @staticmethod
    def prove_still_sound(run: RunScope, kept: Sequence[str], put_back: Sequence[str]) -> None:
        """Prove every receiver that worked before the change again; by power if it cannot identify its transmitter."""
        meant = [run.before[name] for name in (*kept, *put_back)]
        run.light.require_powers(meant, run.powers)
        run.light.prove([], kept=meant, sound=run.sound, put_back=put_back)

    @classmethod
    def as_before(cls, run: RunScope, steps: Sequence[Step]) -> list[str]:
        """Require that circuits that worked before a run work after its undo; return those that do not, in words."""
        try:
            for step in steps:
                if step.do is Do.CHECK:
                    cls.prove_still_sound(run, step.data["kept"], step.data["replaced"])
        except LumctlError as error:
            return [f"the cells were restored, but: {error.message}"]
        return []


class ConfirmStep:
    """Confirm the change on devices with a revert timer, so that they keep it."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:
        for device in step.data["devices"]:
            # Without a receipt this process did not write it: a resume writes again each device that could revert.
            if device in run.receipts:
                run.context.devices.changing(device).confirm(run.receipts[device])
        return {"devices": list(step.data["devices"])}

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:  # noqa: ARG002 - Program undoes it
        return {}


class AssignStep:
    """Record the placement: the run writes it with the outcome, so there is nothing to do here."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:  # noqa: ARG002
        return {"assignment": step.data["assignment"]}

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:  # noqa: ARG002
        return {"assignment": step.data["before"]}


class SetStep:
    """Change one setting; its earlier value is stored for the undo."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:
        setting, after = self._meant(run, step), step.data["after"]
        was = setting.read()
        if same(was, after):
            return {"was": was, "is": was}
        return {"was": was, "is": setting.write(after)}

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        setting, after = self._meant(run, step), step.data["after"]
        was = evidence["was"] if evidence else step.data["before"]
        if not setting.setting.reversible(after):
            raise RefusedError(f"{setting.component.id}: {setting.text(after)} cannot be undone")
        if was is None:
            raise RefusedError(f"the earlier {setting.setting.name} of {setting.component.id} is unknown")
        return {"is": was if evidence and same(evidence["is"], was) else setting.write(was)}

    @staticmethod
    def _meant(run: RunScope, step: Step) -> Settable:
        context = run.context
        return settable(context.inventory, context.devices, step.data["component"], step.data["setting"])


class RecordStep:
    """Record an operator's statement again in the store, in the present user's name."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:
        return run.context.store(step.data["rack"]).actions.perform(step.data, who=origin(), now=run.context.now())

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        if evidence is not None:
            run.context.store(step.data["rack"]).actions.undo(step.data, evidence)
        return {}


class JobStep:
    """Call a job's hook. Its earlier state is stored, so that an undo does not start a job that was already paused."""

    def act(self, run: RunScope, step: Step) -> StepEvidence:
        """Pause or resume the job.

        Raises:
            HookRefusedError: its hook refused, and the job is unchanged.
            HookFailedError: the state of the job is unknown.
        """
        job, pauses = step.data["job"], step.data["act"] == PAUSE
        named = {"job": job, "act": step.data["act"]}
        if (why := passed_over(run.context, job)) is not None:
            return {**named, "hook": {"passed_over": why}}
        hooks = Hooks(run.context, job, _facts_for(run, job))
        if pauses:
            found = hooks.pause()
        else:
            try:
                found = _resumed(run, job, hooks)
            except KeyboardInterrupt as error:  # all light is proved: no reason to undo it
                raise HookFailedError(f"the resume hook of job {job} was interrupted") from error
        return {**named, "was": found.pop("was"), "hook": found}

    def undo(self, run: RunScope, step: Step, evidence: StepEvidence | None) -> StepEvidence:
        """Resume a paused job; pause a resumed one, whose light is about to be undone."""
        job = step.data["job"]
        if passed_over(run.context, job) is not None:
            return {}
        hooks = Hooks(run.context, job, _facts_for(run, job))
        if step.data["act"] == RESUME:
            return {"hook": hooks.pause()}
        if evidence is not None and evidence.get("was") in QUIET:
            return {}
        # The pause has no outcome on record: the job may have been quiet before, and a guard has no operator to ask.
        if evidence is None and run.unasked and hooks.status() != RUNNING:
            raise HookFailedError(f"whether this run has paused job {job} is unknown: the job is left as it is")
        return {"hook": _resumed(run, job, hooks)}


def _facts_for(run: RunScope, job: str) -> Facts:
    """What a job's hook learns about a run; that of a filler job not what failed, for none of its ranks did."""
    return Facts(run.facts.run) if job in run.context.inventory.fillers else run.facts


def _resumed(run: RunScope, job: str, hooks: Hooks) -> dict[str, str]:
    """Resume a job; if its control names the accelerators or hosts of its ranks, they must match the placement.

    Raises:
        HookFailedError: they differ, although its control reported success.
    """
    found = hooks.resume()
    if "ranks" not in found:
        return found
    known = run.context.inventory.accelerators
    placed = [known[each] for each in placement_of(run.context, job) if each in known]
    runs_at = [each.strip() for each in found["ranks"].split(",")]
    if len(runs_at) != len(placed) or any(
        at not in {each.id, each.host} for at, each in zip(runs_at, placed, strict=True)
    ):
        raise HookFailedError(
            f"job {job} runs on {', '.join(runs_at)}, but is placed on {', '.join(each.id for each in placed)}: stop "
            "it there first"
        )
    return found


def job_states_before(
    context: Context, steps: Iterable[Step], about_to_ask: Callable[[Step], None]
) -> dict[str, StepEvidence]:
    """The states of jobs that are about to be paused, by step, if their hooks report them.

    Hooks are called in turn and may answer slowly: ``about_to_ask`` is called before each.
    """
    found: dict[str, StepEvidence] = {}
    for step in steps:
        if step.do is Do.JOB and step.data["act"] == PAUSE and passed_over(context, step.data["job"]) is None:
            about_to_ask(step)
            with suppress(LumctlError):  # pausing it will fail as well
                if (was := Hooks(context, step.data["job"]).status()) is not None:
                    found[step.id] = {"was": was}
    return found


def facts_of(plan: Plan, run: str) -> Facts:
    """What hooks of jobs learn about a run."""
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
