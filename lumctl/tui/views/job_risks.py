"""Which jobs are at risk, and why: something that they run on is not ok, or no swap could help their next failure."""

from collections.abc import Iterator
from dataclasses import dataclass

from lumctl.health.observation import job_members
from lumctl.health.states import HARMLESS, State, worst
from lumctl.swap.spare_pool import RanksAtRisk, ranks_at_risk
from lumctl.tui.views.jobs import GOES, jobs_of, state_of, told_of
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.spares import kept_for_others


@dataclass(frozen=True, slots=True)
class JobRisk:
    """A job at risk and the reasons, in a few words. ``without_help`` are whole sentences about what no swap can help.

    ``state`` is the worst state of what it runs on; degraded if only help is missing.
    """

    job: str
    state: State
    reasons: str
    without_help: tuple[str, ...]


def job_risks(seen: RecordedLook) -> tuple[JobRisk, ...]:
    """The jobs at risk: not ok, with work on something that they run on, or with a rank that no swap could help now.

    A spare that a run in progress takes, or that the queue gives to another demand, is not left for anyone.
    """
    moving = seen.moving
    without_help: dict[str, list[RanksAtRisk]] = {}
    for each in ranks_at_risk(seen.observation, kept={*moving.values(), *kept_for_others(seen, ())}):
        without_help.setdefault(each.job, []).append(each)
    found = []
    for job in jobs_of(seen):
        state, risks = _state(seen, job), without_help.get(job, ())
        present, helpless = tuple(_present(seen, job, state)), tuple(_words(seen, each) for each in risks)
        if not (present or helpless):
            continue
        brief = (f"{each.silent} does not answer" if each.silent else _words(seen, each) for each in risks)
        reasons = "; ".join(dict.fromkeys((*present, *brief)))
        found.append(JobRisk(job, state if state not in HARMLESS else State.DEGRADED, reasons, helpless))
    return tuple(found)


def unread_jobs(seen: RecordedLook) -> tuple[str, ...]:
    """The jobs of which nothing can be said yet: something that they run on was not read for the first time."""
    if not seen.observation.awaited:
        return ()
    return tuple(job for job in jobs_of(seen) if _state(seen, job) is State.UNKNOWN)


def _state(seen: RecordedLook, job: str) -> State:
    told = told_of(seen, job)
    goes = GOES.get(told["state"], State.OK) if told is not None else State.OK
    return worst((state_of(seen, job), goes))


def _present(seen: RecordedLook, job: str, state: State) -> Iterator[str]:
    """What is not ok now."""
    told, members = told_of(seen, job), job_members(seen.observation, job)
    worst_member = worst((State.OK, *(member.state for member in members if member.state not in HARMLESS)))
    if worst_member is not State.OK:
        yield str(worst_member)
    elif state not in HARMLESS and told is not None:
        yield str(told["state"])
    # Work on what a job runs on is expected, but it may stop a rank at any moment, or hide that one is down.
    if any(member.state is State.DISABLED for member in members):
        yield "in maintenance"


def _words(seen: RecordedLook, each: RanksAtRisk) -> str:
    count, of_all = len(each.ranks), len(seen.observation.assignment[each.job])
    which = f"rank {each.ranks[0]}" if count == 1 else f"{count} of {of_all} ranks" if count < of_all else "any rank"
    if each.silent:
        return f"a swap for {which} may have to wait for {each.silent}, which does not answer"
    return f"no spare that was read fits {which}" if each.unread else f"no spare left for {which}"
