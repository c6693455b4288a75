"""Examines the accelerators of a failure and runs the swap that they need, in one thread, one order at a time."""

import gc
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from queue import Empty, SimpleQueue

from lumctl.change.engine import apply
from lumctl.change.guard import Standby
from lumctl.change.light_proof import LightProof
from lumctl.change.origin import origin
from lumctl.change.plan import Do
from lumctl.change.preconditions import require
from lumctl.context import Context, Observation
from lumctl.daemon.autopilot.journal import stopped_by_anybody
from lumctl.errors import LumctlError, RefusedError, RunError
from lumctl.health.remedy import Remedy
from lumctl.health.states import State
from lumctl.inventory.job_run import WithoutSpare
from lumctl.inventory.wiring import circuits_of
from lumctl.runbook.files import save
from lumctl.swap.demand_queue import queue_demands
from lumctl.swap.explanations import NoSpareError
from lumctl.swap.planning import plan_swap
from lumctl.swap.silent_parts import silence_refusal
from lumctl.training.coordinator import failures, phase_light
from lumctl.training.coordinator.state import Post
from lumctl.training.phase_permission import obtain_permit, rest

WELL = frozenset({State.OK, State.DEGRADED})
"""The states of an accelerator that allow a process to be started on it again."""
IDLE_S = 1.0
"""How long the healer is idle before it does deferred work."""


class LightOrder(StrEnum):
    """What the healer does with the light of a job's phases."""

    REST = "rest"
    """Give the devices the phase on record."""
    OBTAIN = "obtain"
    """Obtain a permit to change phases."""
    OBTAIN_AGAIN = "obtain again"
    """Prove each phase again, then obtain a permit."""


Order = tuple[tuple[str, ...], bool] | LightOrder
"""Accelerators to examine, and whether only those known to have failed are replaced; or what to do with light."""
NOTHING: Order = ((), False)


class Healer:
    """Repairs one job. Any thread may call :meth:`examine`; the healer's own thread reports the results."""

    def __init__(
        self,
        open_context: Callable[[], Context],
        job: str,
        rack: str,
        agreed_by: str,
        post: Post,
        before_rest: Callable[[], None] = lambda: None,
    ) -> None:
        """``before_rest`` ends the changes of light that are under way."""
        self._open_context, self._before_rest = open_context, before_rest
        self._job, self._rack = job, rack
        self._agreed_by = agreed_by
        self._post = post
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._unsaved: list[str] = []
        self._thread = threading.Thread(target=self._work, name=f"lumctl-heal-{job}", daemon=True)

    def begin(self) -> None:
        """Open sessions to hosts and devices in advance, so that a failure does not wait for them."""
        self._thread.start()

    def examine(self, accelerators: Sequence[str], failed_only: bool) -> None:
        """Read the health of accelerators, and replace unhealthy ones, or only those known to have failed."""
        self._orders.put((tuple(accelerators), failed_only))

    def light(self, order: LightOrder) -> None:
        """Let the light of the job's phases rest, or obtain a permit to change it."""
        self._orders.put(order)

    def close(self) -> None:
        """End after the current order."""
        if self._thread.is_alive():
            self._orders.put(None)
            self._thread.join()

    def _work(self) -> None:
        """Carry out orders; if the context broke or could not be opened, the next order opens another."""
        order: Order | None = NOTHING  # only opens the context
        while order is not None:
            try:
                with self._open_context() as context, Standby(context) as standby:
                    if order is NOTHING:
                        self._rehearse(context)
                    while order is not None:
                        if order is not NOTHING:
                            self._follow(context, standby, order)
                        order = NOTHING  # this order's result is reported: a later error does not belong to it
                        order = self._next(context, standby)
                    self._save(context)
            except Exception as error:  # noqa: BLE001 - the job's processes live on; the operator is told
                if order is None:
                    return
                if order is not NOTHING:
                    self._report(order, _known(error))
                order = self._orders.get()

    def _follow(self, context: Context, standby: Standby, order: Order) -> None:
        try:
            if isinstance(order, LightOrder):
                self._change_light(context, order)
            else:
                self._heal(context, standby, *order)
        except (RefusedError, RunError) as error:  # these errors leave the context usable
            self._report(order, error)

    def _report(self, order: Order, error: LumctlError) -> None:
        match order:
            case LightOrder.REST:
                self._post(phase_light.rested, error)
            case LightOrder():
                self._post(phase_light.not_permitted, error)
            case _:
                self._post(failures.not_repaired, error)

    def _change_light(self, context: Context, order: LightOrder) -> None:
        if order is LightOrder.REST:
            self._before_rest()
            rest(context, self._job)
            self._post(phase_light.rested, None)
            return
        who, again = self._agreed_by or origin(), order is LightOrder.OBTAIN_AGAIN
        self._post(phase_light.permitted, obtain_permit(context, self._job, who, again=again))

    def _next(self, context: Context, standby: Standby) -> Order | None:
        """Wait for the next order; while there is none, do deferred work."""
        with suppress(Empty):
            return self._orders.get(timeout=IDLE_S)
        self._save(context)
        with suppress(Exception):  # a swap that needs the guard starts it, or reports why it cannot
            standby.ready(self._rack)
        # All objects made so far live long. Without this, the garbage collector may scan them during a swap.
        gc.collect()
        gc.freeze()
        return self._orders.get()

    def _save(self, context: Context) -> None:
        while self._unsaved:
            with suppress(Exception):  # the runbook can be made again from the journal
                save(context, self._unsaved.pop(), self._rack)

    def _rehearse(self, context: Context) -> None:
        """Plan a swap, check its preconditions and verify the light, to load modules and open sessions in advance."""
        with suppress(Exception):  # a real swap reports the same problem
            seen = context.observe()
            placed = context.assignment()[self._job]
            require(context, plan_swap(context, self._job, placed[:1], even_if_healthy=True, seen=seen))
            ours = [each for each in circuits_of(context.inventory, context.assignment()) if each.owner == self._job]
            LightProof(context.inventory, context.fleet, context.devices, now=context.now).sound(ours)

    def _heal(self, context: Context, standby: Standby, accelerators: Sequence[str], failed_only: bool) -> None:
        seen = context.observe()
        bad = not_well(seen, accelerators)
        if failed_only:
            bad = {name: why for name, why in bad.items() if seen.report.accelerators[name].state is State.FAILED}
        self._post(failures.examined, bad)
        if not bad:
            if why := unlit(seen, self._job):
                self._post(failures.circuits_dark, why)
            else:
                self._post(failures.repaired, None)
            return
        self._require_consent(context)
        placed = context.assignment()[self._job]
        failed = [name for name in bad if name in placed]
        if not failed:  # an operator has replaced the accelerators meanwhile
            self._post(failures.repaired, None)
            return
        try:
            plan = plan_swap(context, self._job, failed, seen=seen)
        except NoSpareError as error:
            self._take_place(context, seen, failed, error)
            raise
        if (silent := silence_refusal(seen, plan)) is not None:
            raise silent
        self._post(failures.planned, plan)
        events = {Do.PROGRAM: failures.programmed, Do.VERIFY: failures.verified}
        # The engine reports a finished step as `ID. title: ...`.
        of_step = {f"{step.id}.": events[step.do] for step in plan.steps if step.do in events}

        def progress(line: str) -> None:
            if (event := of_step.get(line.split(" ", 1)[0])) is not None:
                self._post(event)

        result = apply(
            context,
            plan,
            progress=progress,
            who=self._agreed_by,
            arm=standby.arm,
            require_wanted=lambda: self._require_consent(context),
        )
        self._unsaved.append(result.run)
        self._post(failures.repaired, result)

    def _take_place(self, context: Context, seen: Observation, failed: Sequence[str], error: NoSpareError) -> None:
        """Queue a job that waits for a spare, so that no job that asks later takes the spare that comes free."""
        if context.inventory.jobs[self._job].run_settings().without_spare is WithoutSpare.WAIT:
            with suppress(RefusedError):  # it waits already, or would wait in vain
                queue_demands(
                    context.store(self._rack), seen, self._rack, failed, why=error.message, who=self._agreed_by
                )

    def _require_consent(self, context: Context) -> None:
        if not self._agreed_by:
            raise RefusedError(
                f"job {self._job} needs a swap, but no one has agreed to it",
                hint=(
                    f"see what is faulty, and how to plan the swap: lumctl swap plan {self._job} --target "
                    f"{context.target}; or run the job with --yes"
                ),
            )
        if (why := stopped_by_anybody(self._rack, context.store(self._rack))) is not None:
            raise RefusedError(f"the autopilot is stopped {why}", hint="lumctl autopilot start")


def _known(error: Exception) -> LumctlError:
    return error if isinstance(error, LumctlError) else LumctlError(f"{type(error).__name__}: {error}")


def not_well(seen: Observation, accelerators: Sequence[str]) -> dict[str, str]:
    """The accelerators on which no process should start, because they or their lanes have failed, with the reasons."""
    bad = {}
    for name in accelerators:
        health = seen.report.accelerators[name]
        if health.state not in WELL:
            found = [finding for finding in health.findings if finding.state not in WELL]
            bad[name] = found[0].evidence if found else f"it is {health.state}"
        elif (remedy := _only_repaired_by(seen, name)) is not None:
            bad[name] = remedy.evidence
    return bad


def _only_repaired_by(seen: Observation, accelerator: str) -> Remedy | None:
    """The remedy of a lost circuit that replaces this accelerator alone; ``None`` if either end may be at fault."""
    failed = (r for r in seen.remedies if r.kind == "link" and r.state is State.FAILED)
    return next((remedy for remedy in failed if remedy.replace == (accelerator,)), None)


def unlit(seen: Observation, job: str) -> str:
    """The circuits of a job that are down, with the evidence; empty if all may carry traffic."""
    down = [
        circuit for circuit in seen.report.circuits.values() if circuit.owner == job and circuit.state is State.FAILED
    ]
    shown = [f"{circuit.id}: {circuit.findings[0].evidence}" if circuit.findings else circuit.id for circuit in down]
    return f"no light: {'; '.join(shown)}" if shown else ""
