"""Requests to light a phase of a job: one device is written to states that a plan holds, without a lease of their own.

A run has proved every phase of the plan, and the assignment records that the plan permits the job to select among them.
The record goes when another run changes the job. While a process holds the rack's lease, nothing is written, but for a
run that waits until the job has paused: it begins with the phase on record. A write uses the number of the newest
lease: if a process takes the next one meanwhile, the fence refuses the write, or lets the holder wait for its end.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lumctl.change.plan import PHASES, Plan, from_document
from lumctl.daemon.gateway.writes import FencedWrites
from lumctl.devices import transaction
from lumctl.devices.errors import DeviceRefusedError, RackLeasedError, StaleFenceError, WrongGatewayError
from lumctl.devices.gateway.wire import GatewaySubject
from lumctl.devices.registry import DeviceSet
from lumctl.devices.transaction import Cell, LightDriver
from lumctl.devices.types import PucState, Staged
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.model import Inventory
from lumctl.inventory.phase_records import phase_of, phase_permit
from lumctl.inventory.problems import nearest
from lumctl.inventory.wiring import FREE
from lumctl.sockets import Peer
from lumctl.store import Store, StoreError, lease

_PLANS = 64
"""How many plans are kept ready: about as many as a rack has jobs with phases."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """The phases of a plan: by phase and device, the cells to write; by device, the states that any phase has there.

    ``permit`` is the name of what the plan permits. A state is a cell and its value; of a switch, a pair of joined
    ports in either order.
    """

    permit: str
    cells: Mapping[str, Mapping[str, tuple[Cell, ...]]]
    known: Mapping[str, frozenset[tuple[int, str]]]


class PhaseRequests:
    """Lights phases on the devices of one rack. Thread-safe."""

    def __init__(
        self,
        inventory: Inventory,
        rack: str,
        devices: DeviceSet,
        writes: FencedWrites,
        store: Store,
        *,
        now: Callable[[], float],
    ) -> None:
        self._inventory = inventory
        self._rack = rack
        self._devices = devices
        self._writes = writes
        self._store = store
        self._now = now
        # A plan cannot change: its digest, which its id begins, is checked when it is read. Errors are not kept.
        self._plan = lru_cache(_PLANS)(self._read_plan)

    def light(self, request: Mapping[str, Any], peer: Peer) -> dict[str, Any]:
        """Write one device to the states of a phase, and read it back if it can be read.

        Raises:
            ValueError: the request does not name a job, a plan, a device and a phase.
            DeviceError: see :meth:`lumctl.devices.gateway.phases.PhaseGateway.light`.
        """
        job, plan, device, phase = (_name(request, key) for key in ("job", "plan", "device", "phase"))
        subject = self._subject(device)
        line = {"device": device, "call": "phase", "job": job, "plan": plan, "phase": phase}
        with self._writes.turn(subject):
            found: list[_Ready] = []

            def number() -> int:
                # The number first: a run that withdraws the permission after this has a higher one.
                newest = self._newest(job, phase)
                found.append(self._permitted(job, plan, device, phase))
                return newest

            try:
                return self._writes.write(line, peer, number, lambda: self._written(found[0], plan, device, phase))
            except StaleFenceError as error:
                # The client gave no number: to it this is the same as a lease that is held.
                raise RackLeasedError(
                    f"{device}: a process has just taken the lease of rack {self._rack}; nothing was sent",
                    hint="ask again when it has ended",
                ) from error

    def _subject(self, device: str) -> GatewaySubject:
        written = self._inventory.devices.get(device)
        if written is None:
            near = nearest(device, [each.id for each in self._inventory.light_devices])
            raise UsageError(
                f"the gateway's inventory has no device {device!r}", hint=f"did you mean {near}?" if near else None
            )
        if written.rack != self._rack:
            raise WrongGatewayError(f"{device} is in rack {written.rack}, but this is the gateway of {self._rack}")
        return GatewaySubject("mesh" if written.geometry else "switch", device)

    def _newest(self, job: str, phase: str) -> int:
        try:
            return self._store.leases.unheld(self._rack, now=self._now())
        except lease.LeaseHeldError as error:
            newest = self._store.leases.newest(self._rack)
            if phase == self._on_record(job) and self._waits_for_rest(job, newest):
                return newest
            raise RackLeasedError(f"{error.message}; nothing was sent", hint=error.hint) from error
        except (RefusedError, StoreError) as error:
            raise _unsent(error) from error

    def _waits_for_rest(self, job: str, number: int) -> bool:
        """Whether the run under a lease has asked a job to pause, and has written to no device yet."""
        run = next((run for run in self._store.runs.all() if run.fence == number and run.state == "running"), None)
        if run is None:
            return False
        begun = {entry.step for entry in self._store.journal.of_run(run.id) if entry.kind == "intent"}
        steps = [step for step in from_document(run.plan).steps if step.id in begun]
        is_asked = any(step.pauses_job and step.touches == job for step in steps)
        return is_asked and not any(step.writes for step in steps)

    def _on_record(self, job: str) -> str | None:
        """The phase of a job that the store has on record."""
        return next(iter(self._store.fabric.assignment().get(phase_of(job), ())), None)

    def _permitted(self, job: str, plan: str, device: str, phase: str) -> _Ready:
        """The phases of a plan, if it permits this job to light this phase on this device now."""
        try:
            permit = phase_permit(job, self._store.fabric.assignment())
            if permit is None:
                raise DeviceRefusedError(
                    f"no plan permits job {job} to change its phase now; nothing was sent", hint=_start_again(job)
                )
            ready = self._plan(plan, job)
            if permit != ready.permit:
                raise DeviceRefusedError(
                    f"{plan} does not permit job {job} to change its phase any more: another plan does; nothing was "
                    "sent",
                    hint=_start_again(job),
                )
        except StoreError as error:
            raise _unsent(error) from error
        if phase not in ready.cells:
            raise DeviceRefusedError(
                f"{plan} has no phase {phase!r}, only {', '.join(ready.cells)}; nothing was sent",
                hint=f"see the phases of the job: lumctl job phases {job}",
            )
        if device not in ready.cells[phase]:
            raise DeviceRefusedError(
                f"{plan} has no states of {device} for phase {phase}; nothing was sent",
                hint=f"see the phases of the job: lumctl job phases {job}",
            )
        return ready

    def _read_plan(self, plan_id: str, job: str) -> _Ready:
        document, again = self._store.runs.plan(plan_id), _start_again(job)
        if document is None:
            raise DeviceRefusedError(f"the store has no plan {plan_id!r}; nothing was sent", hint=again)
        try:
            plan = from_document(document)
        except UsageError as error:
            raise DeviceRefusedError(f"{plan_id}: {error.message}; nothing was sent", hint=again) from error
        if (plan.id, plan.rack) != (plan_id, self._rack):
            raise DeviceRefusedError(
                f"the store holds {plan.id} of rack {plan.rack} in the place of {plan_id}; nothing was sent",
                hint=again,
            )
        if plan.kind != PHASES:
            raise DeviceRefusedError(
                f"{plan_id} is a plan of kind {plan.kind}, which permits no change of phases; nothing was sent",
                hint=again,
            )
        return _ready(plan)

    def _written(self, ready: _Ready, plan: str, device: str, phase: str) -> dict[str, Any]:
        cells, began = ready.cells[phase][device], time.perf_counter()
        driver = self._devices.changing(device)
        staged = transaction.stage(driver, cells)
        self._require_own(staged, ready.known[device], driver, plan, device)
        transaction.write(driver, staged)
        seconds = round(time.perf_counter() - began, 6)
        return {"cells": len(cells), "read_back": transaction.readable(driver), "seconds": seconds}

    @staticmethod
    def _require_own(
        staged: Staged[Any], known: frozenset[tuple[int, str]], driver: LightDriver, plan: str, device: str
    ) -> None:
        """Refuse to change a state that no phase has: another program, or a person, has made that light path."""
        free = FREE if transaction.is_switch(driver) else None
        for cell, value in transaction.held_before(staged).items():
            if value != free and (cell, value) not in known:
                at = f"port {cell} is connected to {value}" if free else f"PUC {cell} is in {PucState(value).word}"
                raise DeviceRefusedError(
                    f"{device}: {at}, as in no phase of {plan}; nothing was sent",
                    hint="see it: lumctl fabric show; write the device again: lumctl fabric apply --rewrite",
                )


def _ready(plan: Plan) -> _Ready:
    cells: dict[str, dict[str, tuple[Cell, ...]]] = {}
    known: dict[str, set[tuple[int, str]]] = {}
    for phase in plan.phases:
        cells[phase.name] = {
            device: tuple((cell, None, state) for cell, state in states.items())
            for device, states in phase.cells.items()
        }
        for device, states in phase.cells.items():
            known.setdefault(device, set()).update(
                pair for cell, state in states.items() for pair in _either_way(cell, state)
            )
    return _Ready(plan.permit, cells, {device: frozenset(states) for device, states in known.items()})


def _either_way(cell: int, state: str) -> tuple[tuple[int, str], ...]:
    """A state of a cell; a join also from its other end: an any-to-any switch may report it so."""
    return ((cell, state), (int(state), str(cell))) if state.isdecimal() else ((cell, state),)


def _name(request: Mapping[str, Any], key: str) -> str:
    name = request.get(key)
    if not isinstance(name, str) or not name:
        raise ValueError(f"a request for a phase does not name its {key}")
    return name


def _start_again(job: str) -> str:
    return f"a running job obtains another permit by itself; to start it: lumctl job run {job}"


def _unsent(error: RefusedError | StoreError) -> DeviceRefusedError:
    return DeviceRefusedError(f"{error.message}; nothing was sent", hint=error.hint)
