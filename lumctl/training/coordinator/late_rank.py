"""The schedule for a late rank: which one the group uses, and the order to rank 0 that tells it."""

from typing import Any

from lumctl.inventory.job_run import StragglerSchedule
from lumctl.training.coordinator.state import JobStage, JobState
from lumctl.training.protocol import LATE, Message, Reply

NEEDS = 3
"""The fewest ranks of which one can be late for the others."""


def ordered(state: JobState) -> int | None:
    """The late rank for which the present group was told to use a schedule; ``None`` if it was not."""
    generation, rank = state.ordered_schedule
    return rank if state.phase is JobStage.RUNNING and generation == state.group.generation else None


def use(state: JobState, rank: int | None, generation: int) -> None:
    """Tell the group of a generation to use the schedule for a late rank from its next step on, or none.

    A new group uses none until it is told.
    """
    first = state.workers.get(state.group.members.get(0, ""))
    if generation != state.group.generation or state.phase is not JobStage.RUNNING or first is None:
        return
    if rank == ordered(state):
        return
    state.ordered_schedule = generation, rank
    # No order that the worker answers: it is not repeated when a line is lost, and the group then goes on as it was.
    message = {"do": LATE, "generation": generation, "rank": rank}
    state.effects.ask(first.host, {"ask": "tell", "worker": first.name, "message": message})
    name = None if rank is None else state.workers[state.group.members[rank]].accelerator
    state.effects.say(
        "the ranks are told to use no schedule any more"
        if rank is None
        else f"rank {rank} ({name}) is late: the ranks are told to use a schedule that works around it"
    )


def asked(state: JobState, request: Message, answer: Reply) -> None:
    """Follow an operator's request to use a schedule, or none."""
    rank, ranks = request.get("rank"), len(state.group.members)
    if (why := _refusal(state, rank, ranks)) is not None:
        answer({"error": why})
        return
    use(state, rank, state.group.generation)
    answer({"rank": ordered(state)})


def _refusal(state: JobState, rank: Any, ranks: int) -> str | None:
    job = state.job.name
    if state.phase is not JobStage.RUNNING:
        return f"job {job} is {state.phase}: a schedule is for a running one"
    if rank is None:
        return None
    if state.run.straggler_schedule is StragglerSchedule.OFF:
        return f"the inventory forbids a schedule for job {job}: straggler_schedule is off"
    if not (type(rank) is int and 0 <= rank < ranks and ranks >= NEEDS):
        return f"job {job} has {ranks} ranks: no schedule for rank {rank}"
    return None
