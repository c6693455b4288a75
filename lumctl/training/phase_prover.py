"""Proves the light of phases while ranks use it, in one thread, so that no rank and no change of another rail waits."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from lumctl.change.light_proof import BlinkError, LightProof, NotProvedError
from lumctl.errors import LumctlError
from lumctl.inventory.folded_names import fold
from lumctl.inventory.wiring import Circuit
from lumctl.training.phase_permission import PhasePermit


@dataclass(frozen=True, slots=True)
class ProofResult:
    """What a proof of the light of a phase on a rail has shown; ``began``: when, in seconds since the epoch.

    ``wrong``: what is wrong with the light. ``unknown``: why the proof was not possible. Without either, it is proved.
    """

    rail: int
    phase: str
    began: float
    wrong: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class _Order:
    permit: PhasePermit
    rail: int
    phase: str

    @property
    def circuits(self) -> tuple[Circuit, ...]:
        return tuple(each.circuit for each in self.permit.of_rail(self.rail, self.phase))

    @property
    def blinks(self) -> bool:
        return any(each.blinks for each in self.permit.of_rail(self.rail, self.phase))


class PhaseProver:
    """Proves phases on rails; ``report`` gets the permit and each result. Any thread may call any method.

    ``make`` gives a proof of light that uses this clock.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], float]], LightProof],
        report: Callable[[PhasePermit, ProofResult], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._make, self._report, self._now = make, report, now
        self._group: _GroupProofs | None = None

    def begin(self) -> None:
        """Prove what is asked for from now on, for another group of ranks."""
        self.stop()
        self._group = _GroupProofs(self._make, self._report, self._now)

    def prove(self, permit: PhasePermit, rail: int, phase: str) -> None:
        """Prove that a phase has its light on a rail; the result is reported, unless the group ends before."""
        if (group := self._group) is not None:
            group.add(_Order(permit, rail, phase))

    def stop(self) -> None:
        """Prove nothing more until :meth:`begin`. A look that is under way is not waited for: a host may be dead."""
        if (group := self._group) is not None:
            group.stop()

    close = stop


class _GroupProofs:
    """The proofs for one group of ranks, in a thread of its own.

    What waits is proved together: marks of two proofs at the same time would hide each other.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], float]], LightProof],
        report: Callable[[PhasePermit, ProofResult], None],
        now: Callable[[], float],
    ) -> None:
        self._report, self._now = report, now
        self._change = threading.Condition()
        self._waiting: list[_Order] = []
        self._is_over = False
        # Once the group has ended, all deadlines are over: a proof under way ends after the present look.
        self._proof = make(lambda: math.inf if self._is_over else time.monotonic())
        threading.Thread(target=self._work, name="lumctl-proofs", daemon=True).start()

    def add(self, order: _Order) -> None:
        with self._change:
            self._waiting.append(order)
            self._change.notify()

    def stop(self) -> None:
        with self._change:
            self._is_over = True
            self._change.notify()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._is_over)
                if self._is_over:
                    return
                orders, self._waiting = self._waiting, []
            if beside := [each for each in orders if not each.blinks]:
                self._prove_beside(beside)
            for order in orders:
                if order.blinks:
                    self._prove(order, self._now())

    def _prove_beside(self, orders: list[_Order]) -> None:
        began = self._now()
        try:
            missing, wrong = self._proof.recheck(circuit for order in orders for circuit in order.circuits)
        except Exception as error:  # noqa: BLE001 - the light waits for the result
            for order in orders:
                self._end(order, began, unknown=_words(error))
            return
        for order in orders:
            own = {circuit.id for circuit in order.circuits}
            if faults := [why for name, why in wrong.items() if name in own]:
                self._end(order, began, wrong="; ".join(faults))
            elif missing & own:
                self._prove(order, began)  # a host may only be slow
            else:
                self._end(order, began)

    def _prove(self, order: _Order, began: float) -> None:
        if self._is_over:
            return
        wrong = unknown = ""
        try:
            self._proof.prove(order.circuits)
        except (NotProvedError, BlinkError) as error:
            wrong = error.message
            if silent := self._proof.silent_hosts(order.circuits):
                wrong, unknown = "", f"no answer from {', '.join(fold(sorted(silent)))}"
        except Exception as error:  # noqa: BLE001 - the light waits for the result
            unknown = _words(error)
        self._end(order, began, wrong, unknown)

    def _end(self, order: _Order, began: float, wrong: str = "", unknown: str = "") -> None:
        if not self._is_over:
            self._report(order.permit, ProofResult(order.rail, order.phase, began, wrong, unknown))


def _words(error: Exception) -> str:
    return error.message if isinstance(error, LumctlError) else f"{type(error).__name__}: {error}"
