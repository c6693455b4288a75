"""What each kind of step does to the rack, and how it is undone. One class per kind, all with the same two methods.

``act`` returns evidence for the journal, or raises a domain error; ``undo`` takes that evidence (``None`` if the step
was cut before it could give any) and puts things back. Neither touches the store: the run does.
"""

import threading
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
"""What a device with a revert timer of its own is given beyond twice the light's deadline before it goes back."""

Evidence = Mapping[str, Any]
Circuits = Mapping[str, Circuit]


class Bench:
    """What the steps of one run share: the site, the circuits before and after, and what was learnt on the way."""

    def __init__(self, site: Site, before: Circuits, after: Circuits) -> None:
        self.site = site
        self.before = before
        self.after = after
        self.light = LightProof(site.inventory, site.fleet, site.devices, now=site.now)
        self.sound: dict[str, str] = {}
        """Receivers that were shown to hear whom they should before anything moved, with their transmitters."""
        self.powers: dict[str, float] = {}
        """Received powers (dBm) before anything moved, of receivers that cannot say whom they hear."""
        self.receipts: dict[str, Receipt] = {}

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


class Check:
    """Read the spares afresh, and find which receivers hear whom they should before anything moves."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        self._require_healthy(bench, step.data["healthy"])
        circuits = [bench.before[name] for name in (*step.data["kept"], *step.data["replaced"])]
        bench.sound = bench.light.sound(circuits)
        bench.powers = bench.light.powers(circuits)
        return {"sound": bench.sound}

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
        # Cut before it told what it had been: a transmitter that shines without need does less harm than a dark one.
        was = bool(evidence["was"]) if evidence else True
        if evidence is None or was != step.data["enabled"]:
            bench.site.devices.transponder(step.data["transponder"]).set_transmit(was)
        return {"is": was}


class Program:
    """Write PUC states of one device; a device with a revert timer is armed, any other is undone by the engine."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        device = step.data["device"]
        driver = bench.site.devices.mesh(device)
        staged = driver.stage({puc: PucState(after) for puc, _, after in step.data["changes"]})
        timer = None
        if Capability.CONFIRM_TIMER in driver.capabilities:
            timer = REVERT_AFTER_S + 2 * bench.site.inventory.thresholds.light_deadline_s
        bench.receipts[device] = receipt = driver.commit(staged, revert_after_s=timer)
        bench.settle(device)
        return {"cells": len(step.data["changes"]), "device_revert_timer": receipt.revert_armed, "answer": receipt.text}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002
        device = step.data["device"]
        receipt = bench.receipts.get(device)
        armed = receipt is not None and receipt.revert_armed
        bench.site.devices.mesh(device).roll_back(Receipt(_staged(step, receipt), revert_armed=armed))
        bench.settle(device)
        return {"cells": len(step.data["changes"])}


class Verify:
    """Prove the new circuits, and that every other one on the same devices still hears whom it heard."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        proofs = bench.light.prove([bench.after[name] for name in step.data["circuits"]])
        kept = self.prove_still_sound(bench, step.data["kept"], bench.after)
        return {"proofs": [asdict(proof) for proof in proofs], "kept": kept}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002 - nothing was done
        return {}

    @staticmethod
    def prove_still_sound(bench: Bench, names: list[str], circuits: Circuits) -> int:
        """Prove again every receiver that was sound before the change; those that cannot say, by their power."""
        meant = [circuits[name] for name in names]
        bench.light.require_powers(meant, bench.powers)
        return len(bench.light.prove(meant, only=bench.sound))


class Confirm:
    """Tell devices with a revert timer to keep the change."""

    def act(self, bench: Bench, step: Step) -> Evidence:
        for device in step.data["devices"]:
            if device in bench.receipts:
                bench.site.devices.mesh(device).confirm(bench.receipts[device])
        return {"devices": list(step.data["devices"])}

    def undo(self, bench: Bench, step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002 - Program undoes it
        return {}


class Assign:
    """Write down who runs where: the run records it with the outcome, so there is nothing to do here."""

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
