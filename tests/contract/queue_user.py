"""A process that queues, serves, cancels and returns at random, beside others on the same store.

    python queue_user.py PLACE FOLDER SEED ARRIVALS

It ends with 0 after so many arrivals of its own. Whenever it has the lease, it checks that no accelerator runs two
ranks, and that a waiting demand has no spare yet.
"""

import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from lumctl.errors import RefusedError
from lumctl.spares.decision import decide
from lumctl.spares.policies import POLICIES
from lumctl.spares.sharing import Demand, FreeSpare, SharingQuestion
from lumctl.store import CANCELLED, LeaseHeldError, Record, Store, store_at

RACK = "r1"
SPARES = {
    **{f"c{n}": FreeSpare(f"c{n}", "common", 1) for n in range(8)},
    **{f"r{n}": FreeSpare(f"r{n}", "rare", 2) for n in range(4)},
}
JOBS = {f"{kind}{n}": tuple(f"{kind}{n}-{rank}" for rank in range(8)) for kind in ("common", "rare") for n in range(2)}
"""Two jobs of each class: those that need rare spares are named so."""
ABOUT = {"kind": "swap", "title": "t", "target": "sim", "plan_digest": "d", "inventory_digest": "i", "who": "user"}


class User:
    """One of several processes that share a store."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.rng = store, Random(seed)  # noqa: S311 - a seed repeats its acts
        self.done = Counter[str]()

    def arrive(self) -> None:
        job = self.rng.choice(sorted(JOBS))
        at_home = [name for name in self.placed().get(job, ()) if name in JOBS[job]]
        failed = self.rng.sample(at_home, min(len(at_home), self.rng.randint(1, 4)))
        if failed:
            known = {each.id for each in self.store.demands.all()}
            try:
                (asked,) = self.store.demands.ask(RACK, {job: tuple(failed)}, why="", who="user", at=time.time())
            except RefusedError:  # another demand waits for one of them
                self.done["shared"] += 1
            else:  # a demand for these accelerators, or more, may wait already
                self.done["shared" if asked.id in known else "arrived"] += 1

    def cancel(self) -> None:
        if waiting := self.store.demands.waiting():
            try:
                self.store.demands.end(self.rng.choice(waiting).id, CANCELLED, why="", who="user", at=time.time())
            except RefusedError:  # another process served it meanwhile
                self.done["too late"] += 1
            else:
                self.done["cancelled"] += 1

    def serve(self) -> None:
        waiting, placed = self.store.demands.waiting(), self.placed()
        used = {name for ranks in placed.values() for name in ranks}
        free = {name: spare for name, spare in SPARES.items() if name not in used}
        demands = []
        for each in waiting:
            classes = ("rare",) if each.job.startswith("rare") else ("common", "rare")
            usable = tuple(name for name, spare in free.items() if spare.accelerator_class in classes)
            rows = (usable,) * len(each.accelerators)
            demands.append(Demand(each.id, each.job, each.asked_at, rows, (frozenset(classes),) * len(rows)))
        name = self.rng.choice(sorted(POLICIES))
        given = decide(name, SharingQuestion(time.time(), tuple(demands), free, seed=self.rng.randrange(99))).given
        for each in waiting:
            if each.id in given:
                new = dict(zip(each.accelerators, given[each.id], strict=True))
                self.run(each.job, tuple(new.get(name, name) for name in placed[each.job]))
                self.done["served"] += 1
                return

    def give_back(self) -> None:
        away = [job for job, ranks in self.placed().items() if set(ranks) - set(JOBS[job])]
        if away:
            job = self.rng.choice(sorted(away))
            self.run(job, JOBS[job])
            self.done["returned"] += 1

    def run(self, job: str, ranks: tuple[str, ...]) -> None:
        """Record a run that places a job, as an engine does."""
        now = time.time()
        run = self.store.runs.begin(self.held, ABOUT, {"digest": "d"}, now=now)
        self.store.runs.advance(self.held, run, [Record(now, "outcome", "8", {"done": True})], placed={job: ranks})
        self.store.runs.end(self.held, run, Record(now, "end", "", {"state": "done"}), "done")

    def placed(self) -> dict[str, tuple[str, ...]]:
        return self.store.fabric.assignment()

    def with_lease(self, act: str) -> None:
        """Do what needs the lease, once it is free, and check the rack before and after."""
        while True:
            try:
                self.held = self.store.leases.acquire(RACK, "user", term_s=60.0, now=time.time())
                break
            except LeaseHeldError:
                time.sleep(self.rng.uniform(0.001, 0.01))
        try:
            self.check()
            getattr(self, act)()
            self.check()
        finally:
            self.store.leases.release(self.held)

    def check(self) -> None:
        placed = self.placed()
        used = Counter(name for ranks in placed.values() for name in ranks)
        assert max(used.values()) == 1, used
        for each in self.store.demands.waiting():
            assert set(each.accelerators) <= set(placed[each.job]), each

    def go(self, arrivals: int) -> None:
        while self.done["arrived"] < arrivals:
            act = self.rng.choice(("arrive", "arrive", "serve", "serve", "give_back", "cancel"))
            if act == "cancel":
                self.cancel()
            else:  # also to arrive: a job must not move between the choice of its accelerators and the demand
                self.with_lease(act)


def main() -> None:
    place, folder, seed, arrivals = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    store = store_at(place, files=folder, rack=RACK)
    user = User(store, seed)
    user.go(arrivals)
    store.close()
    print(dict(user.done))  # noqa: T201


if __name__ == "__main__":
    main()
