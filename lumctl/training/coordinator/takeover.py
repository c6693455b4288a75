"""Taking over a job that runs already, from a lumctl that has ended or does not answer."""

from lumctl.training.coordinator import failures, job_end, orders
from lumctl.training.coordinator.resume_point import ResumePoint
from lumctl.training.coordinator.state import JobPhase, JobState, RankGroup


def adopt(state: JobState) -> bool:
    """Take over a running job; whether there is one."""
    members = [worker for worker in state.workers if worker.alive and worker.rank is not None and not worker.ended]
    if not members:
        return _adopt_finishing(state)
    newest = max(worker.generation for worker in members)
    crew = {worker.rank: worker for worker in members if worker.generation == newest and worker.rank is not None}
    state.most_done = done = max(worker.done for worker in members)
    names = {rank: worker.name for rank, worker in sorted(crew.items())}
    state.group = RankGroup(newest, names, ResumePoint(done, ()), join_sent=True, joined=set(names.values()))
    state.group.due = state.effects.now() + state.run.stall_s
    for worker in crew.values():
        worker.busy = True
    places = [crew[rank].accelerator if rank in crew else None for rank in range(len(state.placement))]
    lost = [name for name, place in zip(state.placement, places, strict=True) if name != place]
    if not lost and not any(worker.parted for worker in crew.values()):
        state.phase = JobPhase.RUNNING
        state.effects.say(f"the job runs already: {len(crew)} ranks are taken over (group {newest})")
        orders.reply_to_light(state, {"state": "running"})
        return True
    state.group.generation = max(worker.newest for worker in state.workers)  # some may already hold for a later group
    state.phase = JobPhase.RECOVERING
    if lost:
        failures.fail(state, lost, f"{', '.join(lost)}: no process of the rank lives", state.effects.now())
    else:
        state.effects.say(f"the job is taken over: its {len(crew)} ranks hold (group {newest})")
        orders.hold(state)
    for worker in state.workers:  # a former lumctl may have told them to join
        if not state.is_member(worker):
            orders.hold_also(state, worker)
    return True


def _adopt_finishing(state: JobState) -> bool:
    """Take over a job whose ranks run the rest of their script; whether there is one."""
    had = [worker for worker in state.workers if worker.rank is not None and worker.ended and not worker.cut_short]
    if not any(worker.alive for worker in had):
        return False
    newest = max(worker.generation for worker in had)
    crew = {worker.rank: worker for worker in had if worker.generation == newest and worker.rank is not None}
    state.group = RankGroup(newest, {rank: worker.name for rank, worker in sorted(crew.items())}, join_sent=True)
    job_end.finish(state)
    return True
