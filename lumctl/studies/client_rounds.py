"""Jobs that train in rounds on the clients of one pool: an event loop that asks a sharing policy of the rack.

The behaviour of jobs and clients is that of the authors' repository of Propius (arXiv 2510.19617). A round binds
clients until it has 1.2 times as many as it needs, and ends with as many results as it needs; both have a time limit,
after which the round begins again. A bound client works at once. One that no job took within some seconds goes away for
a while. Clients are bound one by one, so to the policy each is a demand of one spare. Where each client has only one
job that may get it, there is nothing to decide, and no policy is asked: the oldest of its jobs gets it.
"""

import heapq
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from random import Random
from statistics import fmean

from lumctl.spares.sharing import Demand, FreeSpare, InvalidAnswer, SharingPolicy, SharingQuestion, check_answer
from lumctl.studies.client_pool import ClientChoice, PoolClient, RoundJob, partitioned

WINDOW_S = 3.0
"""How often waiting clients are offered to the policy."""
BATCH = 16
"""The most clients of a question; more than these are several questions, one after the other."""
WORKING_LIMIT_S = 500.0
PATIENCE_S, AWAY_S = 10.0, 20.0
LIMIT_S_PER_ROUND = 1000.0
"""After the last submission a run goes on for this time for each round of the longest job, finished or not."""
_PARTITIONS = frozenset({ClientChoice.PARTITION, ClientChoice.QUOTA, ClientChoice.SHARE})


@dataclass(frozen=True, slots=True)
class RoundsSetting:
    """How jobs get clients.

    ``policy`` decides which waiting client goes to which job that may get it. ``seed`` is of the jobs' order, of a
    partition or of chance, and of the policy. A round that has not bound its clients after ``binding_limit_s`` seconds
    begins again. With ``queue`` the policy is told of all clients that a job waits for, not only of as many as it could
    get now. That is slow, and only a policy that compares queues needs it. With ``parts``, one for each tier of the
    jobs, a partition divides the clients among these instead of the jobs.
    """

    policy: SharingPolicy
    rounds: int
    seed: int
    choice: ClientChoice = ClientChoice.SHARED
    binding_limit_s: float = 100.0
    queue: bool = False
    parts: Sequence[RoundJob] = ()


@dataclass(frozen=True, slots=True)
class RoundsResult:
    """How a run ended. ``completed_s`` has the time at which each job ended, if it did; times are in seconds.

    ``submitted_s`` has when each job was submitted, ``worked_s`` for how long each client worked, ``bound`` how often
    clients were bound before each job ended.
    """

    ended_s: float
    submitted_s: tuple[float, ...]
    completed_s: tuple[float | None, ...]
    worked_s: tuple[float, ...]
    bound: int
    first_ended_s: float
    first_bound: int
    failed_rounds: int

    @property
    def mean_completion_s(self) -> float:
        """The mean time from its submission to the end of a job, or of the run if it did not end."""
        ended = [self.ended_s if each is None else each for each in self.completed_s]
        return fmean(ended) - fmean(self.submitted_s)

    @property
    def utilisation(self) -> float:
        """The share of time for which the clients worked, over all clients."""
        return fmean(self.worked_s) / self.ended_s

    @property
    def utilisation_of_used(self) -> float:
        """The same over the clients that have worked at all."""
        return fmean([each for each in self.worked_s if each] or [0.0]) / self.ended_s


@dataclass(slots=True, eq=False)
class _OpenRound:
    """A job and its present round, which still binds ``open`` clients; before it is submitted none.

    ``attempt`` counts its rounds, failed ones too: a late result is of an earlier.
    """

    job: RoundJob
    name: str
    demand_names: tuple[str, ...]
    asked_at: float
    lanes: frozenset[str]
    rounds_left: int
    began_s: float = 0.0
    attempt: int = 0
    open: int = 0
    results: int = 0
    attained_s: float = 0.0
    completed_s: float | None = None
    waiting: dict[int, Demand] = field(default_factory=dict)

    @property
    def remaining(self) -> float:
        """How many times it will still bind a client."""
        return (self.rounds_left - 1) * self.job.binds + self.open

    def again(self, at: float) -> None:
        """Begin a round."""
        self.attempt, self.results, self.began_s = self.attempt + 1, 0, at
        self.open = self.job.binds if self.rounds_left else 0

    def demands(self, usable: tuple[str, ...], *, queue: bool) -> list[Demand]:
        """A demand for each of the clients that it could get now, and with ``queue`` one for all that it waits for."""
        names = self.demand_names[: min(self.open, len(usable))]
        row, able, left = (usable,), (self.lanes,), self.remaining
        # In the order of the fields: names of arguments would cost a tenth of the time of the study.
        found = [Demand(name, self.name, self.asked_at, row, able, 1.0, left, self.attained_s) for name in names]
        if queue and (rest := self.open - len(names)):
            if rest not in self.waiting:
                self.waiting[rest] = Demand(f"{self.name}:rest", self.name, self.asked_at, ((),) * rest, able * rest)
            found.append(self.waiting[rest])
        return found


class _Rounds:
    """One run. A lane holds clients that the same jobs may get: those of one tier, or those of one job."""

    def __init__(self, jobs: Sequence[RoundJob], clients: Sequence[PoolClient], setting: RoundsSetting) -> None:
        self._all_jobs, self._clients, self._setting = jobs, clients, setting
        self._by_chance = setting.choice is ClientChoice.CHANCE
        self._rng = Random(setting.seed)  # noqa: S311 - a seed repeats a run
        self._parts = setting.parts or jobs
        self._all = self._shuffled()
        self._coming, self._jobs = deque(self._all), list[_OpenRound]()
        self._job_of = {name: each for each in self._all for name in each.demand_names}
        self._lane = self._first_lanes()
        able = Counter(lane for each in self._all for lane in each.lanes)
        self._idle: dict[str, deque[tuple[float, int]]] = {lane: deque() for lane in sorted(able)}
        # The clients as the policy sees them.
        self._spares = [FreeSpare(str(number), lane or "", able[lane or ""]) for number, lane in enumerate(self._lane)]
        # When a client is back, its number, and the job and the attempt that it worked for.
        self._back: list[tuple[float, int, _OpenRound | None, int]] = [
            (0.0, number, None, 0) for number, lane in enumerate(self._lane) if lane is not None
        ]
        self._worked_s = [0.0] * len(clients)
        self._asked, self._bound, self._failed = 0, 0, 0
        self._first: tuple[float, int] | None = None

    def _shuffled(self) -> list[_OpenRound]:
        """The jobs in the order in which they ask: by submission, and in a random one if that is at one time."""
        order = self._rng.sample(range(len(self._all_jobs)), len(self._all_jobs))
        order.sort(key=lambda number: self._all_jobs[number].submit_s)
        shared = self._setting.choice is ClientChoice.SHARED
        tiers = range(1, max([job.tier for job in self._all_jobs] + [each.tier for each in self._clients]) + 1)
        parts = {part.tier: at for at, part in enumerate(self._setting.parts)}
        found = []
        for place, number in enumerate(order):
            job = self._all_jobs[number]
            own = parts.get(job.tier, number)
            lanes = [f"tier-{tier}" for tier in tiers if tier >= job.tier] if shared else [f"part-{own}"]
            name = f"job-{number}"
            demands = tuple(f"{name}:{client}" for client in range(BATCH))
            rounds = self._setting.rounds if job.rounds is None else job.rounds
            found.append(_OpenRound(job, name, demands, float(place), frozenset(lanes), rounds))
        return found

    def _first_lanes(self) -> list[str | None]:
        match self._setting.choice:
            case ClientChoice.SHARED:
                least = min(job.tier for job in self._all_jobs)
                return [f"tier-{each.tier}" if each.tier >= least else None for each in self._clients]
            case ClientChoice.CHANCE:
                return ["" for _ in self._clients]  # drawn when a client asks
            case choice:
                owners = partitioned(self._parts, self._clients, choice, self._rng)
                return [None if owner is None else f"part-{owner}" for owner in owners]

    def run(self) -> RoundsResult:
        """The run, to its end or to the limit."""
        at, limit_s = 0.0, max(each.rounds_left for each in self._all) * LIMIT_S_PER_ROUND
        limit_s += self._all[-1].job.submit_s
        while (self._jobs or self._coming) and at < limit_s:
            self._submit(at)
            self._return(at)
            self._give_up(at)
            self._offer(at)
            at += WINDOW_S
        completed = {each.name: each.completed_s for each in self._all}
        ended_s = max(at if each is None else each for each in completed.values())
        first_s, first_bound = self._first or (ended_s, self._bound)
        return RoundsResult(
            ended_s=ended_s,
            submitted_s=tuple(job.submit_s for job in self._all_jobs),
            completed_s=tuple(completed[f"job-{number}"] for number in range(len(self._all))),
            worked_s=tuple(self._worked_s),
            bound=self._bound,
            first_ended_s=first_s,
            first_bound=first_bound,
            failed_rounds=self._failed,
        )

    def _submit(self, at: float) -> None:
        while self._coming and self._coming[0].job.submit_s <= at:
            self._jobs.append(self._coming.popleft())
            self._jobs[-1].again(self._jobs[-1].job.submit_s)

    def _return(self, at: float) -> None:
        """Clients that have ended their work, or were away, wait for a job again."""
        back = self._back
        while back and back[0][0] <= at:
            then, number, worked_for, attempt = heapq.heappop(back)
            if not self._by_chance or self._draws_job(then, number):
                self._idle[self._lane[number] or ""].append((then, number))
            if worked_for is not None and worked_for.attempt == attempt:
                worked_for.results += 1
                if worked_for.results >= worked_for.job.needs and not worked_for.open:
                    self._end_round(worked_for, then)

    def _draws_job(self, at: float, number: int) -> bool:
        """Whether the job that a client draws can use it; otherwise it goes away."""
        drawn = self._rng.randrange(len(self._parts))
        if self._parts[drawn].tier > self._clients[number].tier:
            heapq.heappush(self._back, (at + AWAY_S, number, None, 0))
            return False
        self._lane[number] = f"part-{drawn}"
        return True

    def _end_round(self, each: _OpenRound, at: float) -> None:
        each.rounds_left -= 1
        each.again(at)
        if not each.rounds_left:
            each.completed_s = at
            self._jobs.remove(each)
            self._first = self._first or (at, self._bound)

    def _give_up(self, at: float) -> None:
        """Rounds that take too long begin again; clients that no job took for too long go away."""
        for each in self._jobs:
            limit_s = self._setting.binding_limit_s + (0.0 if each.open else WORKING_LIMIT_S)
            if at - each.began_s > limit_s:
                each.again(at)
                self._failed += 1
        if self._setting.choice in _PARTITIONS:
            return
        # One that asks by chance asks another job at once.
        patience_s, away_s = (PATIENCE_S, AWAY_S) if self._setting.choice is ClientChoice.SHARED else (WINDOW_S, 0.0)
        for idle in self._idle.values():
            while idle and at - idle[0][0] > patience_s:
                heapq.heappush(self._back, (at + away_s, idle.popleft()[1], None, 0))

    def _offer(self, at: float) -> None:
        """Give waiting clients to jobs that still bind some."""
        if self._setting.choice is ClientChoice.SHARED:
            self._share(at)
            return
        # A client has one job that may get it, or one part: there is nothing that a policy could decide.
        for each in self._jobs:
            for idle in map(self._idle.__getitem__, each.lanes):
                while idle and each.open:
                    self._bind(at, idle.popleft()[1], each)

    def _share(self, at: float) -> None:
        """Ask the policy which job gets which of the waiting clients."""
        while batch := self._batch():
            given = self._answer(at, [number for _, number in batch])
            for since, number in reversed(batch):
                if number not in given:
                    self._idle[self._lane[number] or ""].appendleft((since, number))
            if not given:
                return
            for number, each in given.items():
                self._bind(at, number, each)

    def _batch(self) -> list[tuple[float, int]]:
        """The next clients that a job could use, those first that have waited longest, with since when."""
        wanted = {lane for each in self._jobs if each.open for lane in each.lanes}
        first = [islice(idle, BATCH) for lane, idle in self._idle.items() if lane in wanted]
        found = sorted(chain.from_iterable(first))[:BATCH]
        for _, number in found:
            self._idle[self._lane[number] or ""].popleft()  # it is the first of its lane, which is in order
        return found

    def _answer(self, at: float, batch: Sequence[int]) -> dict[int, _OpenRound]:
        """The job of each client that gets one.

        Raises:
            ValueError: the policy's answer cannot be followed.
        """
        offered = [self._spares[number] for number in batch]
        usable = {
            lanes: tuple([spare.id for spare in offered if spare.accelerator_class in lanes])
            for lanes in {each.lanes for each in self._jobs if each.open}
        }
        demands: list[Demand] = []
        for each in self._jobs:
            if each.open:
                demands += each.demands(usable[each.lanes], queue=self._setting.queue)
        self._asked += 1
        asked = SharingQuestion(
            at,
            tuple(demands),
            {spare.id: spare for spare in offered},
            seed=self._setting.seed * 1_000_003 + self._asked,
        )
        answer = check_answer(asked, self._setting.policy(asked))
        if isinstance(answer, InvalidAnswer):
            raise ValueError(answer.text)  # noqa: TRY004 - not a type: an answer that cannot be followed
        return {int(spare): self._job_of[name] for name, (spare,) in answer.items()}

    def _bind(self, at: float, number: int, each: _OpenRound) -> None:
        client = self._clients[number]
        taken_s = client.work_s + client.other_s
        each.open -= 1
        each.attained_s += taken_s
        self._bound += 1
        self._worked_s[number] += client.work_s
        heapq.heappush(self._back, (at + taken_s, number, each, each.attempt))


def run_rounds(jobs: Sequence[RoundJob], clients: Sequence[PoolClient], setting: RoundsSetting) -> RoundsResult:
    """Run jobs, all of which begin at once in an order that the seed shuffles.

    Earlier clients are first at the beginning, and whenever two come at the same time.

    Raises:
        ValueError: the policy's answer cannot be followed.
    """
    return _Rounds(jobs, clients, setting).run()
