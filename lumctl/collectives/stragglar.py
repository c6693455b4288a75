"""An all-reduce in the fewest rounds after a late rank's arrival, for any number of ranks. Built without search.

The problem (StragglAR, arXiv 2505.23523). While the straggler is late, the other N = n - 1 ranks reduce-scatter: each
of the N chunks is then held by one owner, reduced over all but the straggler. In a round each rank sends at most one
chunk and receives at most one.

**Lower bound.** The straggler's contribution to a chunk reaches another rank only by a send of the straggler, which
sends one chunk a round. So some chunk first leaves it in round N or later. After that round at most two ranks have the
contribution, and each further round at most doubles them: n ranks need ceil(log2 n) - 1 more. No schedule has fewer
than N + ceil(log2 n) - 1 = n + L - 2 rounds, with L = ceil(log2 n).

**No exchange.** In the published schedule the straggler swaps each chunk with its owner: one rank receives the new
chunk and sends no complete one. That closes for powers of two; for other n it takes a search, and the best found are
often one or two rounds above the bound. Here these are two ranks. One sends its partial chunk to the straggler, and in
the *next* round the straggler sends that chunk, now complete, to any rank. (It sends the first chunk uncombined to its
owner, and receives it back at the end.) So only the sender of the partial chunk must be another rank in each round.

**The pipeline.** Count the age of a chunk from the round in which the straggler sends it. At age a it is held by h(a)
of the others, h(1) = 1, and is complete at age L + 1: h(L + 1) = N. If every holder sends, h doubles each round and
ends at 2^L, which is D = 2^L - N too many (1 <= D <= 2^(L-1)). A holder that does not send a chunk of age a saves
2^(L - a) of them. So the savings of a round must sum to D, and in the steady state only one rank may send nothing:

- One *ordinary* rank of age v rests, for it sends its partial chunk to the straggler. It saves 2^(L - v). An ordinary
  rank carries one chunk in flight. Those that carry the oldest one send it to all that carry another, and receive a
  younger one from these. So each rank sends and receives in every round, and carries one chunk again.
- A *keeper* always has the K oldest chunks in flight, sends one of them, of age L - j, and so saves 2^K - 1 - 2^j. It
  receives the chunk of age L - K each round.

D is the largest power of two in it, for the resting rank, and a sum of savings of keepers for the rest: at most L / 2
keepers, taken greedily. For powers of two D = 1 and there is none.

**Beginning and end.** At first the chunks in flight are imaginary: their sends are left out, so the pipeline needs no
ramp of its own. Imaginary chunks also leave ranks idle, so keepers send their partial chunks then. After the last new
chunk the straggler helps to spread it, so that it needs one round less; sizes h(1) + ... + h(i + 1) of its holders
after i rounds always suffice, because h(i + 2) <= h(i + 1) + ... + h(1) + 1.

**Who rests.** Ordinary ranks of equal age are interchangeable. Ranks that have not rested yet are led to age v one a
round, and wait among the oldest otherwise. Tests build and check every n from 2 to 1,024: all have n + L - 2 rounds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice, repeat

from lumctl.collectives.schedule import Algorithm, Schedule, ScheduleRound, Send, require_ranks, require_straggler


def lower_bound(ranks: int) -> int:
    """The least number of rounds after the straggler's arrival, if no send carries more than one chunk."""
    return ranks + (ranks - 1).bit_length() - 2


def stragglar(ranks: int, straggler: int) -> Schedule:
    """The schedule for any number of ranks and any straggler, in :func:`lower_bound` rounds.

    Raises:
        UsageError: the number of ranks is not from 2 to 1,024, or the straggler is none of them.
    """
    require_ranks(ranks)
    require_straggler(straggler, ranks)
    others = [rank for rank in range(ranks) if rank != straggler]
    if len(others) == 1:
        rounds: list[ScheduleRound] = [
            [Send(others[0], straggler, (0,), reduces=True), Send(straggler, others[0], (0,), reduces=True)]
        ]
        owners = others
    else:
        owners, rounds = _Construction(others, straggler).built()
    bound = lower_bound(ranks)
    return Schedule(Algorithm.STRAGGLAR, ranks, len(others), straggler, tuple(owners), tuple(rounds), bound)


@dataclass(frozen=True, slots=True)
class Keeper:
    """A rank that always has the ``kept`` oldest chunks in flight, and sends the one of age ``sends``."""

    rank: int
    kept: int
    sends: int


def kept_and_saved(excess: int) -> list[tuple[int, int]]:
    """Keepers (K, j) whose savings 2^K - 1 - 2^j sum to ``excess``, largest first."""
    found = []
    while excess:
        kept = (excess + 1).bit_length()  # the smallest K with excess <= 2^K - 2
        power = next(j for j in range(kept) if (1 << kept) - 1 - (1 << j) <= excess)
        found.append((kept, power))
        excess -= (1 << kept) - 1 - (1 << power)
    return found


class _Construction:
    """The pipeline while it runs.

    ``carriers[age]`` are the ordinary ranks that carry the chunk of this age, from 1 to ``length``. ``entries[age]`` is
    how many carriers of the oldest chunk receive the one of this age in a round; age 0 is a new chunk.
    """

    def __init__(self, others: list[int], straggler: int) -> None:
        self.straggler = straggler
        self.count = len(others)
        self.length = self.count.bit_length()  # ceil(log2 n), because n is count + 1
        excess = (1 << self.length) - self.count
        rest = excess.bit_length() - 1
        self.resting_age = self.length - rest
        self.keepers = [
            Keeper(rank, kept, self.length - power)
            for rank, (kept, power) in zip(others, kept_and_saved(excess - (1 << rest)), strict=False)
        ]
        holders = [0, 1]
        for age in range(1, self.length + 1):
            resting = sum(keeper.kept > self.length - age and keeper.sends != age for keeper in self.keepers)
            holders.append(2 * holders[age] - resting - (age == self.resting_age))
        self.entries = [1, *(holders[age + 1] - holders[age] for age in range(1, self.length))]
        for keeper in self.keepers:
            self.entries[self.length - keeper.kept] -= 1
        self.carriers: list[list[int]] = [[]]
        ordinary = iter(others[len(self.keepers) :])
        for age in range(1, self.length + 1):
            kept = sum(keeper.kept > self.length - age for keeper in self.keepers)
            self.carriers.append(list(islice(ordinary, holders[age] - kept)))
        # Their rounds come first: while the chunk that a keeper would send is imaginary, it is free.
        self.first_senders = [keeper.rank for keeper in sorted(self.keepers, key=lambda keeper: keeper.sends)]
        self.has_sent = set(self.first_senders)
        self.owners: list[int] = []
        self.lacks_first = True
        self.chunks = [(chunk,) for chunk in range(self.count)]
        self.sends: list[Send] = []

    def built(self) -> tuple[list[int], list[ScheduleRound]]:
        """The owners of the chunks, and the rounds."""
        rounds: list[ScheduleRound] = []
        for at in range(self.count + self.length - 1):
            self.sends = []
            # The first chunk has age ``at``, and after age ``length`` all hold it.
            holders = self.carriers if at > self.length else self.carriers[at : at + 1]
            if at < self.count:
                self._advance(at)
            else:
                self._drain(at, at - self.count)
            if at >= self.count - 1 and self.lacks_first:
                self._return_first(holders)
            rounds.append(self.sends)
        return self.owners, rounds

    def _advance(self, at: int) -> None:
        """A round in which the straggler sends a new chunk."""
        entering = self._entering(at)
        if at == 0:
            self.owners += entering[0]
        resting = self._resting(at)
        self._pass_on(at, 1, entering, resting)
        self._send([self.straggler], entering[0], at, reduces=at == 0)
        self.carriers = [[], entering[0], *(self.carriers[age] + entering[age] for age in range(1, self.length))]

    def _drain(self, at: int, passed: int) -> None:
        """The round ``passed`` + 1 after the last new chunk, which is spread by the straggler too."""
        youngest = passed + 2
        waiting = list(self.carriers[self.length])
        entering: list[list[int]] = [[] for _ in range(self.length)]
        for age in range(youngest, self.length):
            entering[age] = [waiting.pop() for _ in range(self.entries[age])]
        self._pass_on(at, youngest, entering, None)
        last = self.carriers[youngest - 1]
        keepers = [keeper.rank for keeper in self.keepers if keeper.kept == self.length - youngest + 1]
        self._send([self.straggler, *last], keepers + waiting, self.count - 1)
        older = (self.carriers[age] + entering[age] for age in range(youngest, self.length))
        self.carriers = [*([] for _ in range(youngest)), last + waiting, *older]

    def _pass_on(self, at: int, youngest: int, entering: list[list[int]], resting: int | None) -> None:
        """The others' sends of the oldest chunk, and of all from age ``youngest`` on."""
        carriers, oldest = self.carriers, self.length
        for age in range(youngest, oldest + 1):
            senders = [rank for rank in carriers[age] if rank != resting]
            senders += (keeper.rank for keeper in self.keepers if keeper.sends == age)
            if age == oldest:
                receivers = [rank for each in carriers[:oldest] for rank in each]
            else:
                receivers = [keeper.rank for keeper in self.keepers if keeper.kept == oldest - age] + entering[age]
            self._send(senders, receivers, at - age)

    def _send(self, senders: list[int], receivers: list[int], chunk: int, *, reduces: bool = False) -> None:
        """One send to each receiver; an imaginary chunk needs none. There may be more senders than are needed."""
        if chunk >= 0:
            columns = zip(senders, receivers, repeat(self.chunks[chunk]), repeat(reduces), strict=False)
            self.sends += map(Send._make, columns)

    def _entering(self, at: int) -> list[list[int]]:
        """Which carriers of the oldest chunk receive the chunk of each age; those that must still rest are led there.

        One of them a round is led to the resting age; the others are to come back to the oldest age soon.
        """
        oldest = self.carriers[self.length]
        fresh = [rank for rank in oldest if rank not in self.has_sent]
        others = [rank for rank in oldest if rank in self.has_sent]
        entering: list[list[int]] = [[] for _ in range(self.length)]

        def enter(age: int, ranks: list[int], most: int) -> None:
            at = max(len(ranks) - min(most, self.entries[age] - len(entering[age])), 0)
            entering[age] += ranks[at:]
            del ranks[at:]

        if at == 0:
            self.has_sent.add(fresh[-1])
            enter(0, fresh, 1)
        below = range(self.resting_age - 1, -1, -1)
        for age in below:
            if all(rank in self.has_sent for rank in self.carriers[age]):
                enter(age, fresh, 1)
        ages = (*range(self.length - 1, self.resting_age - 1, -1), *below)
        for ranks in (fresh, others):
            for age in ages:
                enter(age, ranks, len(ranks))
        return entering

    def _resting(self, at: int) -> int:
        """The ordinary rank that sends no chunk in flight. It sends its partial chunk, if no other idle rank does."""
        resting = self.carriers[self.resting_age]
        if at == self.count - 1:
            return resting[0]
        if at < len(self.first_senders):
            sender = self.first_senders[at]
        else:
            idle: Iterable[int] = chain(resting, *self.carriers[:at:-1])  # at first also those whose chunk is imaginary
            sender = next(each for each in idle if each not in self.has_sent)
        self.has_sent.add(sender)
        self.owners.append(sender)
        self.sends.append(Send(sender, self.straggler, self.chunks[at + 1], reduces=True))
        return sender if sender in resting else resting[0]

    def _return_first(self, holders: Iterable[Iterable[int]]) -> None:
        """An idle rank that holds the first chunk complete sends it to the straggler."""
        busy = {send.sender for send in self.sends}
        idle = next((rank for rank in chain.from_iterable(holders) if rank not in busy), None)
        if idle is not None:
            self._send([idle], [self.straggler], 0)
            self.lacks_first = False
