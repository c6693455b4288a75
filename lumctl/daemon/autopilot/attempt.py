"""One attempt of the autopilot: read the fault again, plan, apply, and determine the result of the run."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lumctl.change.approval import AUTOPILOT
from lumctl.change.engine import apply
from lumctl.change.guard import Standby
from lumctl.change.plan import Plan
from lumctl.context import Context, Observation
from lumctl.daemon.autopilot.decision import Decision, decide_one
from lumctl.daemon.autopilot.faults import ComponentFault, faults_of
from lumctl.daemon.autopilot.memory import AutopilotMemory
from lumctl.inventory.policies import Policy
from lumctl.runbook.files import save
from lumctl.store import Store, StoreError
from lumctl.swap.planning import plan_swap
from lumctl.swap.silent_parts import silence_refusal

if TYPE_CHECKING:
    from lumctl.daemon.autopilot.policy import Onsets

SETTLED = frozenset({"done", "rolled-back", "refused", "undone", "superseded"})
"""Run states after which the state of the rack is certain."""


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of an attempt. ``outcome`` is its run's outcome, ``refused`` if no run began, ``None`` if unknown."""

    outcome: str | None
    run: str | None = None
    told: str = ""


def name_of(policy: Policy) -> str:
    """The autopilot's name in leases, runs and the journal."""
    return f"{AUTOPILOT}policy {policy.name} on {socket.gethostname()}"


def again(
    decision: Decision, seen: Observation, memory: AutopilotMemory, onsets: "Onsets", *, now: float
) -> Decision | None:
    """The decision about the same fault after a fresh observation; ``None`` if the fault has ended.

    A new context does not know how long the fault has lasted; that time is taken from the earlier decision.
    """
    for fault in faults_of(seen):
        if fault.key == decision.fault.key:
            stood = _with_since(fault, decision)
            return decide_one(seen.inventory.policies, stood, seen, memory, onsets, now=now)
    return None


def _with_since(fault: ComponentFault, decision: Decision) -> ComponentFault:
    known = decision.finding
    return replace(
        fault,
        findings=tuple(
            replace(f, since=min(f.since, known.since)) if (f.rule, f.case) == (known.rule, known.case) else f
            for f in fault.findings
        ),
    )


def plan_for(context: Context, decision: Decision, seen: Observation) -> Plan:
    """A plan that replaces the accelerators of a fault.

    Raises:
        LumctlError: no spare is left, or a device that it writes does not answer or its state is uncertain.
    """
    accelerators = [a for accelerators in decision.fault.jobs.values() for a in accelerators]
    plan = plan_swap(context, None, accelerators, seen=seen)
    if (silent := silence_refusal(seen, plan)) is not None:
        raise silent
    return plan


def carry_out(
    context: Context, plan: Plan, policy: Policy, progress: Callable[[str], None], require_wanted: Callable[[], None]
) -> AttemptResult:
    """Apply a plan. The result is always read from the store's record of the run, even after an error.

    ``require_wanted`` may refuse the run. It is called after the store lists the run and before anything changes.
    """
    store, began_at = context.store(plan.rack), context.now()
    try:
        with Standby(context) as standby:
            standby.ready(plan.rack)  # the guard starts while the preconditions are checked
            who = name_of(policy)
            result = apply(context, plan, progress=progress, who=who, arm=standby.arm, require_wanted=require_wanted)
    except Exception as error:  # noqa: BLE001 - the journal shows what the run left behind
        ended = how_it_ended(store, plan.digest, since=began_at, now=context.now())
        return replace(ended, told=str(error) or type(error).__name__)
    return AttemptResult("done", result.run, _runbook(context, result.run, plan.rack))


def how_it_ended(store: Store, digest: str, *, since: float, now: float) -> AttemptResult:
    """The result of the newest run of a plan since a time, from the store alone.

    ``outcome`` is ``running`` while an engine or its guard works on the run. It is ``None`` for an open run whose lease
    has expired, and if the store cannot be read.
    """
    try:
        # An operator may have applied the same plan before this attempt.
        found = [run for run in store.runs.all() if run.plan_digest == digest and run.started_at >= since]
        if not found:
            return AttemptResult("refused")
        newest = max(found, key=lambda run: run.started_at)
        if newest.state in SETTLED:
            return AttemptResult(newest.state, newest.id)
        at_work = newest.state == "running" and newest.id not in store.runs.unfinished(now=now)
    except StoreError as error:
        return AttemptResult(None, told=error.message)
    return AttemptResult("running" if at_work else None, newest.id)


def _runbook(context: Context, run: str, rack: str) -> str:
    try:
        return f"runbook: {save(context, run, rack)}"
    except Exception as error:  # noqa: BLE001 - the run is done even without the file
        return f"no runbook was written: {error}"
