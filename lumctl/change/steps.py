"""What each kind of step does to the rack, and how it is undone. One class per kind, all with the same three methods.

``act`` returns evidence for the journal, or raises a domain error; ``undo`` takes that evidence (``None`` if the step
was cut before it could give any) and puts things back. Neither touches the store: the engine does.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

from lumctl.change.light import LightProof
from lumctl.change.plan import Do, Step
from lumctl.devices.types import Capability, PucChange, PucState, Receipt, Staged
from lumctl.errors import RefusedError
from lumctl.health.evaluate import evaluate
from lumctl.health.states import State
from lumctl.inventory.wiring import Circuit
from lumctl.site import Site

REVERT_AFTER_S = 60.0
"""A device with a timer of its own goes back by itself if the run has not confirmed within this time."""

Evidence = Mapping[str, Any]


class Bench:
    """What the steps of one run share: the site, the circuits of the plan, and what was learnt on the way."""

    def __init__(self, site: Site, circuits: Mapping[str, Circuit]) -> None:
        self.site = site
        self.circuits = circuits
        self.light = LightProof(site.inventory, site.fleet, site.devices, now=site.now)
        self.heard_before: dict[str, str] = {}
        self.receipts: dict[str, Receipt] = {}

    def named(self, ids: list[str]) -> list[Circuit]:
        """Circuits of the plan by their ids."""
        return [self.circuits[name] for name in ids]


class Action(Protocol):
    """One kind of step."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        """Do it."""
        ...

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:
        """Put back what it did."""
        ...


class Check:
    """Read the spares afresh, and note which receivers hear whom they should before anything moves."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        self._require_healthy(bench, step.data["healthy"])
        bench.heard_before = bench.light.heard(bench.named(step.data["kept"]))
        return {"heard": bench.heard_before}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002 - nothing was done
        return {}

    @staticmethod
    def _require_healthy(bench: Bench, accelerators: list[str]) -> None:
        inventory = bench.site.inventory
        if not accelerators:
            return
        snapshot = bench.site.fleet.collect({inventory.accelerators[a].host for a in accelerators})
        report = evaluate(inventory, snapshot, (), losses={}, devices={}, now=bench.site.now())
        for accelerator in accelerators:
            health = report.accelerators[accelerator]
            if health.state is not State.OK:
                why = health.findings[0].evidence if health.findings else "there is no reading of it"
                raise RefusedError(f"{accelerator} is {health.state}, not ok: {why}")


class Transmit:
    """Switch one transmitter; what it was before is kept for the undo."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        driver = bench.site.devices.transponder(step.data["transponder"])
        was = driver.transmitting()
        if was != step.data["enabled"]:
            driver.set_transmit(step.data["enabled"])
        return {"was": was, "is": step.data["enabled"]}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:
        # Cut before it told what it had been: the plan only ever switches what was the other way.
        was = bool(evidence["was"]) if evidence else not step.data["enabled"]
        bench.site.devices.transponder(step.data["transponder"]).set_transmit(was)
        return {"is": was}


class Program:
    """Write PUC states of one device; a device with a revert timer is armed, any other is undone by the engine."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        driver = bench.site.devices.mesh(step.data["device"])
        staged = driver.stage({puc: PucState(after) for puc, _, after in step.data["changes"]})
        timer = REVERT_AFTER_S if Capability.CONFIRM_TIMER in driver.capabilities else None
        bench.receipts[step.data["device"]] = receipt = driver.commit(staged, revert_after_s=timer)
        return {"cells": len(step.data["changes"]), "device_revert_timer": receipt.revert_armed, "answer": receipt.text}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002
        device = step.data["device"]
        driver = bench.site.devices.mesh(device)
        armed = device in bench.receipts and bench.receipts[device].revert_armed
        driver.roll_back(Receipt(_staged(step, bench.receipts.get(device)), revert_armed=armed))
        return {"cells": len(step.data["changes"])}


class Verify:
    """Prove the new circuits, and that every other one on the same devices still hears whom it heard."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        proofs = bench.light.prove(bench.named(step.data["circuits"]))
        kept = self.prove_kept(bench, step.data["kept"])
        return {"proofs": [asdict(proof) for proof in proofs], "kept": kept}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002 - nothing was done
        return {}

    @staticmethod
    def prove_kept(bench: Bench, kept: list[str]) -> int:
        """Prove those kept circuits whose receivers all heard whom they should before the change."""
        sound = [c for c in bench.named(kept) if all(bench.heard_before.get(r) == t for r, t in c.receivers)]
        return len(bench.light.prove(sound))


class Confirm:
    """Tell devices with a revert timer to keep the change."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        for device in step.data["devices"]:
            bench.site.devices.mesh(device).confirm(bench.receipts[device])
        return {"devices": list(step.data["devices"])}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002 - Program undoes it
        return {}


class Assign:
    """Write down who runs where: the engine records it with the outcome, so there is nothing to do here."""

    def act(self, bench: Bench, step: Step) -> Evidence:  # noqa: ARG002
        return {"assignment": step.data["assignment"]}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002
        return {"assignment": step.data["before"]}


ACTIONS: Mapping[Do, Action] = {
    Do.CHECK: Check(),
    Do.TRANSMIT: Transmit(),
    Do.PROGRAM: Program(),
    Do.VERIFY: Verify(),
    Do.CONFIRM: Confirm(),
    Do.ASSIGN: Assign(),
}


def _staged(step: Step, receipt: Receipt | None) -> Staged:
    """What a step was to write, with the states before it as its plan has them: a driver's own record may be gone."""
    changes = tuple(
        PucChange(puc, PucState(before) if before else None, PucState(after))
        for puc, before, after in step.data["changes"]
    )
    return Staged(changes, token=receipt.staged.token if receipt else "")
