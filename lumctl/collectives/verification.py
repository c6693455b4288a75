"""Checks of a schedule: whether it is an all-reduce, by the contributors of each chunk at each rank.

The contributors are a bit mask: bit r says that rank r's contribution is in. A mask of 0 means that the rank holds
nothing usable of the chunk, as after a reduce-scatter for the chunks of other owners.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lumctl.collectives.schedule import Schedule, ScheduleRound, Send
from lumctl.printable import number_ranges


@dataclass(frozen=True, slots=True)
class ScheduleFault:
    """What is wrong with a schedule, and where. Rounds, ranks and chunks count from 0; ``place`` is for other formats.

    A fault of the result, which no single round makes, has the number of the last round.
    """

    message: str
    round: int
    rank: int
    chunk: int | None = None
    place: str = ""

    def __str__(self) -> str:
        chunk = "" if self.chunk is None else f", chunk {self.chunk}"
        place = f" ({self.place})" if self.place else ""
        return f"round {self.round}, rank {self.rank}{chunk}{place}: {self.message}"


def twice(mask: int) -> str:
    """The message for contributions that would be added a second time."""
    return f"adds the {_contributions(mask)} a second time"


def missing(mask: int) -> str:
    """The message for contributions that are missing at the end."""
    return f"lacks the {_contributions(mask)} at the end"


def _contributions(mask: int) -> str:
    plural = "s" if mask.bit_count() > 1 else ""
    return f"contribution{plural} of rank{plural} {number_ranges(r for r in range(mask.bit_length()) if mask >> r & 1)}"


def first_fault(schedule: Schedule) -> ScheduleFault | None:
    """The first fault of a schedule; ``None`` if it is an all-reduce.

    Each rank sends and receives once a round at most, sends only what it held before the round, and adds no
    contribution twice; at the end each rank has every contribution to every chunk. Ranks and chunks outside of the
    schedule are faults too.
    """
    state = _beginning(schedule)
    everything = (1 << schedule.ranks) - 1
    for number, sends in enumerate(schedule.rounds):
        fault = _misused_port(schedule, number, sends) or _apply(state, number, sends)
        if fault is not None:
            return fault
    return _incomplete(state, everything, len(schedule.rounds) - 1)


def _beginning(schedule: Schedule) -> list[list[int]]:
    if schedule.straggler is None:
        return [[1 << rank] * schedule.chunks for rank in range(schedule.ranks)]
    own = 1 << schedule.straggler
    state = [[0] * schedule.chunks for _ in range(schedule.ranks)]
    state[schedule.straggler] = [own] * schedule.chunks
    for chunk, owner in enumerate(schedule.owners):
        state[owner][chunk] = ((1 << schedule.ranks) - 1) ^ own
    return state


def _misused_port(schedule: Schedule, number: int, sends: ScheduleRound) -> ScheduleFault | None:
    """The first send that no rank could do, or that uses a port a second time in the round."""
    senders: set[int] = set()
    receivers: set[int] = set()
    for send in sends:
        fault = _impossible(schedule, number, send)
        chunk = next(iter(send.chunks), None)
        if fault is None and send.sender in senders:
            fault = ScheduleFault("sends more than once", number, send.sender, chunk)
        if fault is None and send.receiver in receivers:
            fault = ScheduleFault("receives more than once", number, send.receiver, chunk)
        if fault is not None:
            return fault
        senders.add(send.sender)
        receivers.add(send.receiver)
    return None


def _impossible(schedule: Schedule, number: int, send: Send) -> ScheduleFault | None:
    sender, receiver, chunks, _ = send
    chunk = next(iter(chunks), None)
    for rank in (sender, receiver):
        if not 0 <= rank < schedule.ranks:
            return ScheduleFault(f"there are ranks 0 to {schedule.ranks - 1} only", number, rank, chunk)
    for each in chunks:
        if not 0 <= each < schedule.chunks:
            return ScheduleFault(f"there are chunks 0 to {schedule.chunks - 1} only", number, sender, each)
    if sender == receiver:
        return ScheduleFault("sends to itself", number, sender, chunk)
    if not chunks or len(set(chunks)) < len(chunks):
        return ScheduleFault("a send has each of its chunks once, and at least one", number, sender, chunk)
    return None


def _apply(state: list[list[int]], number: int, sends: ScheduleRound) -> ScheduleFault | None:
    """Change the state by one round, whose sends read the state before it."""
    arriving: list[tuple[list[int], int, int]] = []
    for sender, receiver, chunks, reduces in sends:
        source, target = state[sender], state[receiver]
        for chunk in chunks:
            sent = source[chunk]
            if not sent:
                return ScheduleFault("sends what it does not hold yet", number, sender, chunk)
            if reduces:
                held = target[chunk]
                if not held:
                    return ScheduleFault("adds to a chunk of which it holds nothing", number, receiver, chunk)
                if held & sent:
                    return ScheduleFault(twice(held & sent), number, receiver, chunk)
                sent |= held
            arriving.append((target, chunk, sent))
    for target, chunk, mask in arriving:
        target[chunk] = mask
    return None


def _incomplete(state: Iterable[list[int]], everything: int, last: int) -> ScheduleFault | None:
    faults: Iterator[ScheduleFault] = (
        ScheduleFault(missing(everything & ~mask), last, rank, chunk)
        for rank, masks in enumerate(state)
        for chunk, mask in enumerate(masks)
        if mask != everything
    )
    return next(faults, None)
