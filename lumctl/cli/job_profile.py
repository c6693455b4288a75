"""``lumctl job phases --profile``: the windows between the phases of a job, and what the model says of its step."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lumctl.cli.invocation import Invocation
from lumctl.cli.job_state import ASK_WITHIN_S
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.model import Job
from lumctl.inventory.problems import require_known
from lumctl.printable import counted
from lumctl.quantity_text import seconds_text

if TYPE_CHECKING:
    from lumctl.training.phase_model import StepCost
    from lumctl.training.phase_profile import ModelledStep, Profiles

_BOUNDARIES = (
    OutputColumn("BOUNDARY", "between"),
    OutputColumn("RANK", "rank", right=True),
    OutputColumn("MODE", "mode"),
    OutputColumn("STEPS", "steps", right=True),
    OutputColumn("WINDOW", "window", right=True),
    OutputColumn("P90", "window_p90", right=True, gives_way=1),
    OutputColumn("WAIT", "wait", right=True),
    OutputColumn("P90", "wait_p90", right=True, gives_way=1),
    OutputColumn("CHANGE", "change", right=True),
    OutputColumn("AHEAD HIDES AT MOST", "hidden", right=True),
)
_MODEL = (
    OutputColumn("MODE", "mode"),
    OutputColumn("STEP", "step", right=True),
    OutputColumn("STALL", "stall", right=True),
    OutputColumn("UTILISATION", "utilisation", right=True),
    OutputColumn("OVERHEAD", "overhead", right=True),
)


def show_profile(cx: Invocation, job: Job, named: str) -> None:
    """Print the profile of a plan, which may be named by the run that applied it.

    Raises:
        RefusedError: nothing is recorded, or the job had other phases under that plan.
        UsageError: there is no such profile.
    """
    from lumctl.training.phase_profile import modelled

    found = _profiles(cx, job)
    plan = _plan_of(cx, job, named) if named not in found else named
    require_known("profile", [plan], list(reversed(found)), f"job {job.name}")
    profile = found[plan]
    _require_same_phases(job, plan, found)
    step = modelled(profile)
    if cx.out.structured:
        model = None if step is None else _model_document(step)
        shown = {"plan": plan, **profile, "model": model}
        shown["boundaries"] = [{**row, "hidden_at_most_s": _hidden_at_most_s(row)} for row in profile["boundaries"]]
        cx.out.document("phases", {"job": job.name, "order": list(job.order), "profile": shown})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([plan])
    else:
        _print(cx, job, plan, profile, step)


def _profiles(cx: Invocation, job: Job) -> "Profiles":
    """The profiles that the job's coordinator has, and those that are saved, the oldest first."""
    from lumctl.context.job_files import COORDINATOR, job_folder
    from lumctl.training.job_control import ask
    from lumctl.training.job_folder import saved_profiles
    from lumctl.training.phase_profile import with_newest

    folder = job_folder(cx.inventory.path, str(cx.target), job.name)
    found = with_newest(saved_profiles(folder), ask(folder / COORDINATOR, "profiles", timeout_s=ASK_WITHIN_S) or {})
    if not found:
        raise RefusedError(
            f"no windows between the phases of {job.name} are recorded on this machine",
            hint=f"ranks report them while the job runs: lumctl job run {job.name}",
        )
    return found


def _plan_of(cx: Invocation, job: Job, run: str) -> str:
    """The plan of a run; the name itself if there is no such run."""
    from lumctl.change.plan import from_document
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        try:
            return from_document(context.store(job.rack).runs.get(run).plan).id
        except UsageError:
            return run


def _require_same_phases(job: Job, plan: str, found: "Profiles") -> None:
    from lumctl.training.phase_profile import phases_digest

    now = phases_digest(job)
    if found[plan]["phases"] == now:
        return
    newest = next((each for each in reversed(found) if found[each]["phases"] == now), None)
    raise RefusedError(
        f"{plan} is a profile of other phases than {job.name} has now: their links or their order have changed",
        hint=f"a run of the job records the present ones: lumctl job run {job.name}"
        if newest is None
        else f"see the newest of the present ones: lumctl job phases {job.name} --profile {newest}",
    )


def _print(cx: Invocation, job: Job, plan: str, profile: Mapping[str, Any], step: "ModelledStep | None") -> None:
    cx.out.text(f"{job.name}  order: {', '.join(job.order)}  profile: {plan}  target: {cx.target}")
    cx.out.text()
    cx.out.table(_BOUNDARIES, [_boundary_row(row) for row in profile["boundaries"]], title="boundaries")
    if step is None:
        cx.out.narrate("the model needs more training steps")
        return
    cx.out.text()
    rows = [_model_row(mode, cost, is_split=step.is_split) for mode, cost in step.costs.items()]
    cx.out.table(_MODEL, rows, title="a training step by the model")
    steps = max((row["steps"] for row in profile["ranks"]), default=0)
    cx.out.narrate(f"measured: {seconds_text(step.measured_s)} (median of the newest of {counted(steps, 'steps')})")
    if len(rows) == 1:
        cx.out.narrate("the step with changes ahead is unknown: the ranks measure windows from their step 8 on")


def _hidden_at_most_s(row: Mapping[str, Any]) -> float | None:
    window, change = row["window_s"], row["change_s"]
    return None if window is None or change is None else min(window["median"], change["median"])


def _boundary_row(row: Mapping[str, Any]) -> dict[str, Any]:
    hidden_s = _hidden_at_most_s(row)
    times = {
        f"{name}{suffix}": seconds_text(row[f"{name}_s"][key])
        for name in ("window", "wait", "change")
        if row[f"{name}_s"] is not None
        for suffix, key in (("", "median"), ("_p90", "p90"))
    }
    return {
        "between": f"{row['left']} to {row['entered']}",
        "rank": row["rank"],
        "mode": row["mode"],
        "steps": row["steps"],
        **times,
        "hidden": None if hidden_s is None else seconds_text(hidden_s),
    }


def _model_row(mode: str, cost: "StepCost", *, is_split: bool) -> dict[str, Any]:
    return {
        "mode": str(mode),
        "step": seconds_text(cost.step_s),
        "stall": seconds_text(cost.stall_s),
        "utilisation": f"{cost.utilisation:.1%}" if is_split else None,
        "overhead": f"{cost.overhead:.1%}",
    }


def _model_document(step: "ModelledStep") -> dict[str, Any]:
    modes = {
        str(mode): {
            "step_s": cost.step_s,
            "stall_s": cost.stall_s,
            "utilisation": cost.utilisation if step.is_split else None,
            "overhead": cost.overhead,
        }
        for mode, cost in step.costs.items()
    }
    return {"measured_s": step.measured_s, "change_s": step.change_s, "modes": modes}
