"""A lower bound of the number of matchings for all-to-all, for any routes, by prices on ports and waveguides.

In one matching every port has one circuit, and every waveguide carries at most one. Give each port and each waveguide a
price. The circuits of a matching cost at most the sum of all prices. Each pair of ports costs at least its cheapest
path at these prices and the prices of its two ports. So the sum of these costs over all pairs, divided by the sum of
all prices, is a bound for any prices. If only ports have a price, the bound is the number of ports less one. If only
the waveguides between a crowded corner and the rest have a price, it is the bound of that cut.

To find good prices, all pairs take their cheapest paths, and the prices of the most used ports and waveguides are
raised, round by round. This is the dual of the fractional flow problem and comes close to its optimum.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, exp, inf

from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import FREE, TURN, Mesh, PortPair
from lumctl.fabric.search import endless

_STEP, _DECAY = 3.0, 0.1
"""The exponent by which a price rises if its part is used as often as the bound, and its decay over the rounds."""
_ROUNDS, _STALL, _GAIN = 40, 8, 1.002
"""Maximum number of rounds; how many rounds with less gain than the factor end the search; the factor."""
_SLACK = 1e-6
"""The tolerance of sums of prices, so that a rounding error does not round a bound up."""


def matchings_at_least(ports: int) -> int:
    """The bound by the ports alone: a port has one circuit at a time; of an odd number of ports, one has none."""
    return ports - 1 + ports % 2


def matching_bound(
    mesh: Mesh,
    ports: Sequence[int],
    pairs: Collection[PortPair],
    *,
    condition: MeshCondition | None = None,
    enough: int | None = None,
    left: Callable[[], float] = endless,
) -> int:
    """A proven lower bound of the number of matchings for these ``pairs`` of ``ports``.

    Rounds end early if the bound reaches ``enough`` (such as the number of matchings that were found), or if no seconds
    are ``left``. ``pairs`` are all pairs that can be routed; they must not contain ``unreachable`` ones.
    """
    by_port: dict[int, list[int]] = {port: [] for port in ports}
    for a, b in pairs:
        by_port[a].append(b)
    degrees = Counter(port for pair in pairs for port in pair)
    # Two bounds without prices: the port with the most pairs, and how many pairs fit into one matching.
    best = max((*degrees.values(), len(pairs) / max(len(ports) // 2, 1)), default=0.0)
    prices = CongestionPrices(mesh, ports, condition or MeshCondition())
    stalled = 0
    for _ in range(_ROUNDS):
        if left() <= 0 or (enough is not None and ceil(best - _SLACK) >= enough) or stalled > _STALL:
            break
        found = prices.after_round(by_port, best)
        stalled = 0 if found > _GAIN * best else stalled + 1
        best = max(best, found)
    return ceil(best - _SLACK)


@dataclass
class CongestionPrices:
    """The price of each waveguide, by its number, and of each port: those that most pairs use are expensive."""

    mesh: Mesh
    ports: Sequence[int]
    condition: MeshCondition
    _wire_of: list[int] = field(default_factory=list)
    _turns: list[tuple[int, ...]] = field(default_factory=list)
    _wire: list[float] = field(default_factory=list)
    _port: dict[int, float] = field(default_factory=dict)
    _rounds: int = 0

    def __post_init__(self) -> None:
        self._wire_of = [FREE] * len(self.mesh.peers)
        wires = 0
        for terminal, peer in enumerate(self.mesh.peers):
            if peer > terminal:
                self._wire_of[terminal] = self._wire_of[peer] = wires
                wires += 1
        self._turns = [self._open(terminal >> 2) for terminal in range(len(self.mesh.peers))]
        self._wire = [1.0 / max(wires, 1)] * wires
        self._port = {port: 1.0 / len(self.ports) for port in self.ports}

    def _open(self, puc: int) -> tuple[int, ...]:
        if puc in self.condition.damaged:
            return ()
        state = self.condition.stuck.get(puc)
        return (2, 3) if state is None else (TURN[state],)

    def after_round(self, by_port: Mapping[int, Sequence[int]], bound: float) -> float:
        """Raise the prices once, given the known ``bound``, and return the bound that the new prices prove.

        ``by_port`` lists partners of each port, so that every pair occurs once.
        """
        self._raise_used(by_port, _STEP / (1 + _DECAY * self._rounds), max(bound, 1.0))
        self._rounds += 1
        return self._bound(by_port)

    def port_costs(self) -> dict[int, float]:
        """The cost of the paths from each port to all others; it is highest where they share contested waveguides."""
        found = {port: self._ways(port)[0] for port in self.ports}
        ends = [self.mesh.ports[port] for port in self.ports]
        return {port: sum(costs[end] for end in ends if costs[end] < inf) for port, costs in found.items()}

    def _raise_used(self, by_port: Mapping[int, Sequence[int]], step: float, bound: float) -> None:
        """Route the pairs of each port in turn on their cheapest paths, and raise the prices of the used parts."""
        for port, others in by_port.items():
            used = self._used(port, others)
            for wire, times in used.items():
                self._wire[wire] *= exp(step * times / bound)
            for each in (port, *others):
                times = len(others) if each == port else 1
                self._port[each] *= exp(step * times / bound)
        # Only the ratios of prices count, and they would grow without a limit.
        whole = self._whole()
        self._wire = [price / whole for price in self._wire]
        self._port = {port: price / whole for port, price in self._port.items()}

    def _bound(self, by_port: Mapping[int, Sequence[int]]) -> float:
        """The bound that the prices prove."""
        wanted = 0.0
        for port, others in by_port.items():
            if others:
                costs, _ = self._ways(port)
                wanted += sum(
                    self._port[port] + self._port[other] + costs[self.mesh.ports[other]]
                    for other in others
                    if costs[self.mesh.ports[other]] < inf
                )
        return wanted / self._whole()

    def _whole(self) -> float:
        return sum(self._wire) + sum(self._port.values())

    def _used(self, port: int, others: Iterable[int]) -> dict[int, int]:
        """How often the paths from one port to the others use each waveguide."""
        used: dict[int, int] = {}
        start = self.mesh.ports[port]
        costs, came = self._ways(port)
        for other in others:
            terminal = self.mesh.ports[other]
            if costs[terminal] == inf:
                continue
            while (terminal := came[terminal]) != start:
                wire = self._wire_of[terminal]
                used[wire] = used.get(wire, 0) + 1
        return used

    def _ways(self, port: int) -> tuple[list[float], list[int]]:
        """By terminal (where light enters or leaves a PUC), the least cost from ``port`` and the previous terminal."""
        peers, wire_of, wire, turns = self.mesh.peers, self._wire_of, self._wire, self._turns
        costs, came = [inf] * len(peers), [FREE] * len(peers)
        start = self.mesh.ports[port]
        costs[start] = 0.0
        queue = [(0.0, start)]
        while queue:
            cost, terminal = heappop(queue)
            # The queue cannot lower a price, so an entry that became outdated is passed over.
            if cost > costs[terminal]:
                continue
            for turn in turns[terminal]:
                out = terminal ^ turn
                entered = peers[out]
                if entered == FREE:
                    if cost < costs[out] and out != start:
                        costs[out], came[out] = cost, terminal
                    continue
                price = cost + wire[wire_of[entered]]
                if price < costs[entered]:
                    costs[entered], came[entered] = price, terminal
                    heappush(queue, (price, entered))
        return costs, came
