"""Who is late in a job, for the dashboard: what ``job stragglers`` says, from the newest steps."""

from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation

if TYPE_CHECKING:
    from lumctl.health.observation import Observation
    from lumctl.tui.views.job_waits import JobWaits


def job_waits(cx: Invocation, seen: "Observation", job: str) -> "JobWaits | None":
    """Whom the ranks of a job waited for in its newest steps; ``None`` if nothing is recorded.

    Raises:
        LumctlError: the coordinator of the job does not answer.
    """
    from lumctl.cli.job_state import ASK_WITHIN_S, asked
    from lumctl.cli.job_stragglers import advised, recorded_of
    from lumctl.cli.straggler_text import advice_line
    from lumctl.cli.verbs import aimed
    from lumctl.training.stragglers import ADVISED_STEPS, lateness_of
    from lumctl.tui.views.job_waits import MOST_STEPS, JobWaits

    if job not in seen.inventory.jobs or seen.inventory.jobs[job].run is None:
        return None
    if (found := recorded_of(cx, job)) is None:
        return None
    groups = lateness_of(found.steps[-ADVISED_STEPS:], found.clocks)
    if not groups:
        return None
    # That of all ranks is the first one, if it has steps; of several others the one with a late rank.
    group = next((each for each in groups if each.named is not None and groups[0].group), groups[0])
    places = [(name, seen.inventory.accelerators[name].host) for name in found.accelerators]
    advice = "no rank is late by more than chance"
    if group.named is not None:
        rank = group.ranks[group.named]
        _, act, command, _ = advised(cx, job, group, places, seen, asked(cx, job, ASK_WITHIN_S))
        advice = aimed(cx, f"rank {rank} ({found.accelerators[rank]}) is late; {advice_line(act, command)}")
    steps = [(group.ranks[step.last], step.delay_s(step.last)) for step in group.steps[-MOST_STEPS:]]
    return JobWaits(tuple(steps), dict(enumerate(found.accelerators)), group.ended, advice)
