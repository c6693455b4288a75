"""The search for an exact answer: the linear relaxation first, then the integer program between bound and routing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from lumctl.fabric.exact.arcs import Answer, shorter, solve_arcs, useful
from lumctl.fabric.exact.graph import Graph, Way
from lumctl.fabric.exact.relaxation import Relaxation, chosen, relax

_NEAR = 4.0
"""While no routing is known: how far from the bound one is looked for before it is looked for everywhere."""


class Status(StrEnum):
    """How an exact search ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    GAVE_UP = "gave-up"


class Objective(StrEnum):
    """What the best routing is: the fewest passes in all, any routing, or the one whose longest way is shortest."""

    TOTAL = "total"
    FEASIBLE = "feasible"
    LONGEST = "longest"


@dataclass(frozen=True, slots=True)
class Found:
    """How the search ended: the ways, ``None`` if there are none or none was found, and what is proven."""

    status: Status
    ways: tuple[Way, ...] | None
    bound: float


@dataclass(frozen=True, slots=True)
class Searching:
    """One search: what may be used, and how many seconds are left."""

    graph: Graph
    left: Callable[[], float]

    def best(self, objective: Objective) -> Found:
        """The best ways for all demands, as far as the time allows."""
        if not self.graph.demands:
            return Found(Status.OPTIMAL, (), 0.0)
        relaxed = relax(self.graph, self.left)
        if relaxed.bound == inf:
            return Found(Status.INFEASIBLE, None, inf)
        ways = chosen(self.graph, relaxed, self.left()) if self.left() > 0 else None
        if ways is None or (objective is Objective.TOTAL and _total(ways) > relaxed.whole):
            found = self._by_arcs(relaxed, ways, first=objective is not Objective.TOTAL)
        else:
            found = _judged(ways, relaxed)
        if objective is Objective.LONGEST and found.status is not Status.INFEASIBLE:
            return self._shortened(found.ways, relaxed)
        return found

    def _by_arcs(self, relaxed: Relaxation, ways: tuple[Way, ...] | None, *, first: bool) -> Found:
        """Look for a routing better than ``ways``, if there are any yet. A better one costs less by 1 at least."""
        slack = _NEAR if ways is None else _total(ways) - 1 - relaxed.bound
        while self.left() > 0:
            answer = self._within(relaxed, slack, first=first)
            if answer.ways is not None and (ways is None or _total(answer.ways) < _total(ways)):
                ways = answer.ways
            if not answer.done:
                break
            if ways is not None and _total(ways) - 1 - relaxed.bound <= slack:
                return Found(Status.OPTIMAL, ways, float(_total(ways)))
            if ways is None and slack == inf:
                return Found(Status.INFEASIBLE, None, inf)
            slack = inf if ways is None else _total(ways) - 1 - relaxed.bound
        return _judged(ways, relaxed)

    def _within(self, relaxed: Relaxation, slack: float, *, first: bool) -> Answer:
        arcs = [useful(self.graph, demand, relaxed.prices, slack) for demand in range(len(self.graph.demands))]
        return solve_arcs(self.graph, arcs, seconds=self.left(), first=first)

    def _shortened(self, ways: tuple[Way, ...] | None, relaxed: Relaxation) -> Found:
        """The routing whose longest way is shortest: every length is tried, from the least thinkable one up."""
        if ways is None:
            return Found(Status.GAVE_UP, None, relaxed.farthest)
        length = relaxed.farthest
        while length < max(map(len, ways), default=0):
            arcs = [shorter(self.graph, demand, length) for demand in range(len(self.graph.demands))]
            answer = solve_arcs(self.graph, arcs, seconds=self.left(), longest=length, first=True)
            if answer.ways is not None:
                ways = answer.ways
            elif answer.done:
                length += 1
            else:
                return Found(Status.FEASIBLE, ways, length)
        return Found(Status.OPTIMAL, ways, length)


def _judged(ways: tuple[Way, ...] | None, relaxed: Relaxation) -> Found:
    if ways is None:
        return Found(Status.GAVE_UP, None, relaxed.whole)
    return Found(Status.OPTIMAL if _total(ways) <= relaxed.whole else Status.FEASIBLE, ways, relaxed.whole)


def _total(ways: Sequence[Way]) -> int:
    return sum(map(len, ways))
