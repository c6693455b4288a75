"""The usual all-reduces, which wait for the last rank: ring, recursive halving and doubling, and direct exchange.

The buffer has as many chunks as there are ranks. Each rank sends at least 2 (n - 1) / n of the buffer in any
all-reduce, so 2 (n - 1) rounds are the least with one chunk a send: ring and direct exchange are optimal in that sense.
With more chunks a send, contributions at most double in a round, and log2 n rounds are a lower bound.
"""

from collections.abc import Iterator, Sequence

from lumctl.collectives.schedule import Algorithm, Schedule, ScheduleRound, Send, require_ranks
from lumctl.errors import UsageError


def ring(ranks: int) -> Schedule:
    """The all-reduce in which each rank sends one chunk a round to the next one.

    Raises:
        UsageError: the number of ranks is not from 2 to 1,024.
    """
    require_ranks(ranks)
    collecting = [
        [Send(rank, (rank + 1) % ranks, ((rank - turn) % ranks,), reduces=False) for rank in range(ranks)]
        for turn in range(ranks - 1)
    ]
    return _schedule(Algorithm.RING, ranks, [*reduce_scatter(range(ranks)), *collecting], 2 * (ranks - 1))


def reduce_scatter(owners: Sequence[int]) -> list[ScheduleRound]:
    """The rounds after which ``owners[chunk]`` holds each chunk reduced over all owners: a ring in their order."""
    count = len(owners)
    return [
        [Send(owners[at], owners[(at + 1) % count], ((at - turn - 1) % count,), reduces=True) for at in range(count)]
        for turn in range(count - 1)
    ]


def rounds_of(schedule: Schedule) -> Iterator[ScheduleRound]:
    """All rounds of an all-reduce: those for a late rank begin with the reduce-scatter of the others."""
    if schedule.straggler is not None:
        yield from reduce_scatter(schedule.owners)
    yield from schedule.rounds


def direct(ranks: int) -> Schedule:
    """The all-reduce in which each rank sends its part of each chunk to the chunk's owner, which sends back the sum.

    Raises:
        UsageError: the number of ranks is not from 2 to 1,024.
    """
    require_ranks(ranks)
    turns = range(1, ranks)
    to_owners = [
        [Send(r, (r + turn) % ranks, ((r + turn) % ranks,), reduces=True) for r in range(ranks)] for turn in turns
    ]
    to_all = [[Send(r, (r + turn) % ranks, (r,), reduces=False) for r in range(ranks)] for turn in turns]
    return _schedule(Algorithm.DIRECT, ranks, [*to_owners, *to_all], 2 * (ranks - 1))


def halving_doubling(ranks: int) -> Schedule:
    """The all-reduce in 2 log2 n rounds: partners swap halves of what is left, then collect them in reverse order.

    Raises:
        UsageError: the number of ranks is not a power of two from 2 to 1,024.
    """
    require_ranks(ranks)
    if ranks & (ranks - 1):
        raise UsageError(f"{Algorithm.HALVING_DOUBLING} needs a power of two, not {ranks} ranks")
    halving: list[ScheduleRound] = []
    doubling: list[ScheduleRound] = []
    distance = ranks // 2
    while distance:
        # Before the round a rank is responsible for the aligned block of 2 * distance chunks around its own.
        kept = [tuple(range(rank & -distance, (rank & -distance) + distance)) for rank in range(ranks)]
        halving.append([Send(rank, rank ^ distance, kept[rank ^ distance], reduces=True) for rank in range(ranks)])
        doubling.append([Send(rank, rank ^ distance, kept[rank], reduces=False) for rank in range(ranks)])
        distance //= 2
    return _schedule(Algorithm.HALVING_DOUBLING, ranks, [*halving, *reversed(doubling)], ranks.bit_length() - 1)


def _schedule(algorithm: Algorithm, ranks: int, rounds: Sequence[ScheduleRound], bound: int) -> Schedule:
    return Schedule(algorithm, ranks, ranks, None, (), tuple(rounds), bound)
