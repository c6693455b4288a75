"""How a group is formed, the first one and each after a failure: seats, state, light, and then all join."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lumctl.inventory.running import PAUSED_WITHIN_S
from lumctl.training.choosing import REPLICATED, GoOn, Held, Load, choose
from lumctl.training.ends import End
from lumctl.training.healing import Healing
from lumctl.training.standing import Group, Phase
from lumctl.training.workers import Worker

HOME = "~"
"""Where a worker is started that is to be started nowhere else: a folder of its host, so named by its agent."""


class Regrouping(Healing):
    """What has to be so before a group is formed; :meth:`regroup` does whatever can be done now."""

    def regroup(self) -> None:
        """Take the next steps towards a group, as far as what is known allows."""
        group = self.group
        if group.told or not self.settled:
            return
        if self.all_parked() and self.stop_if_fruitless():
            return
        seats = self._seats()
        if seats is None or not self.all_parked():
            return
        if group.go_on is None or seats != group.crew:
            self._choose(seats)
        if group.go_on is None or any(not self.roster[load.worker].loaded for load in group.go_on.loads):
            return
        if self.kept or (self.looking and self.light is None):
            return  # its light is not proved yet
        self._join(group.go_on)

    def _seats(self) -> dict[int, str] | None:
        """Which worker gets which rank; ``None`` while one is missing, which is started then."""
        seats: list[str] = []
        missing = False
        for rank, accelerator in enumerate(self.placement):
            if rank in self.vacant:
                continue
            living = self.roster.on(accelerator)
            usable = [worker for worker in living if worker.usable and worker.name not in seats]
            usable.sort(key=lambda worker: not self.is_member(worker))
            if usable:
                seats.append(usable[0].name)
                missing = missing or (usable[0].busy and not self.is_member(usable[0]))
                continue
            missing = True
            free = all(worker.ready for worker in living) and not self.roster.is_taken(accelerator, self.means.now())
            if free and self.lines.want(self.host_of(accelerator)):
                self.start(accelerator)
        return None if missing else dict(enumerate(seats))

    def start(self, accelerator: str) -> None:
        """Have a worker started on an accelerator."""
        host = self.host_of(accelerator)
        worker = self.roster.begun(accelerator, host)
        worker.begun_at = self.means.now()
        run = self.run_as
        asked = self.means.ask(
            host,
            {
                "ask": "start",
                "worker": worker.name,
                "accelerator": accelerator,
                "argv": list(run.command),
                "environment": dict(self.means.environment(host)),
                "folder": run.folder or HOME,
                "heartbeat_s": run.heartbeat_s,
                "silence_s": run.silence_s,
            },
        )
        if not asked:  # that the line is lost will be told
            del self.roster.workers[worker.name]

    def _choose(self, seats: dict[int, str]) -> None:
        """Settle from which step it goes on, and have loaded what is missing."""
        held = [one for worker in self.roster if worker.usable and (one := self._held(worker, seats)) is not None]
        go_on = choose(self.roster[seats[0]].layout, held, seats)
        if go_on is not None:
            self._load(seats, go_on)
            return
        if self.most_done == 0:
            self._load(seats, GoOn(0, ()))  # nothing is lost that was not there: it begins anew
            return
        found = self._written(seats)
        if found is None:
            self.state_lost()
            return
        done, paths = found
        self.means.say(f"the state of a rank is lost: back to the checkpoint after {done} steps")
        self._load(seats, GoOn(done, tuple(Load(name, rank, None) for rank, name in seats.items())), paths)

    def _written(self, seats: Mapping[int, str]) -> tuple[int, dict[int, str]] | None:
        """The newest checkpoint that there is for every rank: after how many steps, and where."""
        every = {key: path for worker in self.roster for key, path in worker.saved.items() if path not in self.spoilt}
        if self.roster[seats[0]].layout == REPLICATED:
            every |= {(rank, done): path for (_, done), path in every.items() for rank in seats}
        for done in sorted({done for _, done in every}, reverse=True):
            if all((rank, done) in every for rank in seats):
                return done, {rank: every[rank, done] for rank in seats}
        return None

    def unloaded(self, worker: Worker, why: str) -> None:
        """A state could not be had where it was said to be: look for it anew."""
        self.means.say(f"{worker.name} could not load its state: {why}")
        rank = next((rank for rank, name in self.group.crew.items() if name == worker.name), -1)
        if rank in self.group.files:
            self.spoilt.add(self.group.files[rank])
        self.fruitless += 1
        if self.fruitless > self.run_as.restarts:
            self.give_up(f"{worker.name} could not load its state: {why}", End.STATE_LOST)
        else:
            self.hold()

    def _held(self, worker: Worker, seats: Mapping[int, str]) -> Held | None:
        """What a worker has; before the first group what its checkpoint gave it, as if it had had its rank before."""
        if any(each.generation for each in self.roster):
            return worker.held
        rank = next((rank for rank, name in seats.items() if name == worker.name), None)
        return Held(worker.name, rank, worker.done)

    def _load(self, seats: dict[int, str], go_on: GoOn, files: Mapping[int, str] = MappingProxyType({})) -> None:
        self.group.crew, self.group.go_on, self.group.files = seats, go_on, files
        self.group.due = self.means.now() + self.run_as.stall_s if go_on.loads else math.inf
        for load in go_on.loads:
            worker = self.roster[load.worker]
            worker.loaded, worker.loading = False, (load.rank, go_on.done)
            source = self.roster[load.source].state if load.source else None
            self.tell(
                worker,
                {
                    "do": "load",
                    "done": go_on.done,
                    "of": load.rank,
                    "source": list(source) if source else None,
                    "file": files.get(load.rank),
                    "world": len(seats),
                },
            )

    def _join(self, go_on: GoOn) -> None:
        group = self.group
        crew = [self.roster[name] for _, name in sorted(group.crew.items())]
        group.told, group.generation = True, max(group.generation, 1)
        group.due = self.means.now() + PAUSED_WITHIN_S
        for rank, worker in enumerate(crew):
            worker.busy = True
            message: dict[str, Any] = {
                "do": "join",
                "generation": group.generation,
                "rank": rank,
                "world": len(crew),
                "store": list(crew[0].store or ()),
                "done": go_on.done,
                "placement": [each.accelerator for each in crew],
                "lanes": self.means.lanes,
            }
            self.tell(worker, message)

    def joined(self, worker: Worker, at: float) -> None:
        """A worker is in the group; with the last one the job runs."""
        if self.phase not in {Phase.STARTING, Phase.RECOVERING} or not self.group.told:
            return
        self.group.joined.add(worker.name)
        if self.group.joined == set(self.group.crew.values()):
            self.formed(at)

    def formed(self, at: float) -> None:
        """All are in the group: the job runs."""
        if self.trouble is not None:
            self.trouble.story.mark("joined", at)
        self.phase, self.group.due = Phase.RUNNING, self.means.now() + self.run_as.stall_s
        self.answer_light({"state": "running"})
        self.means.say(f"{len(self.group.crew)} ranks {self._from_where()} (group {self.group.generation})")
        for former in self.roster:
            if former.alive and former.rank is not None and not self.is_member(former):
                former.ended = True  # another has its rank
                self.means.ask(former.host, {"ask": "kill", "worker": former.name})

    def _from_where(self) -> str:
        """After how many steps the group goes on: ranks may have found a checkpoint that only they know of."""
        joined = (self.roster[name] for name in self.group.joined)
        found = [worker.joined_after for worker in joined if worker.generation == self.group.generation]
        done = max([self.group.go_on.done if self.group.go_on is not None else 0, *found])
        return f"go on after {done} step{'' if done == 1 else 's'}" if done else "begin"

    def adopt(self) -> bool:
        """Take over a job that runs already; whether one does."""
        members = [worker for worker in self.roster if worker.alive and worker.rank is not None and not worker.ended]
        if not members:
            return self._adopt_finishing()
        newest = max(worker.generation for worker in members)
        crew = {worker.rank: worker for worker in members if worker.generation == newest and worker.rank is not None}
        self.most_done = done = max(worker.done for worker in members)
        names = {rank: worker.name for rank, worker in sorted(crew.items())}
        self.group = Group(newest, names, GoOn(done, ()), told=True, joined=set(names.values()))
        self.group.due = self.means.now() + self.run_as.stall_s
        for worker in crew.values():
            worker.busy = True
        places = [crew[rank].accelerator if rank in crew else None for rank in range(len(self.placement))]
        lost = [name for name, place in zip(self.placement, places, strict=True) if name != place]
        if not lost and not any(worker.parted for worker in crew.values()):
            self.phase = Phase.RUNNING
            self.means.say(f"the job runs already: {len(crew)} ranks are taken over (group {newest})")
            self.answer_light({"state": "running"})
            return True
        self.group.generation = max(worker.newest for worker in self.roster)  # some may hold for a later one already
        self.phase = Phase.RECOVERING
        if lost:
            self.fail(lost, f"{', '.join(lost)}: no process of the rank lives", self.means.now())
        else:
            self.means.say(f"the job is taken over: its {len(crew)} ranks hold (group {newest})")
            self.hold()
        for worker in self.roster:  # who was told to join by another before us may be about to
            if not self.is_member(worker):
                self.hold_also(worker)
        return True

    def _adopt_finishing(self) -> bool:
        """Take over a job whose ranks run the rest of their script; whether there is one."""
        had = [worker for worker in self.roster if worker.rank is not None and worker.ended and not worker.cut_short]
        if not any(worker.alive for worker in had):
            return False
        newest = max(worker.generation for worker in had)
        crew = {worker.rank: worker for worker in had if worker.generation == newest and worker.rank is not None}
        self.group = Group(newest, {rank: worker.name for rank, worker in sorted(crew.items())}, told=True)
        self.finish()
        return True
