"""A schedule as an execution plan of MSCCL++ (JSON), and such plans read as programs. Not run on GPUs.

Each GPU has one thread block, which goes through the rounds. The receiver signals that it is ready, the sender waits
for that, puts its chunks, and signals that they are there. Chunks that are added arrive in the scratch buffer, all
others at their place. Plans with packets, switch channels, pipelines or semaphores of a device are not read.

Format: the executor of MSCCL++, as its loader reads it (fields ``channel_ids``, ``remote_buffer_refs``).
"""

import json
from collections.abc import Iterator
from typing import Any

from lumctl.collectives.documents import items, number, required, shown
from lumctl.collectives.machine import (
    ChunkSpan,
    CollectiveProgram,
    Instruction,
    InstructionKind,
    ProgramThread,
)
from lumctl.collectives.msccl import plan_name, rounds_of_ranks
from lumctl.collectives.schedule import MOST_CHUNKS, MOST_RANKS, Schedule, Send
from lumctl.errors import UsageError
from lumctl.printable import one_line

_MEMORY = "memory"
_INPUT, _SCRATCH = range(2)
"""The remote buffers of a peer; their numbers are 2 * peer's place + one of these."""


def mscclpp_lines(schedule: Schedule) -> Iterator[str]:
    """The lines of the JSON file: one for each GPU."""
    of_ranks = rounds_of_ranks(schedule)
    added = [len(sent.chunks) for rounds in of_ranks for sent, _ in rounds if sent and sent.reduces]
    head = {"name": plan_name(schedule), "collective": "allreduce", "protocol": "Simple", "inplace": True}
    yield f'{json.dumps({**head, "reuse_resources": False})[:-1]}, "gpus": ['
    for rank, rounds in enumerate(of_ranks):  # one after the other, because there may be millions of operations
        plan = _GpuPlan(rank)
        for sent, received in rounds:
            plan.add_round(sent, received)
        gpu = plan.document(schedule.chunks, max(added, default=0))
        yield f"{json.dumps(gpu)}{',' if rank < schedule.ranks - 1 else ''}"
    tail = {"num_threads_per_block": 1024, "use_double_scratch_buffer": False, "buffer_alignment": 16}
    yield f"], {json.dumps({**tail, 'min_message_size': 0, 'max_message_size': 2**64 - 1})[1:]}"


class _GpuPlan:
    """The operations of one GPU while rounds are added. The channel of a peer has its place among the peers."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.peers: dict[int, int] = {}
        self.operations: list[dict[str, Any]] = []

    def add_round(self, sent: Send | None, received: Send | None) -> None:
        """What the GPU does in a round; ``nop`` separates what all its threads must have finished."""
        if received is not None:
            self._add("nop")
            self._add("signal", received.sender)
        if sent is not None:
            self._add("wait", sent.receiver)
            self._add("nop")
            self._put(sent)
            self._add("nop")
            self._add("signal", sent.receiver)
        if received is not None:
            self._add("wait", received.sender)
            self._add("nop")
            if received.reduces:
                there = _local("i", received.chunks)
                arrived = {"type": "s", "index": 0, "size": len(received.chunks)}
                self.operations.append(
                    {"name": "re", "src_buff": [there, arrived], "dst_buff": [there], "reduce_op": "sum"}
                )

    def _place(self, peer: int) -> int:
        return self.peers.setdefault(peer, len(self.peers))

    def _add(self, name: str, peer: int | None = None) -> None:
        channel = {} if peer is None else {"channel_ids": [self._place(peer)], "channel_type": _MEMORY}
        self.operations.append({"name": name, **channel})

    def _put(self, send: Send) -> None:
        place = self._place(send.receiver)
        target = {"buffer_id": 2 * place + _INPUT, "index": send.chunks[0], "size": len(send.chunks)}
        if send.reduces:
            target = {**target, "buffer_id": 2 * place + _SCRATCH, "index": 0}
        self.operations.append(
            {
                "name": "put",
                "src_buff": [_local("i", send.chunks)],
                "dst_buff": [target],
                "channel_ids": [place],
                "channel_type": _MEMORY,
            }
        )

    def document(self, chunks: int, scratch: int) -> dict[str, Any]:
        """The GPU's part of the plan."""
        numbers = list(range(len(self.peers)))
        buffers = [
            {"rank": peer, "type": buffer, "access_channel_types": [_MEMORY]} for peer in self.peers for buffer in "is"
        ]
        block = {
            "id": 0,
            "ops": self.operations,
            "channels": [{"channel_type": _MEMORY, "channel_ids": numbers}],
            "remote_buffer_refs": [{"access_channel_type": _MEMORY, "remote_buffer_ids": list(range(len(buffers)))}],
        }
        return {
            "id": self.rank,
            "input_chunks": chunks,
            "output_chunks": chunks,
            "scratch_chunks": scratch,
            "threadblocks": [block],
            "channels": [{"channel_type": _MEMORY, "connected_to": list(self.peers)}],
            "remote_buffers": buffers,
            "semaphores": [],
        }


def _local(buffer: str, chunks: tuple[int, ...]) -> dict[str, Any]:
    return {"type": buffer, "index": chunks[0], "size": len(chunks)}


def read_mscclpp(document: Any) -> CollectiveProgram:
    """The program of an execution plan for an all-reduce.

    Raises:
        UsageError: a field is missing or wrong, or an operation is not supported; the message begins with its place.
    """
    collective = required(document, "collective", "")
    if collective != "allreduce":
        raise UsageError(f"collective: found {shown(collective)}, expected 'allreduce'")
    gpus = [gpu for _, gpu in items(document, "gpus", "")]
    if not 1 <= len(gpus) <= MOST_RANKS:
        raise UsageError(f"gpus: found {len(gpus)}, expected 1 to {MOST_RANKS}")
    in_place = required(document, "inplace", "") is True
    chunks = number(required(gpus[0], "input_chunks", "gpus[0]"), "gpus[0].input_chunks", 1, MOST_CHUNKS)
    threads: list[ProgramThread] = []
    for rank, gpu in enumerate(gpus):
        place = f"gpus[{rank}]"
        number(required(gpu, "id", place), f"{place}.id", rank, rank)
        number(required(gpu, "input_chunks", place), f"{place}.input_chunks", chunks, chunks)
        reader = _Reader(rank, gpu, len(gpus), alias="i" if in_place else "o")
        threads += (
            reader.thread(block, f"{place}.threadblocks[{at}]") for at, block in items(gpu, "threadblocks", place)
        )
    name = one_line(str(required(document, "name", "")), 80)
    return CollectiveProgram(name, len(gpus), chunks, threads, "i", "i" if in_place else "o")


class _Reader:
    """Reads the thread blocks of a GPU. In place, the output buffer is the input buffer."""

    def __init__(self, rank: int, gpu: Any, ranks: int, *, alias: str) -> None:
        self.rank = rank
        self.buffers = {"i": "i", "o": alias, "s": "s"}
        place = f"gpus[{rank}]"
        self.channels: dict[str, list[tuple[int, int]]] = {}
        for at, channel in items(gpu, "channels", place):
            kind = str(required(channel, "channel_type", f"{place}.channels[{at}]"))
            ends = self.channels.setdefault(kind, [])
            for peer_at, peer in items(channel, "connected_to", f"{place}.channels[{at}]"):
                number(peer, f"{place}.channels[{at}].connected_to[{peer_at}]", 0, ranks - 1)
                ends.append((peer, sum(other == peer for other, _ in ends)))
        self.remote: list[tuple[int, str]] = []
        for at, buffer in items(gpu, "remote_buffers", place):
            there = f"{place}.remote_buffers[{at}]"
            owner = number(required(buffer, "rank", there), f"{there}.rank", 0, ranks - 1)
            self.remote.append((owner, self._buffer(buffer, there)))
        self.block: Any = None
        self.block_place = ""

    def thread(self, block: Any, place: str) -> ProgramThread:
        self.block, self.block_place = block, place
        thread = ProgramThread(self.rank)
        for at, operation in items(block, "ops", place):
            thread.instructions += self._instructions(operation, f"{place}.ops[{at}]")
        return thread

    def _instructions(self, operation: Any, place: str) -> Iterator[Instruction]:
        name = required(operation, "name", place)
        match name:
            case "nop" | "flush":
                return
            case "signal" | "rlxsignal":
                yield from self._signals(InstructionKind.SIGNAL, operation, place)
            case "wait" | "rlxwait":
                yield from self._signals(InstructionKind.WAIT, operation, place)
            case "put" | "get" | "pws" | "pwsf":
                sources, targets = self._spans(operation, "src_buff", place), self._spans(operation, "dst_buff", place)
                if len(sources) != len(targets):
                    raise UsageError(f"{place}.dst_buff: found {len(targets)}, expected {len(sources)}")
                for source, target in zip(sources, targets, strict=True):
                    yield Instruction(InstructionKind.PUT, place, (source,), target)
                if name in {"pws", "pwsf"}:
                    yield from self._signals(InstructionKind.SIGNAL, operation, place)
            case "copy" | "re" | "rre":
                sources, targets = self._spans(operation, "src_buff", place), self._spans(operation, "dst_buff", place)
                sources.sort(key=lambda span: span.rank == self.rank)  # a transfer begins at the first operand
                far = sum(span.rank != self.rank for span in sources)
                if len(targets) != 1 or not sources or far != (name == "rre"):
                    raise UsageError(f"{place}: {name!r} has one target and the sources of its kind")
                yield Instruction(
                    InstructionKind.PUT if far else InstructionKind.LOCAL, place, tuple(sources), targets[0]
                )
            case _:
                raise UsageError(f"{place}.name: operation {shown(name)} is not supported")

    def _signals(self, kind: InstructionKind, operation: Any, place: str) -> Iterator[Instruction]:
        """A signal to each channel of an operation, or a wait for one from each."""
        channel_type = str(required(operation, "channel_type", place))
        ids = self._referred("channels", "channel_type", "channel_ids", channel_type)
        ends = self.channels.get(channel_type, [])
        for at, channel in items(operation, "channel_ids", place):
            there = f"{place}.channel_ids[{at}]"
            own = number(channel, there, 0, len(ids) - 1)
            peer, which = ends[number(ids[own], there, 0, len(ends) - 1)]
            order = list(self.channels).index(channel_type)
            pair = (self.rank, peer) if kind is InstructionKind.SIGNAL else (peer, self.rank)
            yield Instruction(kind, place, key=(*pair, which, order))

    def _referred(self, field: str, kind_field: str, list_field: str, kind: str) -> list[Any]:
        """The numbers of a GPU's channels or buffers that its thread block lists for a type of channel."""
        return [
            each
            for at, entry in items(self.block, field, self.block_place)
            if required(entry, kind_field, f"{self.block_place}.{field}[{at}]") == kind
            for _, each in items(entry, list_field, f"{self.block_place}.{field}[{at}]")
        ]

    def _buffer(self, entry: Any, place: str) -> str:
        name = required(entry, "type", place)
        if name not in ("i", "o", "s"):
            raise UsageError(f"{place}.type: found {shown(name)}, expected i, o or s")
        return self.buffers[name]

    def _spans(self, operation: Any, field: str, place: str) -> list[ChunkSpan]:
        found = []
        for at, entry in items(operation, field, place):
            there = f"{place}.{field}[{at}]"
            index = number(required(entry, "index", there), f"{there}.index", 0, MOST_CHUNKS)
            size = number(required(entry, "size", there), f"{there}.size", 1, MOST_CHUNKS)
            if "buffer_id" in entry:
                kind = str(operation.get("channel_type", _MEMORY))
                ids = self._referred("remote_buffer_refs", "access_channel_type", "remote_buffer_ids", kind)
                own = number(entry["buffer_id"], f"{there}.buffer_id", 0, len(ids) - 1)
                rank, buffer = self.remote[number(ids[own], f"{there}.buffer_id", 0, len(self.remote) - 1)]
            else:
                rank, buffer = self.rank, self._buffer(entry, there)
            found.append(ChunkSpan(rank, buffer, index, size))
        return found
