"""What a coordinator looks up, compared with what a search of all workers finds."""

import math

from lumctl.training.coordinator import groups
from lumctl.training.coordinator.workers import JobWorkers


def require_searched(workers: JobWorkers) -> None:
    """Each index has the workers that a search finds."""

    def names(found):
        return {worker.name for worker in found}

    every = list(workers)
    assert names(workers.starting.values()) == names(w for w in every if w.alive and not w.ready and not w.ended)
    assert names(workers.existing.values()) == names(w for w in every if w.alive or w.dying)
    assert names(workers.dying.values()) == names(w for w in every if w.dying)
    assert names(workers.leaving.values()) == names(
        w for w in every if (w.alive or w.dying) and not math.isinf(w.leave_by)
    )
    assert names(workers.had_rank.values()) == names(w for w in every if w.alive and w.rank is not None)
    members = [w for w in every if w.seat is not None]
    assert names(workers.in_step.values()) == names(w for w in members if w.alive and w.busy)
    assert names(workers.training.values()) == names(w for w in members if w.alive and not w.ended)
    assert names(workers.finished.values()) == names(w for w in members if w.ended)
    for accelerator in {w.accelerator for w in every}:
        assert workers.on(accelerator) == [w for w in every if w.alive and w.accelerator == accelerator]
        dying = any(w.dying and w.accelerator == accelerator for w in every)
        assert workers.is_taken(accelerator, -math.inf) == dying
    for host in {w.host for w in every}:
        assert workers.of_host(host) == [w for w in every if w.host == host]


def require_seats_searched(state, lines):
    """A search for seats that is not repeated would find the same, and start no worker on a host with a line."""
    known = state.seating
    if known is None or known.after != groups._searched_after(state):
        return
    found = [groups._seat(state, rank) for rank in range(len(state.placement)) if rank not in state.vacant]
    if known.missing is None:
        assert known.seats == {rank: worker.name for rank, worker in enumerate(found)}
        return
    for rank, accelerator in enumerate(state.placement):
        living = state.workers.on(accelerator)
        idle = not any(worker.usable or not worker.ready for worker in living)
        taken = state.workers.is_taken(accelerator, state.effects.now())
        host = state.host_of(accelerator)
        assert rank in state.vacant or not idle or taken or not state.lines.is_up(host) or host not in lines


def require_all_searched(state, lines):
    """What the coordinator of a job looks up is what a search finds."""
    require_searched(state.workers)
    assert {w.name: w.seat for w in state.workers if w.seat is not None} == {
        name: rank for rank, name in state.group.members.items()
    }
    assert state.all_listed() == state.lines.known(map(state.host_of, state.placement))
    require_seats_searched(state, lines)
