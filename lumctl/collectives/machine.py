"""Runs a program of threads that send, receive and signal, and checks that it is an all-reduce. Nothing is moved.

This is our own reading of MSCCL and MSCCL++, on no GPU. Time goes in rounds: in each, a rank starts one transfer at
most as its sender and one as its receiver. Local work and signals take no time. What a transfer brings can be used in
the next round, and a connection holds one message that was not received yet.

Every order of threads that the hardware may choose must give the same result. So each access to a chunk must be ordered
after the accesses that it depends on, by the order of a thread, a message, a signal or an explicit dependency. Each
action knows the set of actions before it, as a bit mask.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from lumctl.collectives.verification import ScheduleFault, missing, twice
from lumctl.errors import UsageError

MOST_ACTIONS = 70_000
"""Of those that use chunks; their masks grow with their number. 128 ranks need 67,000 for MSCCL."""
MOST_CHUNKS_USED = 2_000_000


class Cells(NamedTuple):
    """Neighbouring chunks of a buffer of a rank."""

    rank: int
    buffer: str
    first: int
    length: int


Cell = tuple[int, str, int]
"""One chunk: rank, buffer and number."""


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

    The operands, equally many cells each, are added up, and the sum is written, sent, or both. ``RECEIVE`` adds
    what has come, and without ``writes`` the sum is left for a ``SEND`` without operands. ``after`` names an action,
    by thread and position, that must be done before.
    """

    kind: Kind
    place: str
    operands: tuple[Cells, ...] = ()
    writes: Cells | None = None
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
        UsageError: the program uses more chunks than :data:`MOST_ACTIONS` and :data:`MOST_CHUNKS_USED` allow.
    """
    users = [action for thread in program.threads for action in thread.actions if action.operands or action.writes]
    if len(users) > MOST_ACTIONS:
        raise UsageError(f"a program with {len(users)} uses of chunks is not checked", hint=f"{MOST_ACTIONS} at most")
    count = sum(cells.length for action in users for cells in (*action.operands, action.writes) if cells)
    if count > MOST_CHUNKS_USED:
        raise UsageError(f"a program that uses {count} chunks is not checked", hint=f"{MOST_CHUNKS_USED} at most")
    return _Machine(program, straggler).run()


Message = tuple[list[int], int]
"""The masks of the chunks, and what is known to have happened before."""


def _each(cells: Cells) -> Iterator[Cell]:
    rank, buffer, first, length = cells
    return ((rank, buffer, first + at) for at in range(length))


class _Machine:
    def __init__(self, program: Program, held: int | None) -> None:
        self.program = program
        self.held = held
        self.at = [0] * len(program.threads)
        self.known = [0] * len(program.threads)
        self.left: list[list[int]] = [[] for _ in program.threads]
        self.masks: dict[Cell, int] = {}
        self.written: dict[Cell, int] = {}
        self.readers: dict[Cell, int] = {}
        self.messages: defaultdict[Key, deque[Message]] = defaultdict(deque)
        self.waiters = Counter(action.after for thread in program.threads for action in thread.actions)
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
        return action.operands[0].rank, action.writes.rank if action.writes else -1

    def _act(self, number: int, action: Action) -> int:
        """Do an action, and return how many chunks it has."""
        own = 0
        if action.operands or action.writes:
            own = 1 << self.actions
            self.actions += 1
        self.known[number] |= own | self._awaited(action)
        values: list[list[int]] = []
        if action.kind in {Kind.RECEIVE, Kind.WAIT}:
            arrived, known = self.messages[action.key].popleft()
            self.known[number] |= known
            values += [arrived] if action.kind is Kind.RECEIVE else []
        elif action.kind is Kind.SEND and not action.operands:
            values.append(self.left[number])
        values += [[self._read(number, action, cell, own) for cell in _each(cells)] for cells in action.operands]
        value = self._sum(number, action, values)
        if action.writes is not None:
            for cell, mask in zip(_each(action.writes), value, strict=True):
                self._write(number, action, cell, mask, own)
        if action.kind is Kind.RECEIVE:
            self.left[number] = value
        elif action.kind in {Kind.SEND, Kind.SIGNAL}:
            self.messages[action.key].append((value, self.known[number]))
        position = number, self.at[number]
        if position in self.waiters:
            self.done[position] = self.known[number]
        self.at[number] += 1
        return len(value)

    def _awaited(self, action: Action) -> int:
        """What was known when the action was done for which this one waited; it is forgotten after the last waiter."""
        if action.after is None:
            return 0
        self.waiters[action.after] -= 1
        return self.done[action.after] if self.waiters[action.after] else self.done.pop(action.after)

    def _sum(self, number: int, action: Action, values: list[list[int]]) -> list[int]:
        cells = self._subject(action)
        rank = cells.rank if cells else self.program.threads[number].rank
        if len({*map(len, values), *([action.writes.length] if action.writes else [])}) > 1:
            raise self._fault("what it receives has another number of chunks", action, rank, None)
        total: list[int] = []
        for parts in zip(*values, strict=True):
            mask = 0
            for part in parts:
                if mask & part:
                    chunk = cells.first + len(total) if cells else None
                    raise self._fault(twice(mask & part), action, rank, chunk)
                mask |= part
            total.append(mask)
        return total

    def _read(self, number: int, action: Action, cell: Cell, own: int) -> int:
        rank, _, chunk = cell
        mask = self._mask(cell)
        if not mask:
            raise self._fault("uses what it does not hold yet", action, rank, chunk)
        if self.written.get(cell, 0) & ~self.known[number]:
            raise self._fault("uses what another thread may still change", action, rank, chunk)
        self.readers[cell] = self.readers.get(cell, 0) | own
        return mask

    def _write(self, number: int, action: Action, cell: Cell, mask: int, own: int) -> None:
        if (self.written.get(cell, 0) | self.readers.get(cell, 0)) & ~self.known[number]:
            raise self._fault("changes what another thread may still use", action, cell[0], cell[2])
        self.masks[cell] = mask
        self.written[cell] = own
        self.readers[cell] = 0

    def _mask(self, cell: Cell) -> int:
        """The contributors of a chunk; at first, a rank has its own in the input buffer."""
        rank, buffer, chunk = cell
        own = 1 << rank if buffer in self.program.inputs and chunk < self.program.chunks else 0
        return self.masks.get(cell, own)

    @staticmethod
    def _subject(action: Action) -> Cells | None:
        """The cells that messages about an action name."""
        return action.writes or next(iter(action.operands), None)

    def _fault(self, message: str, action: Action, rank: int, chunk: int | None) -> _FaultFoundError:
        return _FaultFoundError(ScheduleFault(message, len(self.rounds), rank, chunk, action.place))

    def _require_result(self) -> None:
        """Refuse threads that wait forever, messages that nobody receives, and chunks that are not complete."""
        last = max(len(self.rounds) - 1, 0)
        for number, thread in enumerate(self.program.threads):
            if self.at[number] < len(thread.actions):
                action = thread.actions[self.at[number]]
                cells = self._subject(action)
                raise self._fault("waits forever: deadlock", action, thread.rank, cells.first if cells else None)
        for key, queue in self.messages.items():
            if any(value for value, _ in queue):
                message = f"sends rank {key[1]} a message that it never receives"
                raise _FaultFoundError(ScheduleFault(message, last, key[0]))
        everything = (1 << self.program.ranks) - 1
        for rank in range(self.program.ranks):
            for chunk in range(self.program.chunks):
                mask = self._mask((rank, self.program.result, chunk))
                if mask != everything:
                    raise _FaultFoundError(ScheduleFault(missing(everything & ~mask), last, rank, chunk))
