"""The kind of step that has a job pause before light moves, and go on afterwards."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lumctl.change.plan import Do, Plan, Step
from lumctl.errors import LumctlError
from lumctl.jobs import QUIET, RUNNING, HookFailedError, Hooks, passed_over
from lumctl.jobs.hooks import PAUSE, RESUME, Facts
from lumctl.site import Site

if TYPE_CHECKING:
    from lumctl.change.steps import Bench

Evidence = Mapping[str, Any]


class JobAct:
    """Call a job's hook. What it did before is kept: a job that was quiet already is not set going by an undo."""

    def act(self, bench: "Bench", step: Step) -> Evidence:
        """Pause the job, or have it go on.

        Raises:
            HookRefusedError: its hook said no, and the job is as it was.
            HookFailedError: nobody knows what the job does.
        """
        job, pauses = step.data["job"], step.data["act"] == PAUSE
        named = {"job": job, "act": step.data["act"]}
        if (why := passed_over(bench.site, job)) is not None:
            return {**named, "hook": {"passed_over": why}}
        hooks = Hooks(bench.site, job, bench.facts)
        if pauses:
            found = hooks.pause()
        else:
            try:
                found = _resumed(bench, job, hooks)
            except KeyboardInterrupt as error:  # all light is right: that is no reason to take it back
                raise HookFailedError(f"the resume hook of job {job} was interrupted") from error
        return {**named, "was": found.pop("was"), "hook": found}

    def undo(self, bench: "Bench", step: Step, evidence: Evidence | None) -> Evidence:
        """Have a paused job go on; pause one again that is not to use the light that is taken back now."""
        job = step.data["job"]
        if passed_over(bench.site, job) is not None:
            return {}
        hooks = Hooks(bench.site, job, bench.facts)
        if step.data["act"] == RESUME:
            return {"hook": hooks.pause()}
        if evidence is not None and evidence.get("was") in QUIET:
            return {}
        if evidence is None and bench.unasked and hooks.status() != RUNNING:
            raise HookFailedError(f"whether this run has paused job {job} is not known: it is left as it is")
        return {"hook": _resumed(bench, job, hooks)}


def _resumed(bench: "Bench", job: str, hooks: Hooks) -> dict[str, str]:
    """Have a job go on; where its control names the accelerators or hosts of its ranks, they are the placement's.

    Raises:
        HookFailedError: they are others, though its control reported success.
    """
    found = hooks.resume()
    if "ranks" not in found:
        return found
    known = bench.site.inventory.accelerators
    placed = [known[each] for each in bench.site.assignment(sound=False)[job] if each in known]
    runs_at = [each.strip() for each in found["ranks"].split(",")]
    if len(runs_at) != len(placed) or any(
        at not in {each.id, each.host} for at, each in zip(runs_at, placed, strict=True)
    ):
        raise HookFailedError(
            f"job {job} runs at {', '.join(runs_at)}, and is placed at {', '.join(each.id for each in placed)}: "
            "stop it there first"
        )
    return found


def seen_before(site: Site, steps: Iterable[Step], about_to_ask: Callable[[Step], None]) -> dict[str, Evidence]:
    """What the jobs do that are about to be paused, by step, where their hooks tell: it is on disk before that.

    They are asked one after the other, and each may take its time: ``about_to_ask`` is called before each of them.
    """
    found: dict[str, Evidence] = {}
    for step in steps:
        if step.do is Do.JOB and step.data["act"] == PAUSE and passed_over(site, step.data["job"]) is None:
            about_to_ask(step)
            with suppress(LumctlError):  # then it is not paused either
                if (was := Hooks(site, step.data["job"]).status()) is not None:
                    found[step.id] = {"was": was}
    return found


def facts_of(plan: Plan, run: str) -> Facts:
    """What the hooks of a run are told of it."""
    return Facts(run, [r.failed for r in plan.replacements], [r.spare for r in plan.replacements])
