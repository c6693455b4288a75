"""The cheapest way of one circuit through a network, by A*."""

from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

from lumctl.fabric.geometry import FREE
from lumctl.fabric.network.joint import Joint

Step = tuple[int, int]
"""The terminals at which light comes into a PUC or a switch, and at which it leaves it."""

Way = tuple[Step, ...]


class Prices:
    """What ways cost now: passing a PUC in a state, leaving a device's terminal, and using any fibre of a bundle.

    ``inf`` is forbidden. No price ever falls below what it was when :func:`prices_ahead` looked.
    """

    def __init__(self, joint: Joint, turn: list[float], wire: list[float], bundle: list[float]) -> None:
        self.joint = joint
        self.turn = turn
        self.wire = wire
        self.bundle = bundle

    def moves(self, entered: int, goal: int) -> Iterator[tuple[int, float]]:
        """Where light that comes in at a terminal can leave what it came into, and what that costs."""
        joint = self.joint
        if entered < joint.first_switch:
            turns = 2 * (entered >> 2)
            yield entered ^ 2, self.turn[turns]
            yield entered ^ 3, self.turn[turns + 1]
            return
        switch = joint.switch_at[entered]
        cost = joint.crossing[switch]
        for out in joint.linked[switch]:
            if out != entered:
                yield out, cost
        if joint.switch_at.get(goal) == switch:
            yield goal, cost

    def onward(self, out: int) -> float:
        """What it costs to go on from where light left, to whatever is joined there."""
        bundle = self.joint.bundle_at[out]
        return self.wire[out] if bundle < 0 else self.wire[out] + self.bundle[bundle]


def cheapest_way(prices: Prices, start: int, goal: int, ahead: list[float]) -> Way | None:
    """The cheapest way from port to port, ``None`` if there is none; among equals always the same one.

    It never turns back in a PUC. It may still want one PUC in both states, or one fibre or waveguide twice: that is
    left to the negotiation, so that ``None`` is proof. ``ahead`` is from :func:`prices_ahead`.
    """
    peers = prices.joint.peers
    best = {start: 0.0}
    came: dict[int, Step] = {}
    queue = [(ahead[start], start)] if ahead[start] < inf else []
    settled: set[int] = set()
    while queue:
        _, entered = heappop(queue)
        if entered == goal:
            return _walked_back(came, start, goal)
        if entered in settled:
            continue
        settled.add(entered)
        so_far = best[entered]
        for out, price in prices.moves(entered, goal):
            cost = so_far + price
            if out == goal:
                following, left = goal, 0.0
            elif peers[out] == FREE:
                continue
            else:
                cost += prices.onward(out)
                following = peers[out]
                left = ahead[following]
            if cost + left < inf and cost < best.get(following, inf):
                best[following] = cost
                came[following] = (entered, out)
                heappush(queue, (cost + left, following))
    return None


def _walked_back(came: dict[int, Step], start: int, goal: int) -> Way:
    steps = [came[goal]]
    while steps[-1][0] != start:
        steps.append(came[steps[-1][0]])
    return tuple(reversed(steps))


def price_of(prices: Prices, way: Way) -> float:
    """What a way costs."""
    moves = sum(next(price for out, price in prices.moves(entered, left) if out == left) for entered, left in way)
    return moves + sum(prices.onward(out) for _, out in way[:-1])


def prices_ahead(prices: Prices, start: int, goal: int) -> list[float]:
    """For light from ``start`` that comes in at each terminal, what it still pays at least until it leaves at ``goal``.

    A way of light can be walked backwards at the same price, so one search from the goal answers for all terminals.
    """
    peers = prices.joint.peers
    ahead = [inf] * len(peers)
    queue = [(0.0, goal)]
    settled: set[int] = set()
    while queue:
        so_far, entered = heappop(queue)
        if entered in settled:
            continue
        settled.add(entered)
        for out, price in prices.moves(entered, start):
            cost = so_far + price
            if cost < ahead[out]:
                ahead[out] = cost
                if peers[out] != FREE and (on := cost + prices.onward(out)) < inf:
                    heappush(queue, (on, peers[out]))
    return ahead
