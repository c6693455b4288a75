"""Proves the light of phases while ranks use it, in one thread, so that no rank and no change of another rail waits."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

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
    began: float = 0.0
    at: float = 0.0
    """When the proof began, by the monotonic clock."""

    @property
    def circuits(self) -> tuple[Circuit, ...]:
        return tuple(each.circuit for each in self.permit.of_rail(self.rail, self.phase))

    @property
    def blinks(self) -> bool:
        return any(each.blinks for each in self.permit.of_rail(self.rail, self.phase))


class PhaseProver:
    """Proves phases on rails; ``report`` gets the permit and each result. Any thread may call any method.

    ``make`` gives a proof of light that pauses by this function. A receiver that hears nothing is looked at again for
    ``deadline_s``: its host may only be slow.
    """

    def __init__(
        self,
        make: Callable[[Callable[[float], object]], LightProof],
        report: Callable[[PhasePermit, ProofResult], None],
        deadline_s: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._make, self._report, self._deadline_s, self._now = make, report, deadline_s, now
        self._group: _GroupProofs | None = None

    def begin(self) -> None:
        """Prove what is asked for from now on, for another group of ranks."""
        self.stop()
        self._group = _GroupProofs(self._make, self._report, self._deadline_s, self._now)

    def prove(self, permit: PhasePermit, rail: int, phase: str) -> None:
        """Prove that a phase has its light on a rail; the result is reported, unless the group ends before."""
        if (group := self._group) is not None:
            group.add(_Order(permit, rail, phase))

    def stop(self) -> None:
        """Prove nothing more until :meth:`begin`. A look that is under way is not waited for: a host may be dead."""
        if (group := self._group) is not None:
            group.stop()

    close = stop


class _GroupOverError(Exception):
    """The group has ended: its light need not be proved any more."""


class _GroupProofs:
    """The proofs for one group of ranks, in a thread of its own.

    What waits is proved together: marks of two proofs at the same time would hide each other.
    """

    def __init__(
        self,
        make: Callable[[Callable[[float], object]], LightProof],
        report: Callable[[PhasePermit, ProofResult], None],
        deadline_s: float,
        now: Callable[[], float],
    ) -> None:
        self._report, self._deadline_s, self._now = report, deadline_s, now
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._over = threading.Event()
        self._proof = make(self._pause)
        threading.Thread(target=self._work, name="lumctl-proofs", daemon=True).start()

    def add(self, order: _Order) -> None:
        self._orders.put(order)

    def stop(self) -> None:
        self._over.set()
        self._orders.put(None)  # wakes the thread

    def _pause(self, seconds: float) -> None:
        if self._over.wait(seconds):
            raise _GroupOverError

    def _work(self) -> None:
        looked_at: list[_Order] = []
        while not self._over.is_set():
            orders = [*looked_at, *self._taken(wait=not looked_at)]
            with suppress(_GroupOverError):
                looked_at = self._prove_beside([each for each in orders if not each.blinks])
                for order in orders:
                    if order.blinks:
                        self._prove_alone(order)

    def _taken(self, *, wait: bool) -> list[_Order]:
        """What waits to be proved, each with the time at which its proof begins."""
        found = [self._orders.get()] if wait else []
        with suppress(Empty):
            while True:
                found.append(self._orders.get_nowait())
        return [replace(each, began=self._now(), at=time.monotonic()) for each in found if each is not None]

    def _prove_beside(self, orders: list[_Order]) -> list[_Order]:
        """Look once at the light of some rails; return those at which to look again."""
        missing: Mapping[str, str] = {}
        wrong: Mapping[str, str] = {}
        unknown, again = "", list[_Order]()
        if orders:
            try:
                missing, wrong = self._proof.recheck(circuit for order in orders for circuit in order.circuits)
            except _GroupOverError:
                raise
            except Exception as error:  # noqa: BLE001 - the light waits for the result
                unknown = _words(error)
        for order in orders:
            faults, unseen = (_of(order, found) for found in (wrong, missing))
            if not (faults or unseen or unknown):
                self._end(order)
            elif faults:
                self._end(order, wrong=faults)
            elif not unknown and time.monotonic() < order.at + self._deadline_s:
                again.append(order)  # a host may only be slow
            else:
                self._end(order, *self._blamed(order, unseen) if unseen else ("", unknown))
        return again

    def _prove_alone(self, order: _Order) -> None:
        wrong = unknown = ""
        try:
            self._proof.prove(order.circuits)
        except _GroupOverError:
            raise
        except (NotProvedError, BlinkError) as error:
            wrong, unknown = self._blamed(order, error.message)
        except Exception as error:  # noqa: BLE001 - as above
            unknown = _words(error)
        self._end(order, wrong, unknown)

    def _blamed(self, order: _Order, wrong: str) -> tuple[str, str]:
        """What is wrong with light that was not seen, or why that is unknown: a host does not answer."""
        try:
            silent = self._proof.silent_hosts(order.circuits)
        except Exception as error:  # noqa: BLE001 - as above
            return "", _words(error)
        return ("", f"no answer from {', '.join(fold(sorted(silent)))}") if silent else (wrong, "")

    def _end(self, order: _Order, wrong: str = "", unknown: str = "") -> None:
        if not self._over.is_set():
            self._report(order.permit, ProofResult(order.rail, order.phase, order.began, wrong, unknown))


def _of(order: _Order, found: Mapping[str, str]) -> str:
    """What is found of the circuits of an order, in words."""
    return "; ".join(found[circuit.id] for circuit in order.circuits if circuit.id in found)


def _words(error: Exception) -> str:
    return error.message if isinstance(error, LumctlError) else f"{type(error).__name__}: {error}"
