"""Ports for the lanes of a ring and its spares: what is promised can be routed, and is traced here independently."""

from random import Random

import pytest

from lumctl.errors import UsageError
from lumctl.fabric import changes, route, shape, trace
from lumctl.fabric.lane_ports import choose_ports, judged, ring_circuits

RNG = Random


@pytest.mark.parametrize(
    ("name", "ranks", "spares"),
    [
        ("9x9", 15, 1),
        ("7x3", 8, 2),
        ("3x3", 10, 2),
        ("2x2", 4, 1),
        ("hexagon:3", 6, 2),
        ("square:4x4", 6, 2),
        ("7x3", 2, 0),
    ],
)
def test_every_replacement_that_is_promised_keeps_the_other_circuits(name, ranks, spares):
    mesh = shape(name)
    found = choose_ports(mesh, ranks, spares, rng=RNG(1))
    used = [port for pair in (*found.ranks, *found.spares) for port in pair]
    assert len(set(used)) == 2 * (ranks + spares)
    ring = ring_circuits(found.ranks)
    assert len(ring) == ranks
    states = changes({}, route(mesh, ring, states={}))
    assert [trace(mesh, states, a).exit for a, _ in ring] == [b for _, b in ring]
    for rank, able in enumerate(found.replaceable):
        assert able or not spares
        for spare in able:
            after = ring_circuits([*found.ranks[:rank], found.spares[spare], *found.ranks[rank + 1 :]])
            kept, new = [pair for pair in after if pair in ring], [pair for pair in after if pair not in ring]
            moved = states | changes(states, route(mesh, new, states=states, live=kept))
            assert [trace(mesh, moved, a).exit for a, _ in after] == [b for _, b in after]


def test_too_many_accelerators_for_the_ports_are_refused():
    with pytest.raises(UsageError, match="need 30 ports"):
        choose_ports(shape("2x2"), 14, 1, rng=RNG(0))


def test_a_circuit_that_loses_too_much_does_not_count():
    mesh = shape("7x3")
    ranks, spares = [(0, 1), (22, 23)], [(10, 11)]
    assert judged(mesh, ranks, spares) is not None
    assert judged(mesh, ranks, spares, most_loss_db=2.5) is None


def test_the_best_layout_so_far_is_given_when_time_is_up():
    seconds = iter([0.0, *([5.0] * 100)])
    reached = []
    found = choose_ports(shape("7x3"), 15, 1, rng=RNG(0), limit_s=1.0, clock=lambda: next(seconds), tell=reached.append)
    assert len(found.ranks) == 15
    assert found.replacements < 15
