"""Which rounds of a schedule the light of a job carries, and what changing the light between rounds would cost."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lumctl.collectives.schedule import Schedule

RankPair = tuple[int, int]
"""A sender and a receiver."""


@dataclass(frozen=True, slots=True)
class RoundsInLight:
    """For each round the sends ``without_light``; and the least ``changes`` of light after which none is left.

    Each change takes at least ``settling_s`` seconds, in which the light that changes carries nothing.
    """

    without_light: tuple[tuple[RankPair, ...], ...]
    changes: int
    settling_s: float

    @property
    def carried(self) -> int:
        """How many rounds the present light carries at once."""
        return sum(not pairs for pairs in self.without_light)

    @property
    def change_s(self) -> float:
        """The least time that all changes take in one all-reduce."""
        return self.changes * self.settling_s


def rounds_in_light(schedule: Schedule, lit: Collection[RankPair], lanes: int, settling_s: float) -> RoundsInLight:
    """The rounds of a schedule on the light of its ranks.

    ``lit`` are the pairs whose light is on at the start; ``lanes`` is the largest number of lanes of any rank, each
    with one transmitter and one receiver. Whether the devices have routes for a change is not asked, so that the number
    of changes is a lower bound: light is changed only before a round that lacks some, and then made for as many of the
    next rounds as the lanes allow.
    """
    rounds = [frozenset((send.sender, send.receiver) for send in each) for each in schedule.rounds]
    without = tuple(tuple(sorted(pairs - set(lit))) for pairs in rounds)
    changes, light, needed = 0, frozenset(lit), frozenset[RankPair]()
    for pairs in rounds:
        if pairs <= light:
            continue
        if changes and _fits(needed | pairs, lanes):
            needed |= pairs
        else:
            changes, needed = changes + 1, pairs
        light = needed
    return RoundsInLight(without, changes, settling_s)


def _fits(pairs: Iterable[RankPair], lanes: int) -> bool:
    """Whether no rank needs more transmitters or receivers than it has lanes."""
    sent, received = Counter[int](), Counter[int]()
    for sender, receiver in pairs:
        sent[sender] += 1
        received[receiver] += 1
    return max([*sent.values(), *received.values()], default=0) <= lanes
