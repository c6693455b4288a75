"""Round robins: who is paired with whom in which round, so that each meets each other once."""

from collections.abc import Sequence
from random import Random

from lumctl.fabric.geometry import PortPair


def round_robin(players: Sequence[int], rng: Random) -> list[list[PortPair]]:
    """So many rounds as there are players, less one if their number is even; in each everybody plays once, or rests.

    Who meets whom in which round is left to ``rng``. In the plain order all circuits of a round run side by side, and
    those along the mesh are all long: drawn by lot each round has its share of long and short ones, in all directions.
    """
    ring: list[int | None] = list(players)
    rng.shuffle(ring)
    if len(ring) % 2:
        ring.append(None)
    fixed = ring.pop()
    count = len(ring)
    rounds: list[list[PortPair]] = []
    for turn in range(count):
        pairs = [(fixed, ring[turn])]
        pairs += [(ring[(turn + step) % count], ring[turn - step]) for step in range(1, count // 2 + 1)]
        rounds.append([(min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None])
    return rounds


def exchange(one: Sequence[PortPair], other: Sequence[PortPair], rng: Random) -> tuple[list[PortPair], list[PortPair]]:
    """Two other rounds with the same pairs: some of the cycles that two rounds make together change sides.

    In the graph of the pairs of both rounds everybody has at most two others, so it falls into cycles and chains, and
    each can be handed over as a whole.
    """
    met: dict[int, list[tuple[PortPair, int]]] = {}
    for side, pairs in enumerate((one, other)):
        for pair in pairs:
            for port in pair:
                met.setdefault(port, []).append((pair, side))
    rounds: tuple[list[PortPair], list[PortPair]] = ([], [])
    seen: set[tuple[PortPair, int]] = set()
    for start in (*((pair, 0) for pair in one), *((pair, 1) for pair in other)):
        if start in seen:
            continue
        swap, reached = rng.random() < 0.5, [start]  # noqa: PLR2004 - even chances
        seen.add(start)
        while reached:
            pair, side = reached.pop()
            rounds[side ^ swap].append(pair)
            joined = {each for port in pair for each in met[port]} - seen
            seen |= joined
            reached += sorted(joined)
    return rounds
