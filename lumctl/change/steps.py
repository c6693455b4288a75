"""What each kind of step does to the rack, and how it is undone. One class per kind, all with the same two methods.

``act`` returns evidence for the journal, or raises a domain error; ``undo`` takes that evidence (``None`` if the step
was cut before it could give any) and puts things back. Neither touches the store: the run does.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Protocol

from lumctl.change.check import Check
from lumctl.change.job_step import JobAct
from lumctl.change.light import LightProof
from lumctl.change.origin import origin
from lumctl.change.plan import Do, Step
from lumctl.change.settings import Settable, same, settable
from lumctl.devices import transaction
from lumctl.devices.progress import goes_on_for_s, in_words
from lumctl.devices.types import Capability, Progress, Receipt
from lumctl.errors import LumctlError, RefusedError
from lumctl.inventory.wiring import Circuit
from lumctl.jobs.hooks import NOBODY
from lumctl.site import Site

REVERT_AFTER_S = 60.0
"""What a device with a revert timer of its own is given beyond twice the light's deadline before it goes back."""

Evidence = Mapping[str, Any]
Circuits = Mapping[str, Circuit]


class Bench:
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


class Action(Protocol):
    """One kind of step."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        """Do it."""
        ...

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:
        """Put back what it did."""
        ...


class Transmit:
    """Switch one transmitter; what it was before the run is kept for the undo."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        name, meant = step.data["transponder"], step.data["enabled"]
        driver = bench.site.devices.transponder(name)
        with bench.turn(name):
            was = bench.lit.get(name)
            if was is None or was == meant:  # it is left alone only if it shows now that it can be
                was = driver.transmitting()
            if was != meant:
                driver.set_transmit(meant)
        return {"was": was, "is": meant}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:
        name = step.data["transponder"]
        # Where nobody knows what it had been: one that shines without need does less harm than a dark one.
        was = bool(evidence["was"]) if evidence else bench.lit.get(name, True)
        if evidence is None or was != step.data["enabled"]:
            with bench.turn(name):
                bench.site.devices.transponder(name).set_transmit(was)
        return {"is": was}


class Program:
    """Write PUC states or joins of one device; one with a revert timer of its own is armed."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        device = step.data["device"]
        driver = bench.site.devices.changing(device)
        staged = transaction.stage(driver, step.data["changes"])
        if transaction.readable(driver) and any(before is None for _, before, _ in step.data["changes"]):
            bench.held[device] = transaction.held_before(staged)
        timer = None
        if Capability.CONFIRM_TIMER in driver.capabilities:
            # The timer starts at the answer; the device may keep working on the change long after that.
            timer = REVERT_AFTER_S + 2 * bench.site.inventory.thresholds.light_deadline_s + goes_on_for_s(driver)
        watch = partial(bench.watch, device)
        bench.receipts[device] = receipt = transaction.write(driver, staged, revert_after_s=timer, watch=watch)
        bench.settle(device)
        timer_of = "device" if receipt.revert_armed else "ours" if device in bench.covered else "none"
        held = {"held": [list(cell) for cell in bench.held[device].items()]} if device in bench.held else {}
        return {"cells": len(step.data["changes"]), "revert_timer": timer_of, "answer": receipt.text, **held}

    @staticmethod
    def with_held(bench: Bench, step: Step, evidence: Evidence | None) -> Step:
        """The step with what the device itself held before it, where the plan did not know that."""
        held = bench.held.get(step.data["device"], {}) | {
            int(cell): str(was) for cell, was in (evidence or {}).get("held", ())
        }
        changes = [[cell, held.get(cell) if was is None else was, after] for cell, was, after in step.data["changes"]]
        return replace(step, data={**step.data, "changes": changes})

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002
        device = step.data["device"]
        driver = bench.site.devices.changing(device)
        receipt = bench.receipts.get(device)
        armed = receipt is not None and receipt.revert_armed
        token = receipt.staged.token if receipt else ""
        meant = transaction.committed(driver, step.data["changes"], token)
        transaction.take_back(driver, Receipt(meant, revert_armed=armed), watch=partial(bench.watch, device))
        bench.settle(device)
        return {"cells": len(step.data["changes"])}


class Verify:
    """Prove the new circuits, and that every other one on the same devices still hears whom it heard."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        kept = [bench.after[name] for name in step.data["kept"]]
        circuits = [bench.after[name] for name in step.data["circuits"]]
        shown = bench.light.prove(circuits, kept=kept, sound=bench.sound)
        bench.light.require_powers(kept, bench.powers)
        proofs = [asdict(proof) for proof in shown if proof.circuit in step.data["circuits"]]
        heard = {proof.receiver for proof in shown}
        silent = [c.id for c in kept if any(bench.sound.get(r) == t and r not in heard for r, t in c.receivers)]
        return {"proofs": proofs, "kept": len(shown) - len(proofs), **({"silent": silent} if silent else {})}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:
        if evidence is None:
            bench.light.relight([bench.after[name] for name in step.data["circuits"]])
        return {}

    @staticmethod
    def prove_still_sound(bench: Bench, kept: Sequence[str], put_back: Sequence[str]) -> None:
        """Prove again every receiver that was sound before the change; those that cannot say, by their power."""
        meant = [bench.before[name] for name in (*kept, *put_back)]
        bench.light.require_powers(meant, bench.powers)
        bench.light.prove([], kept=meant, sound=bench.sound, put_back=put_back)

    @classmethod
    def as_before(cls, bench: Bench, steps: Sequence[Step]) -> list[str]:
        """What was sound before a run must be sound again after its undo, or the rack is not as it was: in words."""
        try:
            for step in steps:
                if step.do is Do.CHECK:
                    cls.prove_still_sound(bench, step.data["kept"], step.data["replaced"])
        except LumctlError as error:
            return [f"the cells were put back, but {error.message}"]
        return []


class Confirm:
    """Tell devices with a revert timer to keep the change."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        for device in step.data["devices"]:
            if device in bench.receipts:
                bench.site.devices.changing(device).confirm(bench.receipts[device])
        return {"devices": list(step.data["devices"])}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002 - Program undoes it
        return {}


class Assign:
    """Write down who runs where: the run records it with the outcome, so there is nothing to do here."""

    def act(self, bench: Bench, step: Step) -> Evidence:  # noqa: ARG002
        return {"assignment": step.data["assignment"]}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002
        return {"assignment": step.data["before"]}


class Set:
    """Set one setting; what the component showed before is kept for the undo."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        setting, after = self._meant(bench, step), step.data["after"]
        was = setting.read()
        if same(was, after):
            return {"was": was, "is": was}
        return {"was": was, "is": setting.write(after)}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:
        setting, after = self._meant(bench, step), step.data["after"]
        was = evidence["was"] if evidence else step.data["before"]
        if not setting.setting.reversible(after):
            raise RefusedError(f"{setting.component.id}: there is no way back from {setting.text(after)}")
        if was is None:
            raise RefusedError(f"what {setting.setting.name} of {setting.component.id} was is not known")
        return {"is": was if evidence and same(evidence["is"], was) else setting.write(was)}

    @staticmethod
    def _meant(bench: Bench, step: Step) -> Settable:
        site = bench.site
        return settable(site.inventory, site.devices, step.data["component"], step.data["setting"])


class RecordAct:
    """Say again what was said, in the store; in the name of who asks now."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        return bench.site.store(step.data["rack"]).act(step.data, who=origin(), now=bench.site.now())

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:
        if evidence is not None:
            bench.site.store(step.data["rack"]).take_back_act(step.data, evidence)
        return {}


ACTIONS: Mapping[Do, Action] = {
    Do.CHECK: Check(),
    Do.TRANSMIT: Transmit(),
    Do.PROGRAM: Program(),
    Do.VERIFY: Verify(),
    Do.CONFIRM: Confirm(),
    Do.ASSIGN: Assign(),
    Do.SET: Set(),
    Do.JOB: JobAct(),
    Do.RECORD: RecordAct(),
}
