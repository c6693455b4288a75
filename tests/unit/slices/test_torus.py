"""What a torus and a demand accept, and which circuits a demand stands for."""

from collections import Counter

import networkx as nx
import pytest

from lumctl.errors import UsageError
from lumctl.slices.allocation import SliceCircuit, SliceDemand, SlicePlacement
from lumctl.slices.torus import FibreEdge, Torus

EDGE = FibreEdge("a", ((0, 0, 0), (1, 0, 0)), capacity=4, used=1)


def test_an_accelerator_lies_on_the_server_of_its_coordinates():
    torus = Torus((4, 4, 2), (2, 2, 1), frozenset({(3, 0, 1), (2, 1, 1), (0, 0, 0)}), (EDGE,))
    assert (torus.grid, torus.accelerators_per_server, torus.fullest) == ((2, 2, 2), 4, 1)
    assert torus.free_on[1, 0, 1] == ((2, 1, 1), (3, 0, 1))
    assert torus.free_on[0, 1, 0] == ()
    assert len(torus.servers) == 8


def test_a_damaged_edge_has_nothing_free_below_zero():
    assert FibreEdge("a", EDGE.ends, capacity=1, used=3).free == 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"server_shape": (3, 2, 1)}, "servers of 3x2x1 do not fill a torus of 4x4x2"),
        ({"shape": (0, 4, 2)}, "do not fill"),
        ({"free": frozenset({(4, 0, 0)})}, "accelerator .4, 0, 0. is not in the torus"),
        ({"edges": (FibreEdge("b", ((0, 0, 0), (0, 0, 0)), 1),)}, "edge b does not join two servers"),
        ({"edges": (FibreEdge("b", ((0, 0, 0), (2, 0, 0)), 1),)}, "edge b does not join two servers"),
        ({"edges": (EDGE, EDGE)}, "two edges are called a"),
    ],
)
def test_a_torus_that_cannot_be_is_refused(changed, said):
    whole = {"shape": (4, 4, 2), "server_shape": (2, 2, 1), "free": frozenset(), "edges": (EDGE,)}
    with pytest.raises(UsageError, match=said):
        Torus(**(whole | changed))


@pytest.mark.parametrize("changed", [{"shape": (4, 0, 2)}, {"shape": (4, 4, -1)}, {"widths": (1, 0, 1)}])
def test_a_demand_that_cannot_be_is_refused(changed):
    with pytest.raises(UsageError):
        SliceDemand(**({"shape": (4, 4, 2)} | changed))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 1), (4, 4, 2), (3, 2, 5)])
def test_links_are_the_grid_and_with_rings_the_torus(shape):
    grid = nx.grid_graph(dim=shape[::-1])
    found = Counter(frozenset((a, b)) for a, b, _ in SliceDemand(shape).links())
    assert found == Counter(frozenset(pair) for pair in grid.edges)
    closed = SliceDemand(shape, rings=(True, True, True), widths=(1, 1, 2))
    degree = Counter(end for a, b, _ in closed.links() for end in (a, b))
    assert set(degree.values()) <= {2 * (shape[0] > 1) + 2 * (shape[1] > 1) + 4 * (shape[2] > 1)}


def test_a_placement_counts_the_fibres_of_its_circuits():
    torus = Torus((4, 2, 1), (2, 2, 1), frozenset(), (EDGE,))
    circuits = (SliceCircuit((0, 1), 0, ()), SliceCircuit((1, 2), 0, ("a",)), SliceCircuit((0, 3), 1, ("a",)))
    placement = SlicePlacement((), circuits, contiguous=True, fullest=3, bound=3)
    assert (placement.fibres_used, placement.added(torus), placement.optimal) == (2, {"a": 2}, True)
