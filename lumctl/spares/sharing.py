"""Which of several waiting demands gets which free spares: the question for a sharing policy, and its answer.

A sharing policy is one function over plain values. Its answer is checked: each spare goes to one demand, to an
accelerator that it can replace, and a demand is served whole or not at all.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

Answer = Mapping[str, Sequence[str]]
"""By demand that is served: a spare for each of its accelerators, in their order."""


class Demand(NamedTuple):
    """Accelerators of one job that need spares at the same time: all get one, or none does.

    ``usable`` has, for each of them, the free spares that can replace it, in the order of the inventory. ``able``
    has, for each of them, the classes of all spares that could replace it, free or not. ``weight`` is that of the job
    in the inventory. ``remaining_s`` is how long the job still runs, ``attained_s`` how long it has run, in seconds
    times accelerators; ``None`` if that is unknown.

    A tuple, for studies make a million of them, and a frozen dataclass takes three times as long to make.
    ``_replace`` changes one, not ``dataclasses.replace``.
    """

    id: str
    job: str
    asked_at: float
    usable: tuple[tuple[str, ...], ...]
    able: tuple[frozenset[str], ...]
    weight: float = 1.0
    remaining_s: float | None = None
    attained_s: float | None = None

    @property
    def size(self) -> int:
        """How many spares it needs."""
        return len(self.usable)

    @property
    def classes(self) -> frozenset[str]:
        """The classes of all spares that could replace one of its accelerators, free or not."""
        first = self.able[0] if self.able else frozenset[str]()
        if len(self.able) == self.able.count(first):  # the most frequent case, and much faster than to unite them
            return first
        return first.union(*set(self.able))


@dataclass(frozen=True, slots=True)
class FreeSpare:
    """A spare that no job uses. ``replaces`` is how many of the rack's accelerators it could replace."""

    id: str
    accelerator_class: str
    replaces: int


@dataclass(frozen=True, slots=True)
class SharingQuestion:
    """The waiting demands of one rack, oldest first, and its free spares by id.

    ``at`` is the time (seconds since the epoch). ``ageing_s`` is how long a demand waits until it weighs one more.
    ``seed`` differs between questions and is the only source of randomness for a policy.
    """

    at: float
    demands: tuple[Demand, ...]
    spares: Mapping[str, FreeSpare]
    ageing_s: float = 86_400.0
    seed: int = 0


class SharingPolicy(Protocol):
    """Answers a question; demands that are not in the answer go on waiting."""

    def __call__(self, asked: SharingQuestion, /) -> Answer:
        """The spares of each demand that is served now."""


def tightest_first(asked: SharingQuestion) -> Callable[[str], int]:
    """A key that puts common parts before rare ones: a spare that could replace few others is used first."""
    return {name: spare.replaces for name, spare in asked.spares.items()}.__getitem__


def serve(
    demands: Iterable[Demand], spares: Iterable[str], prefer: Callable[[str], float] | None = None
) -> dict[str, tuple[str, ...]]:
    """Serve demands in this order, each whole or not at all; one that cannot be served blocks none of the others.

    Each accelerator gets the first of its usable spares by ``prefer``, unless another one of the same demand needs it.
    """
    left = set(spares)
    answer: dict[str, tuple[str, ...]] = {}
    rows: dict[tuple[str, ...], deque[str]] = {}

    def preferred(usable: tuple[str, ...]) -> deque[str]:
        """What is left of a row, and some that are taken. Demands that share a row share the work."""
        row = rows.get(usable)
        if row is None:
            able = [spare for spare in usable if spare in left]
            row = rows[usable] = deque(able if prefer is None else sorted(able, key=prefer))
        return row

    last, row = None, deque[str]()
    for demand in demands:
        usable = demand.usable
        if len(usable) == 1:  # the most frequent case, and the studies ask it a million times
            if usable[0] is not last:
                last = usable[0]
                row = preferred(last)
            while row:
                spare = row.popleft()
                if spare in left:
                    answer[demand.id] = (spare,)
                    left.remove(spare)
                    break
        elif len(usable) <= len(left):
            chosen = _one_each([[spare for spare in preferred(each) if spare in left] for each in usable])
            if chosen is not None:
                answer[demand.id] = chosen
                left.difference_update(chosen)
    return answer


def _one_each(rows: Sequence[Sequence[str]]) -> tuple[str, ...] | None:
    """A different spare of each row, near its beginning; ``None`` if there is no such choice."""
    holder: dict[str, int] = {}

    def place(row: int, tried: set[str]) -> bool:
        free = next((spare for spare in rows[row] if spare not in holder and spare not in tried), None)
        if free is not None:
            holder[free] = row
            return True
        for spare in rows[row]:
            if spare not in tried:
                tried.add(spare)
                if place(holder[spare], tried):
                    holder[spare] = row
                    return True
        return False

    if not all(place(row, set()) for row in range(len(rows))):
        return None
    chosen = {row: spare for spare, row in holder.items()}
    return tuple(chosen[row] for row in range(len(rows)))


@dataclass(frozen=True, slots=True)
class InvalidAnswer:
    """Why an answer cannot be followed."""

    text: str


def check_answer(asked: SharingQuestion, answer: object) -> dict[str, tuple[str, ...]] | InvalidAnswer:
    """The answer of a policy, or what is wrong with it."""
    if not isinstance(answer, Mapping):
        return InvalidAnswer(f"its answer is {type(answer).__name__}, not a mapping")
    demands = {demand.id: demand for demand in asked.demands}
    taken: dict[str, str] = {}
    found: dict[str, tuple[str, ...]] = {}
    for name, spares in answer.items():
        if (demand := demands.get(name)) is None:
            return InvalidAnswer(f"there is no demand {name!r:.60}")
        usable = demand.usable
        # A tuple first: to ask for a Sequence takes longer than all else here.
        if isinstance(spares, str) or not isinstance(spares, (tuple, Sequence)) or len(spares) != len(usable):
            return InvalidAnswer(f"{name} needs {demand.size} spares, but gets {spares!r:.60}")
        for at, spare in enumerate(spares):
            if spare not in usable[at]:
                return InvalidAnswer(f"{spare!r:.60} cannot be used for {name}")
            if spare in taken:
                return InvalidAnswer(f"{spare} goes to {taken[spare]} and to {name}")
            taken[spare] = name
        found[name] = tuple(spares)
    return found


@dataclass(frozen=True, slots=True)
class Reserve:
    """Spares of a class that are held back from demands that another class could serve too."""

    held: Mapping[str, int] = field(default_factory=dict)

    def applied(self, asked: SharingQuestion) -> SharingQuestion:
        """The question without what its demands may not use.

        Of each class, the spares that could replace most stay held back; a policy then need not know of a reserve.
        """
        if not any(self.held.values()):
            return asked
        held: dict[str, frozenset[str]] = {}
        for name, count in self.held.items():
            mine = [spare.id for spare in asked.spares.values() if spare.accelerator_class == name]
            mine.sort(key=tightest_first(asked))
            held[name] = frozenset(mine[len(mine) - min(count, len(mine)) :])
        return replace(asked, demands=tuple(self._without(demand, held) for demand in asked.demands))

    @staticmethod
    def _without(demand: Demand, held: Mapping[str, frozenset[str]]) -> Demand:
        # Each accelerator by itself: one that nothing else can replace has the reserve, whatever fails beside it.
        rows = []
        for row, able in zip(demand.usable, demand.able, strict=True):
            kept_back = frozenset[str]().union(*(spares for name, spares in held.items() if able - {name}))
            rows.append(tuple(spare for spare in row if spare not in kept_back))
        return demand._replace(usable=tuple(rows))
