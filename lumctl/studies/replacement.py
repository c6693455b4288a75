"""Replaces failed accelerators of a published rack by its spares: whether fibres join each spare with the slice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lumctl.slices.allocation import SliceCircuit
from lumctl.slices.fibre_graph import fibre_graph, route_circuits
from lumctl.slices.torus import Coordinates, Torus
from lumctl.studies.torus_cluster import LiveSlice, live_placement, racks_with

SPARE_SERVER: Coordinates = (1, 1, 3)
"""The server whose accelerators are the spares. The source does not say where these are."""


def joined_spares(slices: Sequence[LiveSlice], failed: Sequence[Coordinates], fibres: int) -> int:
    """How many failed accelerators of one rack get a spare that light joins with their slice, one after another.

    The circuits of a failed one are torn down, and those of its spare take any fibres that are free then; no other
    circuit is moved. One that cannot be joined gets no spare, and its circuits stay down. It is not proven that none of
    its ways suffices.
    """
    (torus,) = racks_with(slices, fibres, racks=1)
    state = {each: _SliceState(each, torus, fibres) for each in slices}
    count = 0
    for accelerator in failed:
        own = next(state[each] for each in slices if accelerator in each.accelerators)
        torus, is_joined = own.replaced(torus, accelerator)
        count += is_joined
    return count


class _SliceState:
    """A slice with the server of each rank and its circuits, while accelerators are replaced."""

    def __init__(self, of: LiveSlice, torus: Torus, fibres: int) -> None:
        placement = live_placement(replace(of, rack=0), fibres)
        self.ranks = placement.accelerators
        self.servers = [torus.server_of(at) for at in self.ranks]
        self.circuits = list(placement.circuits)

    def replaced(self, torus: Torus, accelerator: Coordinates) -> tuple[Torus, bool]:
        """The torus after one more replacement, and whether the spare was joined."""
        rank = self.ranks.index(accelerator)
        down = [circuit for circuit in self.circuits if rank in circuit.ranks]
        self.circuits = [circuit for circuit in self.circuits if rank not in circuit.ranks]
        self.servers[rank] = SPARE_SERVER
        torus = _changed(torus, down, -1)
        wants = [(*(torus.number_of[self.servers[end]] for end in circuit.ranks), 1) for circuit in down]
        ways = route_circuits(fibre_graph(torus, torus.levels[-1]), [(a, b, count) for a, b, count in wants])
        if ways is None:
            return torus, False
        names = [tuple(torus.edges[edge].name for edge in way) for (way,) in ways]
        lit = [replace(circuit, edges=edges) for circuit, edges in zip(down, names, strict=True)]
        self.circuits += lit
        return _changed(torus, lit, 1), True


def _changed(torus: Torus, circuits: Sequence[SliceCircuit], by: int) -> Torus:
    """The torus after circuits were lit (1) or torn down (-1)."""
    counts = Counter(name for circuit in circuits for name in circuit.edges)
    edges = tuple(replace(edge, used=edge.used + by * counts[edge.name]) for edge in torus.edges)
    return replace(torus, edges=edges)
