"""Forming a process group at the start and after a failure: seats, states, light, joining; and taking over a job."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lumctl.inventory.job_run import PAUSED_WITHIN_S
from lumctl.training.coordinator import failures, job_end, orders, phase_light
from lumctl.training.coordinator.state import JobEnd, JobStage, JobState, RankGroup, Seating
from lumctl.training.coordinator.workers import HeldState, JobWorker, ResumePoint, StateLoad, choose
from lumctl.training.protocol import REPLICATED


def form(state: JobState) -> None:
    """Do the next steps towards a group that are possible now."""
    group = state.group
    if group.join_sent or not state.is_settled:
        return
    if state.all_parked() and job_end.stop_if_fruitless(state):
        return
    seats = _seats(state)
    if seats is None or not state.all_parked():
        return
    if group.resume_point is None or seats != group.members:
        _choose(state, seats)
    if group.resume_point is None or not _loaded(state, group.resume_point):
        return
    if state.pause_granted or (state.under_examination and state.light_reply is None):
        return  # light may still move
    if not phase_light.is_ready(state):
        return
    _join(state, group.resume_point)


EXPIRY_S = 10.0
"""How often a search for seats is repeated while a worker is dying, which blocks its accelerator for a limited time."""


def _seats(state: JobState) -> dict[int, str] | None:
    """The worker of each rank; ``None`` while one is missing. Missing workers are started.

    All ranks are searched only if something was lost, placed or reached since the last search, or if the rank that
    lacked a worker then has one.
    """
    known = state.seating
    is_valid = known is not None and known.after == _searched_after(state)
    if known is not None and is_valid and (known.missing is None or _seat(state, known.missing) is None):
        return known.seats
    seats, missing = [], []
    for rank in range(len(state.placement)):
        if rank in state.vacant:
            continue
        worker = _seat(state, rank)
        if worker is None:
            missing.append(rank)
            _start_if_free(state, state.placement[rank])
        else:
            seats.append(worker.name)
    found = None if missing else dict(enumerate(seats))
    # One in the middle: workers often get ready in the order of their ranks, and each search should find half of them.
    state.seating = Seating(_searched_after(state), found, missing[len(missing) // 2] if missing else None)
    return found


def _searched_after(state: JobState) -> tuple[int, ...]:
    """Numbers that change whenever a rank may have lost its worker, or a worker can be started that could not be."""
    expiry = int(state.effects.now() / EXPIRY_S) if state.workers.dying else 0
    return state.workers.presence, state.lines.lists, state.placements, state.group.generation, expiry


def _seat(state: JobState, rank: int) -> JobWorker | None:
    """The worker that can have a rank now."""
    usable = [worker for worker in state.workers.on(state.placement[rank]) if worker.usable]
    # A member keeps its rank: it has the rank's state, so that no state need be loaded.
    usable.sort(key=lambda worker: not state.is_member(worker))
    return usable[0] if usable and (state.is_member(usable[0]) or not usable[0].busy) else None


def _start_if_free(state: JobState, accelerator: str) -> None:
    """Start a worker on an accelerator, unless one is there that will be able to have a rank."""
    living = state.workers.on(accelerator)
    if any(worker.usable for worker in living):
        return
    # Two processes that start or end on one accelerator might not both fit into its memory.
    free = all(worker.ready for worker in living) and not state.workers.is_taken(accelerator, state.effects.now())
    if free and state.lines.want(state.host_of(accelerator)):
        orders.start_worker(state, accelerator)


def _choose(state: JobState, seats: dict[int, str]) -> None:
    """Choose the step to resume from, and order the workers to load the states."""
    held, most = _held_states(state, seats), state.most_steps
    resume_point = choose(state.workers[seats[0]].layout, held, seats, most)
    if resume_point is not None:
        _load(state, seats, resume_point)
        return
    if state.most_done == 0:
        _load(state, seats, ResumePoint(0, ()))  # no step has been done: the job starts from the beginning
        return
    found = _newest_checkpoint(state, seats, most)
    if found is None:
        job_end.state_lost(state)
        return
    done, paths = found
    last = f"no rank has its state after the last proven step, {most}"
    why = "the state of a rank is lost" if most is None else last
    state.effects.say(f"{why}: the job returns to the checkpoint after {done} steps")
    _load(state, seats, ResumePoint(done, tuple(StateLoad(name, rank, None) for rank, name in seats.items())), paths)


def _newest_checkpoint(
    state: JobState, seats: Mapping[int, str], most: int | None
) -> tuple[int, dict[int, str]] | None:
    """The newest checkpoint that exists for every rank: the number of steps, and the path for each rank.

    After ``most`` steps at most, if that is given.
    """
    every = {
        key: path
        for worker in state.workers
        for key, path in worker.saved.items()
        if path not in state.unreadable_checkpoints and (most is None or key[1] <= most)
    }
    if state.workers[seats[0]].layout == REPLICATED:
        every |= {(rank, done): path for (_, done), path in every.items() for rank in seats}
    for done in sorted({done for _, done in every}, reverse=True):
        if all((rank, done) in every for rank in seats):
            return done, {rank: every[rank, done] for rank in seats}
    return None


def unloaded(state: JobState, worker: JobWorker, why: str) -> None:
    """Handle that a worker could not load its state: choose again."""
    state.effects.say(f"{worker.name} could not load its state: {why}")
    if worker.seat is not None and worker.seat in state.group.files:
        state.unreadable_checkpoints.add(state.group.files[worker.seat])
    state.failed_attempts += 1
    if state.failed_attempts > state.run.restarts:
        job_end.give_up(state, f"{worker.name} could not load its state: {why}", JobEnd.STATE_LOST)
    else:
        orders.hold(state)


def _held_states(state: JobState, seats: Mapping[int, str]) -> list[HeldState]:
    """The states that usable workers have; before the first group, those that they loaded from their checkpoints."""
    usable = [worker for worker in state.workers if worker.usable]
    if any(worker.generation for worker in state.workers):
        return [worker.held for worker in usable if worker.held is not None]
    rank_of = {name: rank for rank, name in seats.items()}
    return [HeldState(worker.name, rank_of.get(worker.name), worker.done) for worker in usable]


def _load(
    state: JobState, seats: dict[int, str], resume_point: ResumePoint, files: Mapping[int, str] = MappingProxyType({})
) -> None:
    state.seat(seats)
    state.group.resume_point, state.group.files, state.group.loads_sent = resume_point, files, set()
    state.group.due = math.inf
    for load in resume_point.loads:
        state.workers[load.worker].loaded = False
    _send_loads(state, resume_point)


def _loaded(state: JobState, resume_point: ResumePoint) -> bool:
    """Whether all states are loaded; if a state may be sent on, that is ordered."""
    if len(state.group.loads_sent) < len(resume_point.loads):
        _send_loads(state, resume_point)
    return all(state.workers[load.worker].loaded for load in resume_point.loads)


def _send_loads(state: JobState, resume_point: ResumePoint) -> None:
    """Order the loads whose sources have the state, and send it to no other worker now."""
    sent, files = state.group.loads_sent, state.group.files
    waiting = [load for load in resume_point.loads if not state.workers[load.worker].loaded]
    engaged: set[str | None] = {load.source for load in waiting if load.worker in sent}
    engaged |= {load.worker for load in waiting}
    for load in waiting:
        worker = state.workers[load.worker]
        # The source of a unique state had a copy from the beginning.
        must_wait = load.source is not None and load.source in engaged and worker.layout == REPLICATED
        if load.worker in sent or must_wait:
            continue
        engaged.add(load.source)
        sent.add(load.worker)
        state.group.due = state.effects.now() + state.run.stall_s
        worker.loading = load.rank, resume_point.done
        source = state.workers[load.source].state if load.source else None
        orders.send(
            state,
            worker,
            {
                "do": "load",
                "done": resume_point.done,
                "of": load.rank,
                "source": list(source) if source else None,
                "file": files.get(load.rank),
                "world": len(state.group.members),
            },
        )


def _join(state: JobState, resume_point: ResumePoint) -> None:
    group = state.group
    members = [state.workers[name] for _, name in sorted(group.members.items())]
    # Generation 0 stands for a worker that was never in a group.
    group.join_sent, group.generation = True, max(group.generation, 1)
    group.due = state.effects.now() + PAUSED_WITHIN_S
    for worker in members:
        worker.busy = True
    common: dict[str, Any] = {
        "do": "join",
        "generation": group.generation,
        "world": len(members),
        "store": list(members[0].store or ()),
        "done": resume_point.done,
        "placement": [each.accelerator for each in members],
        "lanes": state.effects.lanes,
        **phase_light.for_ranks(state, [each.host for each in members]),
    }
    phase_light.begin(state)
    orders.send_all(state, [(worker, {"rank": rank}) for rank, worker in enumerate(members)], common)


def joined(state: JobState, worker: JobWorker, at: float) -> None:
    """Handle that a worker has joined the group; once all have, the job runs."""
    if not state.is_forming or not state.group.join_sent:
        return
    if state.is_member(worker):
        state.group.joined.add(worker.name)
    if len(state.group.joined) == len(state.group.members):
        formed(state, at)


def formed(state: JobState, at: float) -> None:
    """Handle that all members have joined: the job runs."""
    if state.recovery is not None:
        state.recovery.record.mark("joined", at)
    state.phase, state.group.due = JobStage.RUNNING, state.effects.now() + state.run.stall_s
    phase_light.formed(state)
    _begin_record(state)
    orders.reply_to_light(state, {"state": "running"})
    state.effects.say(f"{len(state.group.members)} ranks {_start_in_words(state)} (group {state.group.generation})")
    for former in state.workers:
        if former.alive and former.rank is not None and not state.is_member(former):
            former.ended = True  # another worker has its rank
            state.effects.ask(former.host, {"ask": "kill", "worker": former.name})


def _begin_record(state: JobState) -> None:
    members = [state.workers[name] for _, name in sorted(state.group.members.items())]
    accelerators, clocks = [worker.accelerator for worker in members], [worker.clock for worker in members]
    state.collectives.begin(state.group.generation, accelerators, clocks)


def _start_in_words(state: JobState) -> str:
    """Where the group starts, in words: ranks may have found a checkpoint unknown to the coordinator."""
    joined = (state.workers[name] for name in state.group.joined)
    found = [worker.joined_after for worker in joined if worker.generation == state.group.generation]
    done = max([state.group.resume_point.done if state.group.resume_point is not None else 0, *found])
    return f"continue after {done} step{'' if done == 1 else 's'}" if done else "begin"


def adopt(state: JobState) -> bool:
    """Take over a running job from a lumctl that has ended or does not answer; return whether there is one."""
    if not state.workers.had_rank:
        return False
    members = [worker for worker in state.workers if worker.alive and worker.rank is not None and not worker.ended]
    if not members:
        return _adopt_finishing(state)
    newest = max(worker.generation for worker in members)
    members_by_rank = {
        worker.rank: worker for worker in members if worker.generation == newest and worker.rank is not None
    }
    state.most_done = done = max(worker.done for worker in members)
    names = {rank: worker.name for rank, worker in sorted(members_by_rank.items())}
    state.group = RankGroup(newest, {}, ResumePoint(done, ()), join_sent=True, joined=set(names.values()))
    state.seat(names)
    state.group.due = state.effects.now() + state.run.stall_s
    for worker in members_by_rank.values():
        worker.busy = True
    places = [
        members_by_rank[rank].accelerator if rank in members_by_rank else None for rank in range(len(state.placement))
    ]
    lost = [name for name, place in zip(state.placement, places, strict=True) if name != place]
    phase_light.found_running(state)
    if not (lost or state.light or any(worker.parted for worker in members_by_rank.values())):
        state.phase = JobStage.RUNNING
        _begin_record(state)
        state.effects.say(f"the job is already running: {len(members_by_rank)} ranks are taken over (group {newest})")
        orders.reply_to_light(state, {"state": "running"})
        return True
    # Some workers may be in a later group already.
    state.group.generation = max(worker.newest for worker in state.workers)
    state.phase = JobStage.RECOVERING
    if lost:
        failures.fail(state, lost, f"{', '.join(lost)}: no process of the rank is alive", state.effects.now())
    else:
        state.effects.say(f"the job is taken over: its {len(members_by_rank)} ranks are paused (group {newest})")
        orders.hold(state)
    # The former lumctl may have told them to join.
    orders.hold_also(state, [worker for worker in state.workers if not state.is_member(worker)])
    return True


def _adopt_finishing(state: JobState) -> bool:
    """Take over a job whose ranks run the part of their script after the last step; return whether there is one."""
    had = [worker for worker in state.workers if worker.rank is not None and worker.ended and not worker.cut_short]
    if not any(worker.alive for worker in had):
        return False
    newest = max(worker.generation for worker in had)
    members_by_rank = {worker.rank: worker for worker in had if worker.generation == newest and worker.rank is not None}
    state.group = RankGroup(newest, join_sent=True)
    state.seat({rank: worker.name for rank, worker in sorted(members_by_rank.items())})
    job_end.finish(state)
    return True
