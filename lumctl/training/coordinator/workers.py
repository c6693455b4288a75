"""The workers of a job as their agents report them, and the step that a job can resume from. No I/O, no decisions."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lumctl.training.protocol import LONGEST_SHOWN, REPLICATED, SCHEDULED_FOR, WANTS, printable_line


@dataclass(frozen=True, slots=True)
class HeldState:
    """The states of a parked worker: the current one after ``done`` steps, earlier ones, and states of other ranks.

    ``rank`` is the rank that the worker had; ``None`` for a standby worker.
    """

    worker: str
    rank: int | None
    done: int
    own: frozenset[int] = frozenset()
    of: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def has(self, rank: int, done: int) -> bool:
        """Whether it has the state of a rank after ``done`` steps."""
        if rank == self.rank and (done == self.done or done in self.own):
            return True
        return done in self.of.get(rank, ())

    def ranks_at(self, done: int) -> set[int]:
        """The ranks whose states after ``done`` steps it has."""
        return {rank for rank in {*self.of, *(() if self.rank is None else (self.rank,))} if self.has(rank, done)}


@dataclass(frozen=True, slots=True)
class StateLoad:
    """A state to load: the worker that loads it, its rank, and the worker to load from; ``None``: from own copies."""

    worker: str
    rank: int
    source: str | None


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The number of steps that count as done, and the states to load before the next one.

    The source of a load has the state, or is the worker of an earlier load.
    """

    done: int
    loads: tuple[StateLoad, ...]


SENDS = 2
"""How often a worker sends a state at most."""


def choose(
    layout: str, held: Sequence[HeldState], seats: Mapping[int, str], most: int | None = None
) -> ResumePoint | None:
    """The newest step that all ranks can resume from; ``None`` if no step is complete in memory.

    ``held`` covers all living workers, also those that will have no rank; ``seats`` is the worker of each rank. Later
    steps than ``most`` are not chosen.
    """
    limit = math.inf if most is None else most
    members = [one for one in held if one.rank is not None and (layout != REPLICATED or one.done <= limit)]
    if layout == REPLICATED:
        return _replicated(members, seats)
    for done in sorted({d for one in held for d in _kept(one) if d <= limit}, reverse=True):
        loads = _unique(done, held, seats)
        if loads is not None:
            return ResumePoint(done, loads)
    return None


def _replicated(members: Sequence[HeldState], seats: Mapping[int, str]) -> ResumePoint | None:
    """Resume from the worker that has done most steps: each of its steps contains the gradients of all ranks."""
    if not members:
        return None
    done = max(one.done for one in members)
    holders = dict.fromkeys(one.worker for one in members if one.done == done)
    behind = [(rank, worker) for rank, worker in sorted(seats.items()) if worker not in holders]
    return ResumePoint(done, _spread(behind, list(holders)))


def _spread(behind: Sequence[tuple[int, str]], holders: Sequence[str]) -> tuple[StateLoad, ...]:
    """The loads of one state, in rounds: in each, a worker that has it sends it to one other.

    Few holders suffice: a worker that has loaded is a source in the next round. None sends more than ``SENDS`` times.
    The first sources are spread over all holders, because neighbours share a host.
    """
    left = dict.fromkeys(holders[:: max(1, len(holders) // max(1, len(behind)))], SENDS)
    loads: list[StateLoad] = []
    while len(loads) < len(behind):
        for (rank, worker), source in zip(behind[len(loads) :], list(left), strict=False):
            loads.append(StateLoad(worker, rank, source))
            left[source] -= 1
            if not left[source]:
                del left[source]
            left[worker] = SENDS
    return tuple(loads)


def _unique(done: int, held: Sequence[HeldState], seats: Mapping[int, str]) -> tuple[StateLoad, ...] | None:
    """The loads that bring all ranks to ``done`` steps; ``None`` if the state of a rank is lost."""
    loads = []
    has_own = {(one.worker, one.rank) for one in held if one.done == done}
    holders: dict[int, list[str]] = {}
    sends: Counter[str | None] = Counter()
    for one in held:
        for rank in one.ranks_at(done):
            holders.setdefault(rank, []).append(one.worker)
    for rank, worker in sorted(seats.items()):
        if (worker, rank) in has_own:
            continue
        if (having := holders.get(rank)) is None:
            return None
        source = None if worker in having else min(having, key=sends.__getitem__)
        sends[source] += 1
        loads.append(StateLoad(worker, rank, source))
    return tuple(loads)


def _kept(one: HeldState) -> set[int]:
    return {one.done, *one.own, *(done for of in one.of.values() for done in of)}


Address = tuple[str, int]
LONGEST_TRACEBACK = 40
"""The most lines of a traceback."""
LONGEST_ERROR = 2000
"""The most characters of a script's error, including the hint at its end."""
LONGEST_DEATH_S = 60.0
"""A process stuck while dying, as in a driver, blocks its accelerator for this long at most."""


@dataclass(frozen=True, slots=True)
class ScriptError:
    """An error that ended a script after ``step`` steps. ``at`` is in seconds since the epoch."""

    type: str
    text: str
    step: int
    traceback: tuple[str, ...]
    at: float


_ANSWERS: Mapping[Any, Collection[str]] = {
    "hold": ("held",),
    "load": ("loaded", "unloaded"),
    "join": ("joined", "broken"),
    "stop": ("ended",),
}
"""The messages that answer each order."""
_OUTLIVED: Mapping[str, Collection[str]] = {
    "joined": ("held", "loaded", "unloaded", "broken", WANTS),
    "held": ("loaded", "unloaded", "broken", WANTS),
}
"""Messages that a later message makes obsolete."""
_PRESENCE = frozenset({"alive", "ended", "silent", "dying"})
"""Attributes that decide whether a worker can have a rank, and whether its accelerator is free."""
_INDEXED = _PRESENCE | {"ready", "busy", "leave_by", "rank", "seat"}


@dataclass
class JobWorker:
    """One process. ``generation`` and ``rank`` belong to the newest group that it joined; 0 and ``None`` before.

    The table of its job keeps indexes of the attributes in ``_INDEXED``: each change of one is reported to the table.
    """

    name: str
    accelerator: str
    host: str
    pid: int | None = None
    alive: bool = True
    ready: bool = False
    rank: int | None = None
    seat: int | None = None
    """Its rank in the job's group, formed or being formed; set by :meth:`JobState.seat`."""
    holds: int | None = None
    """The rank whose state it has."""
    loading: tuple[int, int] | None = None
    """The rank whose state it must load, and the steps done in that state."""
    generation: int = 0
    done: int = 0
    loss: float | None = None
    scheduled_for: int | None = None
    """The late rank for whose schedule its group has agreed in its newest step."""
    has_odd_loss: bool = False
    """Whether its newest loss is infinite or not a number."""
    layout: str = REPLICATED
    store: Address | None = None
    state: Address | None = None
    held: HeldState | None = None
    """The states that it has while it is parked."""
    loaded: bool = False
    busy: bool = False
    """Whether it is in a step or joining a group, and has not reported that it is parked."""
    ended: bool = False
    silent: bool = False
    dying: bool = False
    """Whether it counts as dead while its end has not been reported."""
    dies_at: float = 0.0
    begun_at: float = 0.0
    """When it was started or found."""
    met: bool = False
    """Whether its process has connected to its agent."""
    clock: str = ""
    """The clock by which it tells when it was in collectives; workers of one machine share one."""
    joined_after: int = 0
    """The steps done when it joined its newest group."""
    error: str = ""
    script_error: ScriptError | None = None
    exiting: bool = False
    """Whether its script has ended, at its last line or by an error, and its process is about to end."""
    code: int | None = None
    """Its exit code; ``None`` if a signal ended it or the code is unknown."""
    how: str = ""
    """How its process ended, in words."""
    cut_short: bool = False
    """Whether it ended on request before all steps were done."""
    killed: bool = False
    """Whether it was killed because it did not end in time."""
    leave_by: float = math.inf
    """When it is killed if it has not ended."""
    parted: bool = False
    """Whether it has left its newest group."""
    newest: int = 0
    """The newest generation in its messages."""
    away: bool = False
    """Whether it counts as dead because its host cannot be reached."""
    order: Mapping[str, Any] | None = None
    """The last order, until it is answered."""
    saved: dict[tuple[int, int], str] = field(default_factory=dict)
    """The paths of the checkpoints that it wrote, by rank and steps done."""
    table: "JobWorkers | None" = field(default=None, repr=False, compare=False)

    if not TYPE_CHECKING:  # a type checker would allow any attribute

        def __setattr__(self, name: str, value: object) -> None:
            changes = name in _INDEXED and getattr(self, name) != value
            object.__setattr__(self, name, value)
            if changes and self.table is not None:
                self.table.changed(self, name)

    @property
    def usable(self) -> bool:
        """Whether it can be given a rank."""
        return self.alive and self.ready and not (self.ended or self.silent)

    def repeats(self, message: Mapping[str, Any]) -> bool:
        """Whether a message repeats an earlier one; a worker repeats all valid messages to a new agent."""
        match message.get("say"):
            case "joined":
                return int(message["generation"]) == self.generation
            case "held":
                return self.held is not None or int(message["generation"]) <= self.generation
            case "stepped":
                return int(message["done"]) == self.done and message.get("loss") == self.loss
            case "saved":
                return str(message["path"]) in self.saved.values()
            case _:
                return False

    def apply(self, message: Mapping[str, Any]) -> None:
        """Update the worker by a message."""
        self._note(message)
        match message.get("say"):
            case "hello":
                self.pid, self.met = int(message["pid"]), True
            case "ready":
                self.ready, self.done = True, int(message.get("done", 0))
                self.layout = str(message.get("layout", REPLICATED))
                self.store, self.state = _address(message["store"]), _address(message["state"])
            case "joined":
                self._join(message)
                self.held, self.busy = None, True
            case "stepped":
                self.done, self.loss = int(message["done"]), message.get("loss")
                self.scheduled_for = message.get(SCHEDULED_FOR)
            case "held":
                self._reach(int(message["done"]))
                self.held, self.loaded, self.busy = _held(self, message.get("keeps") or {}), False, False
            case "loaded":
                self._reach(int(message["done"]))
                self.loaded = True
            case "saved":
                # At a stop, a worker also writes the checkpoints of lost ranks.
                rank = int(message.get("rank", self.rank or 0))
                self.saved[rank, int(message["done"])] = str(message["path"])
            case "ended" | "failed" | "exiting":
                self._end(message)
            case _:
                pass

    def _end(self, message: Mapping[str, Any]) -> None:
        match message.get("say"):
            case "ended":
                self.ended, self.busy, self.done = True, False, int(message["done"])
                self.cut_short = bool(message.get("cut_short"))
            case "failed":
                self.error = printable_line(str(message.get("error", "its program failed")), LONGEST_ERROR)
                if "type" in message:
                    self.script_error = _script_error(message, self.error)
            case "exiting":
                self.exiting = True
            case _:
                pass

    def apply_outdated(self, message: Mapping[str, Any]) -> None:
        """Update the worker by a message about a former group, as far as that concerns the worker's state."""
        if message.get("say") == "joined" and int(message["generation"]) > self.generation:
            self._join(message)

    def _join(self, message: Mapping[str, Any]) -> None:
        self.generation, self.rank = int(message["generation"]), int(message["rank"])
        self.holds, self.done = self.rank, int(message.get("done", self.done))
        self.joined_after = self.done
        self.clock = str(message.get("clock") or self.host)

    def _note(self, message: Mapping[str, Any]) -> None:
        """Note the group of a message, whether the worker is in that group, and whether the last order is answered."""
        word = message.get("say")
        if word in {"joined", "held", "loaded", "broken"}:
            self.parted = word != "joined"
        self.newest = max(self.newest, int(message.get("generation", 0)))
        if self.order is not None and word in _ANSWERS.get(self.order.get("do"), ()):
            self.order = None

    def _reach(self, done: int) -> None:
        self.done = done
        if self.loading is not None and self.loading[1] == done:
            self.holds, self.loading = self.loading[0], None


def still_holds(last: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The newest message of each kind that is still valid, the newest last; ``saved`` comes after the rank."""
    words = list(last)
    gone = {old for at, word in enumerate(words) for old in words[:at] if old in _OUTLIVED.get(word, ())}
    told = [(word == "saved", message) for word, message in last.items() if word not in gone]
    return [message for of_rank in (False, True) for late, message in told if late is of_rank]


def _address(said: Any) -> Address:
    host, port = said
    return str(host), int(port)


def _script_error(message: Mapping[str, Any], text: str) -> ScriptError:
    told = [str(line)[:LONGEST_SHOWN] for line in message.get("traceback") or ()][-LONGEST_TRACEBACK:]
    lines = tuple("".join(sign for sign in line if sign.isprintable()) for line in told)
    return ScriptError(str(message["type"]), text, int(message["step"]), lines, float(message["at"]))


def _held(worker: JobWorker, keeps: Mapping[str, Any]) -> HeldState:
    of = {int(rank): frozenset(map(int, done)) for rank, done in (keeps.get("of") or {}).items()}
    own = frozenset(map(int, keeps.get("own") or ()))
    return HeldState(worker.name, worker.holds if worker.done >= 0 else None, worker.done, own, of)


Index = dict[str, JobWorker]
"""Workers by name."""


@dataclass
class JobWorkers:
    """All workers of a job, by name, and the indexes of them, so that no event needs a look at every worker."""

    by_name: Index = field(default_factory=dict)
    starting: Index = field(default_factory=dict)
    """Those that are not ready yet."""
    existing: Index = field(default_factory=dict)
    """Those whose processes still exist."""
    dying: Index = field(default_factory=dict)
    leaving: Index = field(default_factory=dict)
    """Those that must end by a certain time."""
    had_rank: Index = field(default_factory=dict)
    """Living workers that were ever in a group."""
    in_step: Index = field(default_factory=dict)
    """Living members of the group that are not parked."""
    training: Index = field(default_factory=dict)
    """Living members of the group that have not done all steps."""
    finished: Index = field(default_factory=dict)
    """Members of the group that have done all steps."""
    presence: int = 0
    """The number of changes of which workers exist and can have a rank."""
    _on: dict[str, list[JobWorker]] = field(default_factory=dict)
    _of_host: dict[str, list[JobWorker]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[JobWorker]:
        return iter(self.by_name.values())

    def __getitem__(self, name: str) -> JobWorker:
        return self.by_name[name]

    def get(self, name: str) -> JobWorker | None:
        """The worker of this name; ``None`` if it is unknown."""
        return self.by_name.get(name)

    def add(self, worker: JobWorker) -> JobWorker:
        """Add a worker."""
        self.by_name[worker.name] = worker
        self._on.setdefault(worker.accelerator, []).append(worker)
        self._of_host.setdefault(worker.host, []).append(worker)
        worker.table = self
        self.changed(worker, "alive")
        return worker

    def remove(self, worker: JobWorker) -> None:
        """Remove a worker that was never started."""
        worker.table = None
        self.presence += 1
        for name in _BELONGS:
            getattr(self, name).pop(worker.name, None)
        del self.by_name[worker.name]
        self._on[worker.accelerator].remove(worker)
        self._of_host[worker.host].remove(worker)

    def changed(self, worker: JobWorker, attribute: str) -> None:
        """Update the indexes after a change of a worker's attribute."""
        self.presence += attribute in _PRESENCE
        for name, belongs in _BELONGS.items():
            index: Index = getattr(self, name)
            if belongs(worker):
                index[worker.name] = worker
            else:
                index.pop(worker.name, None)

    def begun(self, accelerator: str, host: str) -> JobWorker:
        """Add a worker on an accelerator, under a new name."""
        # Ended workers count too: a late message must not be taken for that of another process.
        numbers = [int(w.name.rpartition("#")[2]) for w in self._on.get(accelerator, ())]
        return self.add(JobWorker(f"{accelerator}#{max(numbers, default=0) + 1}", accelerator, host))

    def update(self, host: str, listed: Iterable[Mapping[str, Any]]) -> list[JobWorker]:
        """Update all workers by the list of a host's agent: a worker not on it is dead. Return the new workers."""
        names, new = set(), []
        for each in listed:
            names.add(name := str(each["worker"]))
            worker = self.by_name.get(name)
            if worker is None:
                worker = self.add(JobWorker(name, str(each["accelerator"]), host))
                new.append(worker)
                for message in still_holds(each.get("last") or {}):
                    # A malformed message is reported when it is handled.
                    with suppress(KeyError, TypeError, ValueError):
                        worker.apply(message)
            worker.pid = each.get("pid") or worker.pid
            if not each["alive"] and worker.code is None:
                worker.code = each.get("code")
            # Only from alive to dead: whether a worker that counted as dead returns is decided elsewhere.
            worker.alive = worker.alive and bool(each["alive"])
            worker.dying = worker.dying and bool(each["alive"])
        for worker in self.of_host(host):
            if worker.name not in names:
                worker.alive = worker.dying = False
        return new

    def is_taken(self, accelerator: str, now: float) -> bool:
        """Whether a worker is dying on an accelerator, and may still hold the accelerator's memory."""
        dying = (worker for worker in self._on.get(accelerator, ()) if worker.dying)
        return any(now < worker.dies_at + LONGEST_DEATH_S for worker in dying)

    def on(self, accelerator: str) -> list[JobWorker]:
        """The workers that run on an accelerator, the newest last."""
        return [worker for worker in self._on.get(accelerator, ()) if worker.alive]

    def of_host(self, host: str) -> list[JobWorker]:
        """All workers of a host."""
        return list(self._of_host.get(host, ()))


_BELONGS: Mapping[str, Callable[[JobWorker], bool]] = {
    "starting": lambda worker: worker.alive and not (worker.ready or worker.ended),
    "existing": lambda worker: worker.alive or worker.dying,
    "dying": lambda worker: worker.dying,
    "leaving": lambda worker: (worker.alive or worker.dying) and worker.leave_by < math.inf,
    "had_rank": lambda worker: worker.alive and worker.rank is not None,
    "in_step": lambda worker: worker.alive and worker.busy and worker.seat is not None,
    "training": lambda worker: worker.alive and not worker.ended and worker.seat is not None,
    "finished": lambda worker: worker.ended and worker.seat is not None,
}
"""Which workers are in each index of :class:`JobWorkers`."""
