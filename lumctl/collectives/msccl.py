"""A schedule as an algorithm of MSCCL (XML), and such files read as programs. Not run on GPUs.

Each GPU has a thread block for each peer, which sends to it and receives from it in the order of the rounds. A step
waits for the last change of its chunk, and one that changes a chunk also for all uses of it. A GPU sends one message
after the other and receives one after the other, in the order of the rounds. A step can wait for one other, so further
ones are ``nop`` steps before it.

Format: the loader of MSCCL, ``MSCCL_XML_FILES`` with ``NCCL_ALGO=MSCCL``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from lumctl.collectives.baselines import rounds_of
from lumctl.collectives.documents import shown
from lumctl.collectives.machine import ChunkSpan, CollectiveProgram, Instruction, InstructionKind, ProgramThread
from lumctl.collectives.schedule import MOST_CHUNKS, MOST_RANKS, Schedule, Send
from lumctl.errors import UsageError
from lumctl.printable import one_line

NOT_RUN = "not run on GPUs"
_MOST_COUNT = 1 << 16
StepPlace = tuple[int, int]
"""A thread block of a GPU, and a step in it."""


def rounds_of_ranks(schedule: Schedule) -> list[list[tuple[Send | None, Send | None]]]:
    """For each rank, what it sends and receives in each round in which it takes part, those before the arrival too."""
    found: list[list[tuple[Send | None, Send | None]]] = [[] for _ in range(schedule.ranks)]
    for sends in rounds_of(schedule):
        sent = {send.sender: send for send in sends}
        received = {send.receiver: send for send in sends}
        for rank in sent.keys() | received.keys():
            found[rank].append((sent.get(rank), received.get(rank)))
    return found


def plan_name(schedule: Schedule) -> str:
    """The name of a program, with what it is and that no GPU has run it."""
    late = "" if schedule.straggler is None else f"-straggler-{schedule.straggler}"
    return f"lumctl-{schedule.algorithm}-{schedule.ranks}{late} ({NOT_RUN})"


@dataclass(slots=True)
class _Step:
    type: str
    offset: int
    count: int
    awaits: StepPlace | None = None
    is_awaited: bool = False


@dataclass(slots=True)
class _Uses:
    """The last change of a chunk, and its uses since."""

    changed: StepPlace | None = None
    used: set[StepPlace] = field(default_factory=set)


class _Gpu:
    """The thread blocks of one GPU; that of a peer is number ``blocks[peer]``."""

    def __init__(self, rounds: Sequence[tuple[Send | None, Send | None]], chunks: int) -> None:
        peers = {sent.receiver for sent, _ in rounds if sent} | {received.sender for _, received in rounds if received}
        self.blocks = {peer: number for number, peer in enumerate(sorted(peers))}
        self.steps: list[list[_Step]] = [[] for _ in self.blocks]
        self.uses = [_Uses() for _ in range(chunks)]
        self.last_send: StepPlace | None = None
        self.last_receive: StepPlace | None = None
        for sent, received in rounds:
            if sent is not None:
                self._send(sent.receiver, sent.chunks)
            if received is not None:
                self._receive(received.sender, received.chunks, reduces=received.reduces)

    def _send(self, peer: int, chunks: tuple[int, ...]) -> None:
        before = {self.last_send, *(self.uses[chunk].changed for chunk in chunks)}
        self.last_send = self._add("s", peer, chunks, before)
        for chunk in chunks:
            self.uses[chunk].used.add(self.last_send)

    def _receive(self, peer: int, chunks: tuple[int, ...], *, reduces: bool) -> None:
        before = {place for chunk in chunks for place in (self.uses[chunk].changed, *self.uses[chunk].used)}
        at = self._add("rrc" if reduces else "r", peer, chunks, {self.last_receive, *before})
        self.last_receive = at
        for chunk in chunks:
            self.uses[chunk] = _Uses(at)

    def _add(self, kind: str, peer: int, chunks: tuple[int, ...], before: set[StepPlace | None]) -> StepPlace:
        block = self.blocks[peer]
        last: dict[int, int] = {}
        for place in before:
            if place is not None and place[0] != block:  # steps of a block are in order anyway
                last[place[0]] = max(place[1], last.get(place[0], 0))
        awaited = sorted(last.items())
        for each in awaited[:-1]:
            self.steps[block].append(_Step("nop", 0, 0, each))
        self.steps[block].append(_Step(kind, chunks[0], len(chunks), awaited[-1] if awaited else None))
        for at_block, at_step in last.items():
            self.steps[at_block][at_step].is_awaited = True
        return block, len(self.steps[block]) - 1


def msccl_lines(schedule: Schedule) -> Iterator[str]:
    """The lines of the XML file. Chunks of a send must be neighbours, as in all schedules of lumctl."""
    yield f"<!-- made by lumctl; {NOT_RUN} -->"
    yield (
        f'<algo name={quoteattr(plan_name(schedule))} proto="Simple" nchannels="1" '
        f'nchunksperloop="{schedule.chunks}" ngpus="{schedule.ranks}" coll="allreduce" inplace="1">'
    )
    # One GPU after the other, because a large schedule has millions of steps.
    for rank, rounds in enumerate(rounds_of_ranks(schedule)):
        gpu = _Gpu(rounds, schedule.chunks)
        yield f'  <gpu id="{rank}" i_chunks="{schedule.chunks}" o_chunks="0" s_chunks="0">'
        for peer, block in gpu.blocks.items():
            yield f'    <tb id="{block}" send="{peer}" recv="{peer}" chan="0">'
            for number, step in enumerate(gpu.steps[block]):
                block_awaited, step_awaited = step.awaits or (-1, -1)
                yield (
                    f'      <step s="{number}" type="{step.type}" srcbuf="i" srcoff="{step.offset}" dstbuf="i" '
                    f'dstoff="{step.offset}" cnt="{step.count}" depid="{block_awaited}" deps="{step_awaited}" '
                    f'hasdep="{int(step.is_awaited)}"/>'
                )
            yield "    </tb>"
        yield "  </gpu>"
    yield "</algo>"


@dataclass(slots=True)
class _Element:
    """An XML element with its line."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: "list[_Element]" = field(default_factory=list)

    def number(self, name: str, least: int, most: int) -> int:
        text = self.text(name)
        number = (
            int(text) if text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= len("-99999") else None
        )
        if number is None or not least <= number <= most:
            raise self.error(f"{name}: found {shown(text)}, expected a whole number from {least} to {most}")
        return number

    def text(self, name: str) -> str:
        if name not in self.attributes:
            raise self.error(f"<{self.tag}> has no attribute {name!r}")
        return self.attributes[name]

    def error(self, message: str) -> UsageError:
        return UsageError(f"line {self.line}: {message}")

    def named(self, tag: str) -> "list[_Element]":
        for child in self.children:
            if child.tag != tag:
                raise child.error(f"found <{shown(child.tag)[1:-1]}>, expected <{tag}>")
        return self.children


def _parsed(text: bytes) -> _Element:
    """The tree of a document without a document type, so that no entity can be declared."""
    parser = expat.ParserCreate()
    top = _Element("", {}, 0)
    path = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        path.append(_Element(tag, attributes, parser.CurrentLineNumber))
        path[-2].children.append(path[-1])

    def refuse(*_: object) -> None:
        raise UsageError(f"line {parser.CurrentLineNumber}: found a document type, which is refused")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)  # noqa: FBT003 - expat's own signature
    except expat.ExpatError as error:
        raise UsageError(f"line {error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}") from None
    return top


def read_msccl(text: bytes) -> CollectiveProgram:
    """The program of an MSCCL file for an all-reduce.

    Raises:
        UsageError: it is not such a file, or uses what lumctl does not know; the message begins with the line.
    """
    (algo,) = _parsed(text).named("algo")
    if algo.text("coll") != "allreduce":
        raise algo.error(f"coll: found {shown(algo.text('coll'))}, expected 'allreduce'")
    ranks = algo.number("ngpus", 1, MOST_RANKS)
    chunks = algo.number("nchunksperloop", 1, MOST_CHUNKS)
    in_place = algo.number("inplace", 0, 1) == 1
    gpus = algo.named("gpu")
    if sorted(gpu.number("id", 0, ranks - 1) for gpu in gpus) != list(range(ranks)):
        raise algo.error(f"expected one <gpu> for each id from 0 to {ranks - 1}")
    threads: list[ProgramThread] = []
    for gpu in gpus:
        threads += _Reader(gpu, ranks, len(threads), alias="i" if in_place else "o").threads()
    return CollectiveProgram(one_line(algo.text("name"), 80), ranks, chunks, threads, "i", "i" if in_place else "o")


class _Reader:
    """Reads the thread blocks of a GPU. In place, the output buffer is the input buffer."""

    def __init__(self, gpu: _Element, ranks: int, first: int, *, alias: str) -> None:
        self.gpu, self.ranks, self.first = gpu, ranks, first
        self.rank = gpu.number("id", 0, ranks - 1)
        self.buffers = {"i": "i", "o": alias, "s": "s"}
        self.blocks = {block.number("id", 0, _MOST_COUNT): at for at, block in enumerate(gpu.named("tb"))}
        # Each step is one instruction or two; others may wait for its last one.
        self.steps = [[_STEPS.get(step.text("type"), 0) for step in block.named("step")] for block in gpu.children]

    def threads(self) -> list[ProgramThread]:
        return [ProgramThread(self.rank, list(self._instructions(block))) for block in self.gpu.children]

    def _instructions(self, block: _Element) -> Iterator[Instruction]:
        to, source = block.number("send", -1, self.ranks - 1), block.number("recv", -1, self.ranks - 1)
        channel = block.number("chan", 0, _MOST_COUNT)
        for number, step in enumerate(block.children):
            kind = step.text("type")
            if kind not in _STEPS:
                raise step.error(f"type: found {shown(kind)}, expected one of {', '.join(_STEPS)}")
            if step.number("s", 0, _MOST_COUNT) != number:
                raise step.error(f"s: found {step.text('s')}, expected {number}")
            place = f"gpu {self.rank}, tb {block.text('id')}, step {number}"
            after = self._awaited(step)
            if kind == "nop":
                yield Instruction(InstructionKind.LOCAL, place, after=after)
                continue
            read, written = self._span(step, "src"), self._span(step, "dst")
            if kind in {"cpy", "re"}:
                yield Instruction(
                    InstructionKind.LOCAL, place, (read,) if kind == "cpy" else (read, written), written, after=after
                )
                continue
            if (to if kind == "s" else source) < 0 or (kind in {"rcs", "rrs", "rrcs"} and to < 0):
                raise step.error(f"{kind!r} has no peer in this <tb>")
            if kind != "s":
                operands = (read,) if kind.startswith("rr") else ()
                key = (source, self.rank, channel)
                yield Instruction(
                    InstructionKind.RECEIVE, place, operands, None if kind == "rrs" else written, key, after
                )
            if kind.endswith("s"):
                key = (self.rank, to, channel)
                yield Instruction(InstructionKind.SEND, place, (read,) if kind == "s" else (), None, key, after)

    def _awaited(self, step: _Element) -> tuple[int, int] | None:
        block = step.number("depid", -1, _MOST_COUNT)
        if block < 0:
            return None
        if block not in self.blocks:
            raise step.error(f"depid: this <gpu> has no tb {block}")
        at = self.blocks[block]
        awaited = step.number("deps", 0, len(self.steps[at]) - 1)
        return self.first + at, sum(self.steps[at][: awaited + 1]) - 1

    def _span(self, step: _Element, end: str) -> ChunkSpan:
        buffer = step.text(f"{end}buf")
        if buffer not in self.buffers:
            raise step.error(f"{end}buf: found {shown(buffer)}, expected i, o or s")
        offset, count = step.number(f"{end}off", 0, MOST_CHUNKS), step.number("cnt", 1, MOST_CHUNKS)
        return ChunkSpan(self.rank, self.buffers[buffer], offset, count)


_STEPS = {"nop": 1, "cpy": 1, "re": 1, "s": 1, "r": 1, "rrc": 1, "rrs": 2, "rcs": 2, "rrcs": 2}
"""The types of steps, and how many instructions each is."""
