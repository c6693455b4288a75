"""Runs a program of threads that send, receive and signal, and checks that it is an all-reduce. Nothing is moved.

This is our own reading of MSCCL and MSCCL++, on no GPU. Time goes in rounds: in each, a rank starts one transfer at
most as its sender and one as its receiver. Local work and signals take no time. What a transfer brings can be used in
the next round, and a connection holds one message that was not received yet.

Every order of threads that the hardware may choose must give the same result. So each access to a chunk must be ordered
after the accesses that it depends on, by the order of a thread, a message, a signal or an explicit dependency. Each
instruction knows the set of instructions before it, as a bit mask.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from lumctl.collectives.verification import ScheduleFault, missing, twice
from lumctl.errors import UsageError

MOST_INSTRUCTIONS = 70_000
"""Of those that use chunks; their masks grow with their number. 128 ranks need 67,000 for MSCCL."""
MOST_CHUNKS_USED = 2_000_000


class ChunkSpan(NamedTuple):
    """Neighbouring chunks of a buffer of a rank."""

    rank: int
    buffer: str
    first: int
    length: int


ChunkAddress = tuple[int, str, int]
"""One chunk: rank, buffer and number."""


class InstructionKind(Enum):
    """What an instruction does."""

    LOCAL = auto()
    SEND = auto()
    RECEIVE = auto()
    PUT = auto()
    SIGNAL = auto()
    WAIT = auto()


Connection = tuple[int, ...]
"""A connection or a semaphore: sender, receiver and number."""


@dataclass(slots=True)
class Instruction:
    """One instruction of a thread.

    The operands, spans of equal length, are added up, and the sum is written, sent, or both. ``RECEIVE`` adds what has
    come, and without ``writes`` the sum is left for a ``SEND`` without operands. ``after`` names an instruction, by
    thread and position, that must be done before.
    """

    kind: InstructionKind
    place: str
    operands: tuple[ChunkSpan, ...] = ()
    writes: ChunkSpan | None = None
    key: Connection = ()
    after: tuple[int, int] | None = None


@dataclass(slots=True)
class ProgramThread:
    """The instructions of one thread of a rank, in order."""

    rank: int
    instructions: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CollectiveProgram:
    """An all-reduce as threads. ``result`` is the buffer of the result, ``inputs`` those with the rank's own chunks."""

    name: str
    ranks: int
    chunks: int
    threads: Sequence[ProgramThread]
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


def run_program(program: CollectiveProgram, straggler: int | None = None) -> ProgramRun:
    """Run a program whose straggler, if there is one, arrives when no other rank can go on.

    Raises:
        UsageError: the program uses more chunks than :data:`MOST_INSTRUCTIONS` and :data:`MOST_CHUNKS_USED` allow.
    """
    users = [
        instruction
        for thread in program.threads
        for instruction in thread.instructions
        if instruction.operands or instruction.writes
    ]
    if len(users) > MOST_INSTRUCTIONS:
        raise UsageError(
            f"a program with {len(users)} uses of chunks is not checked", hint=f"{MOST_INSTRUCTIONS} at most"
        )
    count = sum(span.length for instruction in users for span in (*instruction.operands, instruction.writes) if span)
    if count > MOST_CHUNKS_USED:
        raise UsageError(f"a program that uses {count} chunks is not checked", hint=f"{MOST_CHUNKS_USED} at most")
    return _Machine(program, straggler).run()


ChunkMessage = tuple[list[int], int]
"""The masks of the chunks, and what is known to have happened before."""


def _each(span: ChunkSpan) -> Iterator[ChunkAddress]:
    rank, buffer, first, length = span
    return ((rank, buffer, first + at) for at in range(length))


class _Machine:
    def __init__(self, program: CollectiveProgram, held: int | None) -> None:
        self.program = program
        self.held = held
        self.at = [0] * len(program.threads)
        self.known = [0] * len(program.threads)
        self.left: list[list[int]] = [[] for _ in program.threads]
        self.masks: dict[ChunkAddress, int] = {}
        self.written: dict[ChunkAddress, int] = {}
        self.readers: dict[ChunkAddress, int] = {}
        self.messages: defaultdict[Connection, deque[ChunkMessage]] = defaultdict(deque)
        self.waiters = Counter(instruction.after for thread in program.threads for instruction in thread.instructions)
        self.done: dict[tuple[int, int], int] = {}
        self.instructions = 0
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

    def _head(self, number: int) -> Instruction | None:
        """The next instruction of a thread; ``None`` if it has ended, or may not go on."""
        thread = self.program.threads[number]
        if thread.rank == self.held or self.at[number] == len(thread.instructions):
            return None
        instruction = thread.instructions[self.at[number]]
        return instruction if instruction.after is None or instruction.after in self.done else None

    def _local_work(self) -> None:
        """Let all threads go on as far as they can without a transfer."""
        waiting = list(range(len(self.at)))
        progress = True
        while progress:
            progress = False
            for number in waiting:
                while (instruction := self._head(number)) and self._is_ready(instruction):
                    self._act(number, instruction)
                    progress = True

    def _is_ready(self, instruction: Instruction) -> bool:
        if instruction.kind in {InstructionKind.RECEIVE, InstructionKind.WAIT}:
            return bool(self.messages[instruction.key])
        return instruction.kind in {InstructionKind.LOCAL, InstructionKind.SIGNAL}

    def _transfers(self) -> int:
        """Start the transfers of a round, and return the most chunks of one; 0 if there is none."""
        heads = [
            (number, instruction) for number in range(len(self.at)) if (instruction := self._head(number)) is not None
        ]
        receiving = {instruction.key for _, instruction in heads if instruction.kind is InstructionKind.RECEIVE}
        ready = [
            (number, instruction)
            for number, instruction in heads
            if instruction.kind in {InstructionKind.SEND, InstructionKind.PUT}
        ]
        # A receiver serves those first for whom it waits; the others would come early.
        ready.sort(key=lambda each: each[1].kind is InstructionKind.SEND and each[1].key not in receiving)
        senders: set[int] = set()
        receivers: set[int] = set()
        largest = 0
        for number, instruction in ready:
            sender, receiver = self._ends(instruction)
            full = instruction.kind is InstructionKind.SEND and self.messages[instruction.key]
            if full or sender in senders or receiver in receivers or self.held in {sender, receiver}:
                continue
            senders.add(sender)
            receivers.add(receiver)
            largest = max(largest, self._act(number, instruction))
        return largest

    @staticmethod
    def _ends(instruction: Instruction) -> tuple[int, int]:
        if instruction.kind is InstructionKind.SEND:
            return instruction.key[0], instruction.key[1]
        return instruction.operands[0].rank, instruction.writes.rank if instruction.writes else -1

    def _act(self, number: int, instruction: Instruction) -> int:
        """Do an instruction, and return how many chunks it has."""
        own = 0
        if instruction.operands or instruction.writes:
            own = 1 << self.instructions
            self.instructions += 1
        self.known[number] |= own | self._awaited(instruction)
        values: list[list[int]] = []
        if instruction.kind in {InstructionKind.RECEIVE, InstructionKind.WAIT}:
            arrived, known = self.messages[instruction.key].popleft()
            self.known[number] |= known
            values += [arrived] if instruction.kind is InstructionKind.RECEIVE else []
        elif instruction.kind is InstructionKind.SEND and not instruction.operands:
            values.append(self.left[number])
        values += [
            [self._read(number, instruction, address, own) for address in _each(span)] for span in instruction.operands
        ]
        value = self._sum(number, instruction, values)
        if instruction.writes is not None:
            for address, mask in zip(_each(instruction.writes), value, strict=True):
                self._write(number, instruction, address, mask, own)
        if instruction.kind is InstructionKind.RECEIVE:
            self.left[number] = value
        elif instruction.kind in {InstructionKind.SEND, InstructionKind.SIGNAL}:
            self.messages[instruction.key].append((value, self.known[number]))
        position = number, self.at[number]
        if position in self.waiters:
            self.done[position] = self.known[number]
        self.at[number] += 1
        return len(value)

    def _awaited(self, instruction: Instruction) -> int:
        """What was known when the instruction was done that this one waited for; forgotten after the last waiter."""
        if instruction.after is None:
            return 0
        self.waiters[instruction.after] -= 1
        return self.done[instruction.after] if self.waiters[instruction.after] else self.done.pop(instruction.after)

    def _sum(self, number: int, instruction: Instruction, values: list[list[int]]) -> list[int]:
        span = self._subject(instruction)
        rank = span.rank if span else self.program.threads[number].rank
        if len({*map(len, values), *([instruction.writes.length] if instruction.writes else [])}) > 1:
            raise self._fault("what it receives has another number of chunks", instruction, rank, None)
        total: list[int] = []
        for parts in zip(*values, strict=True):
            mask = 0
            for part in parts:
                if mask & part:
                    chunk = span.first + len(total) if span else None
                    raise self._fault(twice(mask & part), instruction, rank, chunk)
                mask |= part
            total.append(mask)
        return total

    def _read(self, number: int, instruction: Instruction, address: ChunkAddress, own: int) -> int:
        rank, _, chunk = address
        mask = self._mask(address)
        if not mask:
            raise self._fault("uses what it does not hold yet", instruction, rank, chunk)
        if self.written.get(address, 0) & ~self.known[number]:
            raise self._fault("uses what another thread may still change", instruction, rank, chunk)
        self.readers[address] = self.readers.get(address, 0) | own
        return mask

    def _write(self, number: int, instruction: Instruction, address: ChunkAddress, mask: int, own: int) -> None:
        if (self.written.get(address, 0) | self.readers.get(address, 0)) & ~self.known[number]:
            raise self._fault("changes what another thread may still use", instruction, address[0], address[2])
        self.masks[address] = mask
        self.written[address] = own
        self.readers[address] = 0

    def _mask(self, address: ChunkAddress) -> int:
        """The contributors of a chunk; at first, a rank has its own in the input buffer."""
        rank, buffer, chunk = address
        own = 1 << rank if buffer in self.program.inputs and chunk < self.program.chunks else 0
        return self.masks.get(address, own)

    @staticmethod
    def _subject(instruction: Instruction) -> ChunkSpan | None:
        """The chunks that faults of an instruction name."""
        return instruction.writes or next(iter(instruction.operands), None)

    def _fault(self, message: str, instruction: Instruction, rank: int, chunk: int | None) -> _FaultFoundError:
        return _FaultFoundError(ScheduleFault(message, len(self.rounds), rank, chunk, instruction.place))

    def _require_result(self) -> None:
        """Refuse threads that wait forever, messages that nobody receives, and chunks that are not complete."""
        last = max(len(self.rounds) - 1, 0)
        for number, thread in enumerate(self.program.threads):
            if self.at[number] < len(thread.instructions):
                instruction = thread.instructions[self.at[number]]
                span = self._subject(instruction)
                raise self._fault("waits forever: deadlock", instruction, thread.rank, span.first if span else None)
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
