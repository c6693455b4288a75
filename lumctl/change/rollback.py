"""Undoing a run: each attempted step in reverse, proof of what was sound before, and jobs resume last."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress

from lumctl.change.circuits import placed_by
from lumctl.change.concurrency import Concurrent
from lumctl.change.ledger import Ledger
from lumctl.change.outcomes import Certainty, Did
from lumctl.change.plan import Do, Plan, Step
from lumctl.change.steps import ACTIONS, Bench, Evidence, Program, Verify
from lumctl.change.transmitters import NOTHING_TO_SWITCH, Switching, switching_for
from lumctl.devices.errors import DeviceError
from lumctl.errors import LumctlError
from lumctl.inventory.wiring import Assignment
from lumctl.store import LeaseLostError, StoreError


class Undoing:
    """The part of a run that takes it back."""

    plan: Plan
    ledger: Ledger
    _bench: Bench
    _certain: Certainty
    _acting: Concurrent[Did]
    _attempted: list[Step]
    _evidence: Mapping[str, Evidence]
    _wrote: bool
    placed_after: Assignment | None = None
    """Where the jobs run once this run is undone by an operator's word: transmitters are then brought to that."""

    @abstractmethod
    def _learn(self, did: Did) -> None:
        """Take in what a step did."""

    def undo(self) -> list[str]:
        """Take back every attempted step in reverse, as far as each goes; what went wrong is returned, in words."""
        troubles: list[str] = []
        try:
            for did in self._acting.rest():  # an interrupt does not stop those that act beside each other
                self._learn(did)
            with suppress(StoreError):
                self.ledger.settle()
        except LeaseLostError as error:
            return [error.message]
        backwards = sorted(self._attempted, key=self.plan.steps.index, reverse=True)
        try:
            for step in backwards:
                if not step.pauses_job:
                    troubles += self._undone(step)
            if self.placed_after is not None:
                troubles += self.switch(switching_for(self._bench.site, self.plan.rack, self.placed_after))
            if not troubles and (self._wrote or any(step.do is Do.PROGRAM for step in self._attempted)):
                troubles += Verify.as_before(self._bench, self.plan.steps)
            is_dark = bool(troubles)
            for step in (each for each in backwards if each.pauses_job):
                stays = f"job {step.data['job']} is left as it is: its light may not be"
                troubles += [stays] if is_dark else self._undone(step)
        except LeaseLostError as error:
            return [*troubles, error.message]
        try:
            self.ledger.settle()
        except LumctlError as error:
            troubles.append(f"what was undone could not be written down: {error.message}")
        return troubles

    def switch(self, switching: Switching) -> list[str]:
        """Switch transmitters beside the steps of the run; gives which of those that are needed stay dark, and why.

        Raises:
            LeaseLostError: somebody else may act now.
        """
        if switching == NOTHING_TO_SWITCH:
            return []
        self.ledger.note("transmitters", {"light": list(switching.light), "darken": list(switching.darken)})
        troubles = []
        for lane in (*switching.light, *switching.darken):
            is_needed = lane in switching.light
            try:
                with self.ledger.sending(), self._bench.turn(lane):
                    self._bench.site.devices.transponder(lane).set_transmit(is_needed)
            except DeviceError as error:
                troubles += [f"light the transmitter of {lane}: {error.message}"] if is_needed else []
        return troubles

    def _undone(self, step: Step) -> list[str]:
        """Take one step back; gives what went wrong: one step's trouble must not keep the others from being undone."""
        if step.do is Do.PROGRAM:
            step = Program.with_held(self._bench, step, self._evidence.get(step.id))
        if step.has_no_undo:
            return [f"{step.data['device']} was written whole: what it held before was not known"]
        try:
            self._undo(step)
        except LeaseLostError:
            raise
        except Exception as error:  # noqa: BLE001 - see above
            said = error.message if isinstance(error, LumctlError) else f"{type(error).__name__}: {error}"
            return [f"{step.title}: {said}"]
        return []

    def _undo(self, step: Step) -> None:
        """Take one step back; what cannot be written down stays due."""
        self.ledger.intend_undo(step)
        try:
            with self.ledger.sending():
                undone = {"undone": True, **ACTIONS[step.do].undo(self._bench, step, self._evidence.get(step.id))}
        except LumctlError as error:
            self.ledger.conclude_undo(step, {"undone": False, "failed": error.message})
            if step.required:
                raise
            return  # nothing is certain by it
        placed = placed_by(step.data["before"]) if step.do is Do.ASSIGN else {}
        device = step.writes
        states = {device: self._certain.cells(step, after=False)} if device else {}
        self.ledger.conclude_undo(step, undone, states, placed)
