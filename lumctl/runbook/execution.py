"""Execution of a runbook of intents: each is planned on the target, confirmed, and applied like any change."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from lumctl.change.engine import Gate, Progress, apply
from lumctl.change.guard import Arm
from lumctl.change.guard import arm as arm_guard
from lumctl.change.plan import Plan, to_document
from lumctl.context import Context
from lumctl.errors import RefusedError, RunError, UsageError
from lumctl.health.observation import rack_of
from lumctl.inventory.wiring import circuits_of
from lumctl.runbook import actions
from lumctl.runbook.intents import PREVIOUS, Intends, Intent, IntentRunbook
from lumctl.runbook.replay import ReplayResult
from lumctl.runbook.stage import Stage, no_guard
from lumctl.store import StoredRun
from lumctl.swap import (
    plan_fabric,
    plan_reroute,
    plan_return,
    plan_rollback,
    plan_settings,
    plan_swap,
    require_cuts_agreed,
)
from lumctl.time_text import length_s

_SAID = frozenset({Intends.ACK, Intends.UNACK, Intends.MAINTAIN, Intends.MAINTAIN_END})
"""The intents that change no device."""

Agree = Callable[[Plan | actions.Said], str | None]
"""Shows the next steps and asks for a confirmation; raises if refused. Returns who confirmed that jobs are stopped."""


def agreed(_what: Plan | actions.Said) -> str | None:
    """Agree without a question."""
    return None


@dataclass(frozen=True)
class Performance:
    """The means to do a runbook of intents. ``kept`` is called with each finished run and its rack."""

    progress: Progress
    before_step: Gate
    agree: Agree = agreed
    arm: Arm = arm_guard
    kept: Callable[[str, str], None] = lambda _run, _rack: None


def perform(runbook: IntentRunbook, context: Context, on: str, how: Performance) -> ReplayResult:
    """Do each step of a runbook in order; if a step fails, the earlier steps are not undone.

    Raises:
        UsageError: a name is unknown on this target.
        RefusedError: a step cannot be planned, or the operator refused it.
        RolledBackError, HalfDoneError: a step failed.
    """
    if runbook.rack not in context.inventory.racks:
        raise UsageError(f"{runbook.id} is for rack {runbook.rack!r}, which is not in {context.inventory.path}")
    begun = perf_counter()
    runs: list[str] = []
    for intent in runbook.intents:
        how.progress(f"step {intent.id}: {intent.title}")
        run = _do(intent, context, runbook.rack, runs, how)
        if run is None:
            how.progress(f"step {intent.id}: the rack is already in that state; nothing was done")
            continue
        runs.append(run)
        how.kept(run, runbook.rack)
    last = runs[-1] if runs else ""
    return ReplayResult(runbook.id, on, last, "done", None, None, round(perf_counter() - begun, 4), tuple(runs))


def perform_on_stage(runbook: IntentRunbook, stage: Stage, context: Context, how: Performance) -> ReplayResult:
    """Do a runbook on a simulator where the accelerators that a swap will replace have failed.

    Raises:
        UsageError: a name is unknown on this target.
        RefusedError: a step cannot be planned, or failed; the run is not stored.
    """
    for intent in runbook.intents:
        if intent.do is Intends.SWAP:
            for accelerator in intent.words("failed"):
                stage.sim.inject(accelerator, "gpu-lost")
    # The runs are lost with the simulator, so no confirmation is needed and no runbook is kept.
    quiet = Performance(how.progress, how.before_step, agreed, no_guard)
    try:
        return replace(perform(runbook, context, "sim", quiet), rehearsal=True)
    except RunError as error:  # its hint is about a run that is gone with the simulator
        raise RefusedError(f"in the rehearsal: {error.message}") from error


def _do(intent: Intent, context: Context, rack: str, runs: list[str], how: Performance) -> str | None:
    """Do one step; return the id of its run, or ``None`` if there was nothing to do."""
    said = _said(intent, context, rack)
    if said is not None:
        how.agree(said)
        kind = "maintain" if intent.do in {Intends.MAINTAIN, Intends.MAINTAIN_END} else "ack"
        return actions.record(context, kind, [said], at=context.now())
    plan = planned(intent, context, rack, runs)
    if plan.rack != rack:
        raise RefusedError(
            f"step {intent.id} is for rack {plan.rack}, but this runbook is for {rack}",
            hint=f"set that rack: --set rack={plan.rack}",
        )
    if not plan.steps:
        return None
    require_cuts_agreed(context, plan, f"lumctl fabric apply --target {context.target}")
    # So that an operator can approve it, if a policy requires that.
    context.store(plan.rack).runs.save_plan(to_document(plan))
    stopped_by = how.agree(plan)
    return apply(
        context, plan, progress=how.progress, before_step=how.before_step, stopped_by=stopped_by, arm=how.arm
    ).run


def planned(intent: Intent, context: Context, rack: str, runs: list[str]) -> Plan:
    """The plan for an intent that changes light paths or settings, made now; ``runs`` are the runs of earlier steps.

    Raises:
        UsageError: a name is unknown, or there is no run to undo.
        RefusedError: no plan is possible.
    """
    data = intent.data
    match intent.do:
        case Intends.SWAP:
            job = None if data.get("job") is None else str(data["job"])
            failed, spares = intent.words("failed"), intent.words("spare")
            healthy, avoid = intent.flag("even_if_healthy"), intent.words("avoid")
            return plan_swap(context, job, failed, spares, avoid=avoid, even_if_healthy=healthy)
        case Intends.SWAP_BACK:
            return plan_return(context, str(data["job"]))
        case Intends.REROUTE:
            return plan_reroute(context, None if data.get("job") is None else str(data["job"]), intent.words("avoid"))
        case Intends.ROLLBACK:
            return plan_rollback(context, _run_of(context, rack, str(data["run"]), runs))
        case Intends.FABRIC_APPLY:
            written = {job.name: job.ranks for job in context.inventory.jobs.values() if job.rack == rack}
            placement = written if intent.flag("as_written") else None
            return plan_fabric(
                context, str(data.get("rack") or rack), rewrite=intent.flag("rewrite"), placement=placement
            )
        case _:
            words = [f"{name}={_typed(value)}" for name, value in data["settings"].items()]
            component = str(data["component"])
            return plan_settings(context, component, words, even_if_used=intent.flag("even_if_used"))


def _said(intent: Intent, context: Context, rack: str) -> actions.Said | None:
    """The action of an intent that changes no device; ``None`` for any other intent."""
    data = intent.data
    if intent.do not in _SAID:
        return None
    component = str(data["component"])
    found = rack_of(context.inventory, component, circuits_of(context.inventory, context.assignment()))
    if found != rack:
        raise RefusedError(
            f"step {intent.id} names {component}, which is "
            + (f"in rack {found}" if found else "not in the inventory"),
            hint=f"set that rack: --set rack={found}" if found else "see: lumctl status -o wide",
        )
    rule = None if data.get("rule") is None else str(data["rule"])
    lasts_s = None if data.get("for") is None else length_s(str(data["for"]))
    match intent.do:
        case Intends.ACK:
            return actions.acknowledge(rack, component, rule, str(data["comment"]), lasts_s)
        case Intends.UNACK:
            return actions.unacknowledge(rack, component, rule)
        case Intends.MAINTAIN:
            return actions.open_window(
                rack, component, str(data["comment"]), starts_in_s=0.0, for_s=float(lasts_s or 0.0)
            )
        case _:
            return actions.end_window(rack, component)


def _run_of(context: Context, rack: str, name: str, runs: list[str]) -> StoredRun:
    if name != PREVIOUS:
        return context.store(rack).runs.get(name)
    if not runs:
        raise UsageError(f"no earlier step has a run that could be undone: `run: {PREVIOUS}`")
    return context.store(rack).runs.get(runs[-1])


def _typed(value: object) -> str:
    """A setting's value as an operator types it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
