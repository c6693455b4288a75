"""Runs a program of threads that send, receive and signal, and checks that it is an all-reduce. Nothing is moved.

This is our own reading of MSCCL and MSCCL++, on no GPU. Time goes in rounds: in each, a rank starts one transfer at
most as its sender and one as its receiver. Local work and signals take no time. What a transfer brings can be used in
the next round, and a connection holds one message that was not received yet.

Every order of threads that the hardware may choose must give the same result. So each access to a chunk must be ordered
after the accesses that it depends on, by the order of a thread, a message, a signal or an explicit dependency. Each
action knows the set of actions before it, as a bit mask.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from lumctl.collectives.verification import ScheduleFault, missing, twice
from lumctl.errors import UsageError

MOST_ACTIONS = 40_000


class Cell(NamedTuple):
    """The chunk ``number`` of a buffer of a rank."""

    rank: int
    buffer: str
    number: int


class Kind(Enum):
    """What an action does."""

    LOCAL = auto()
    SEND = auto()
    RECEIVE = auto()
    PUT = auto()
    SIGNAL = auto()
    WAIT = auto()


Key = tuple[int, ...]
"""A connection or a semaphore: sender, receiver and number."""


@dataclass(slots=True)
class Action:
    """One action of a thread.

    The operands, lists of equally many cells, are added up, and the sum is written, sent, or both. ``RECEIVE`` adds
    what has come, and without ``writes`` the sum is left for a ``SEND`` without operands. ``after`` names an action,
    by thread and position, that must be done before.
    """

    kind: Kind
    place: str
    operands: tuple[tuple[Cell, ...], ...] = ()
    writes: tuple[Cell, ...] = ()
    key: Key = ()
    after: tuple[int, int] | None = None


@dataclass(slots=True)
class Thread:
    """The actions of one thread of a rank, in order."""

    rank: int
    actions: list[Action] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Program:
    """An all-reduce as threads. ``result`` is the buffer of the result, ``inputs`` those with the rank's own chunks."""

    name: str
    ranks: int
    chunks: int
    threads: Sequence[Thread]
    inputs: str
    result: str


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A run of a program: its first fault, and the most chunks of a transfer in each round before and after arrival."""

    fault: ScheduleFault | None
    before: tuple[int, ...]
    after: tuple[int, ...]


class _FaultFoundError(Exception):
    def __init__(self, fault: ScheduleFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def run_program(program: Program, straggler: int | None = None) -> ProgramRun:
    """Run a program whose straggler, if there is one, arrives when no other rank can go on.

    Raises:
        UsageError: the program has more than :data:`MOST_ACTIONS` actions.
    """
    count = sum(len(thread.actions) for thread in program.threads)
    if count > MOST_ACTIONS:
        raise UsageError(f"a program of {count} actions is not checked", hint=f"{MOST_ACTIONS} at most")
    return _Machine(program, straggler).run()


Message = tuple[list[int], int]
"""The masks of the chunks, and what is known to have happened before."""


class _Machine:
    def __init__(self, program: Program, held: int | None) -> None:
        self.program = program
        self.held = held
        self.at = [0] * len(program.threads)
        self.known = [0] * len(program.threads)
        self.left: list[list[int]] = [[] for _ in program.threads]
        self.masks: dict[Cell, int] = {}
        for rank in range(program.ranks):
            for chunk in range(program.chunks):
                self.masks |= {Cell(rank, buffer, chunk): 1 << rank for buffer in program.inputs}
        self.written: dict[Cell, int] = {}
        self.readers: dict[Cell, int] = {}
        self.messages: defaultdict[Key, deque[Message]] = defaultdict(deque)
        self.awaited = {action.after for thread in program.threads for action in thread.actions if action.after}
        self.done: dict[tuple[int, int], int] = {}
        self.actions = 0
        self.rounds: list[int] = []

    def run(self) -> ProgramRun:
        arrival = 0
        fault = None
        try:
            while True:
                self._local_work()
                largest = self._transfers()
                if largest:
                    self.rounds.append(largest)
                elif self.held is not None:
                    arrival, self.held = len(self.rounds), None
                else:
                    break
            self._require_result()
        except _FaultFoundError as error:
            fault = error.fault
        return ProgramRun(fault, tuple(self.rounds[:arrival]), tuple(self.rounds[arrival:]))

    def _head(self, number: int) -> Action | None:
        """The next action of a thread; ``None`` if it has ended, or may not go on."""
        thread = self.program.threads[number]
        if thread.rank == self.held or self.at[number] == len(thread.actions):
            return None
        action = thread.actions[self.at[number]]
        return action if action.after is None or action.after in self.done else None

    def _local_work(self) -> None:
        """Let all threads go on as far as they can without a transfer."""
        waiting = list(range(len(self.at)))
        progress = True
        while progress:
            progress = False
            for number in waiting:
                while (action := self._head(number)) and self._is_ready(action):
                    self._act(number, action)
                    progress = True

    def _is_ready(self, action: Action) -> bool:
        if action.kind in {Kind.RECEIVE, Kind.WAIT}:
            return bool(self.messages[action.key])
        return action.kind in {Kind.LOCAL, Kind.SIGNAL}

    def _transfers(self) -> int:
        """Start the transfers of a round, and return the most chunks of one; 0 if there is none."""
        heads = [(number, action) for number in range(len(self.at)) if (action := self._head(number)) is not None]
        receiving = {action.key for _, action in heads if action.kind is Kind.RECEIVE}
        ready = [(number, action) for number, action in heads if action.kind in {Kind.SEND, Kind.PUT}]
        # A receiver serves those first for whom it waits; the others would come early.
        ready.sort(key=lambda each: each[1].kind is Kind.SEND and each[1].key not in receiving)
        senders: set[int] = set()
        receivers: set[int] = set()
        largest = 0
        for number, action in ready:
            sender, receiver = self._ends(action)
            full = action.kind is Kind.SEND and self.messages[action.key]
            if full or sender in senders or receiver in receivers or self.held in {sender, receiver}:
                continue
            senders.add(sender)
            receivers.add(receiver)
            largest = max(largest, self._act(number, action))
        return largest

    @staticmethod
    def _ends(action: Action) -> tuple[int, int]:
        if action.kind is Kind.SEND:
            return action.key[0], action.key[1]
        return action.operands[0][0].rank, action.writes[0].rank

    def _act(self, number: int, action: Action) -> int:
        """Do an action, and return how many chunks it has."""
        own = 1 << self.actions
        self.actions += 1
        self.known[number] |= own | (self.done[action.after] if action.after else 0)
        values: list[list[int]] = []
        if action.kind in {Kind.RECEIVE, Kind.WAIT}:
            arrived, known = self.messages[action.key].popleft()
            self.known[number] |= known
            values += [arrived] if action.kind is Kind.RECEIVE else []
        elif action.kind is Kind.SEND and not action.operands:
            values.append(self.left[number])
        values += [[self._read(number, action, cell, own) for cell in each] for each in action.operands]
        value = self._sum(number, action, values)
        for cell, mask in zip(action.writes, value, strict=False):  # without writes there is nothing to do
            self._write(number, action, cell, mask, own)
        if action.kind is Kind.RECEIVE:
            self.left[number] = value
        elif action.kind in {Kind.SEND, Kind.SIGNAL}:
            self.messages[action.key].append((value, self.known[number]))
        position = number, self.at[number]
        if position in self.awaited:
            self.done[position] = self.known[number]
        self.at[number] += 1
        return len(value)

    def _sum(self, number: int, action: Action, values: list[list[int]]) -> list[int]:
        cells = self._cells(action)
        rank = cells[0].rank if cells else self.program.threads[number].rank
        if len({len(each) for each in (*values, *([action.writes] if action.writes else []))}) > 1:
            raise self._fault("what it receives has another number of chunks", action, rank, None)
        total: list[int] = []
        for parts in zip(*values, strict=True):
            mask = 0
            for part in parts:
                if mask & part:
                    chunk = cells[len(total)].number if len(total) < len(cells) else None
                    raise self._fault(twice(mask & part), action, rank, chunk)
                mask |= part
            total.append(mask)
        return total

    def _read(self, number: int, action: Action, cell: Cell, own: int) -> int:
        mask = self.masks.get(cell, 0)
        if not mask:
            raise self._fault("uses what it does not hold yet", action, cell.rank, cell.number)
        if self.written.get(cell, 0) & ~self.known[number]:
            raise self._fault("uses what another thread may still change", action, cell.rank, cell.number)
        self.readers[cell] = self.readers.get(cell, 0) | own
        return mask

    def _write(self, number: int, action: Action, cell: Cell, mask: int, own: int) -> None:
        if (self.written.get(cell, 0) | self.readers.get(cell, 0)) & ~self.known[number]:
            raise self._fault("changes what another thread may still use", action, cell.rank, cell.number)
        self.masks[cell] = mask
        self.written[cell] = own
        self.readers[cell] = 0

    @staticmethod
    def _cells(action: Action) -> tuple[Cell, ...]:
        """The cells that messages about an action name."""
        return action.writes or next(iter(action.operands), ())

    def _fault(self, message: str, action: Action, rank: int, chunk: int | None) -> _FaultFoundError:
        return _FaultFoundError(ScheduleFault(message, len(self.rounds), rank, chunk, action.place))

    def _require_result(self) -> None:
        """Refuse threads that wait forever, messages that nobody receives, and chunks that are not complete."""
        last = max(len(self.rounds) - 1, 0)
        for number, thread in enumerate(self.program.threads):
            if self.at[number] < len(thread.actions):
                action = thread.actions[self.at[number]]
                cells = self._cells(action)
                raise self._fault("waits forever: deadlock", action, thread.rank, cells[0].number if cells else None)
        for key, queue in self.messages.items():
            if any(value for value, _ in queue):
                message = f"sends rank {key[1]} a message that it never receives"
                raise _FaultFoundError(ScheduleFault(message, last, key[0]))
        everything = (1 << self.program.ranks) - 1
        for rank in range(self.program.ranks):
            for chunk in range(self.program.chunks):
                mask = self.masks.get(Cell(rank, self.program.result, chunk), 0)
                if mask != everything:
                    raise _FaultFoundError(ScheduleFault(missing(everything & ~mask), last, rank, chunk))
