from random import Random

from hypothesis import given
from hypothesis import strategies as st

from lumctl.fabric import mesh
from lumctl.fabric.negotiation import negotiate
from lumctl.fabric.refinement import level, shorten
from lumctl.fabric.search import Prices, Unroutable, wires_of


@st.composite
def negotiated(draw):
    """Ways that were negotiated on a mesh on which some PUCs are dearer than others."""
    shape = mesh(draw(st.integers(2, 6)), draw(st.integers(2, 6)))
    rng = Random(draw(st.integers(0, 10**6)))  # noqa: S311 - the same choices in every run
    prices = Prices([1.0] * (2 * shape.puc_count), [0.0] * len(shape.peers))
    for puc in rng.sample(range(shape.puc_count), 4):
        prices.pass_costs(puc, rng.choice((0.5, 2.0, float("inf"))))
    ports = rng.sample(range(shape.port_count), 2 * rng.randint(1, shape.port_count // 4))
    demands = list(zip(ports[::2], ports[1::2], strict=True))
    try:
        return shape, demands, negotiate(shape, demands, prices), prices
    except Unroutable:
        return shape, [], [], prices


def cost(way, prices):
    return sum(prices.turn[(terminal >> 2) * 2 + turn] for terminal, turn in way)


def require_apart(shape, demands, ways):
    """Each way leads from its port to its other one, and no waveguide is used twice."""
    used = [wire for way in ways for wire in wires_of(shape, way)]
    assert len(set(used)) == len(used)
    for (a, b), way in zip(demands, ways, strict=True):
        terminal = shape.ports[a]
        for entered, turn in way:
            assert entered == terminal
            out = terminal ^ (2 + turn)
            terminal = shape.peers[out]
        assert out == shape.ports[b]


@given(negotiated())
def test_shortened_ways_are_apart_and_together_not_dearer(task):
    shape, demands, ways, prices = task
    found = shorten(shape, demands, ways, prices)
    require_apart(shape, demands, found)
    assert sum(cost(way, prices) for way in found) <= sum(cost(way, prices) for way in ways) + 1e-6


@given(negotiated())
def test_levelled_ways_are_apart_and_the_dearest_is_not_dearer(task):
    shape, demands, ways, prices = task
    found = level(shape, demands, ways, prices)
    require_apart(shape, demands, found)
    dearest = max((cost(way, prices) for way in ways), default=0.0)
    assert max((cost(way, prices) for way in found), default=0.0) <= dearest + 1e-6


def test_a_detour_that_nobody_needs_is_taken_back():
    shape = mesh(3, 3)
    prices = Prices([1.0] * (2 * shape.puc_count), [0.0] * len(shape.peers))
    (straight,) = negotiate(shape, [(3, 15)], prices)
    dear = prices.copy()
    for terminal, _ in straight[2:-2]:
        dear.pass_costs(terminal >> 2, 5.0)
    (detour,) = negotiate(shape, [(3, 15)], dear)
    assert len(detour) > len(straight)
    assert len(shorten(shape, [(3, 15)], [detour], prices)[0]) == len(straight)
    assert len(level(shape, [(3, 15)], [detour], prices)[0]) == len(straight)
