"""The largest slices of chosen and random tori, by counting boxes."""

import random
from dataclasses import replace
from itertools import product
from math import prod

import pytest
from torus_states import torus_of

from lumctl.slices.fragmentation import Fragmentation, aligned_box, fragmentation, index, largest_slice, overall


def torus64(free=None):
    return torus_of((2, 2, 4), (2, 2, 1), 4, free)


def largest_box_by_counting(free):
    """The accelerators in the largest box of a 4x4x4 torus, wrap-around included."""
    cubes = product(range(4), range(4), range(4), range(1, 5), range(1, 5), range(1, 5))
    boxes = (
        {((x + i) % 4, (y + j) % 4, (z + k) % 4) for i in range(a) for j in range(b) for k in range(c)}
        for x, y, z, a, b, c in cubes
    )
    return max((len(box) for box in boxes if box <= free), default=0)


def test_a_free_torus_is_not_fragmented():
    whole = fragmentation(torus64())
    assert whole == Fragmentation(64, 64, 64, 64, (4, 4, 4))
    assert (whole.aligned_index, whole.contiguous_index, whole.scattered_index) == (0, 0, 0)


def test_a_full_torus_is_not_fragmented_either():
    assert fragmentation(torus64(())) == Fragmentation(0, 0, 0, 0)
    assert fragmentation(torus64(())).scattered_index == 0
    assert largest_slice(torus64(())) is None


def test_servers_that_touch_at_corners_only_are_a_large_slice_by_light_alone():
    free = [place for place in torus64().free if (place[0] // 2 + place[1] // 2 + place[2]) % 2]
    found = fragmentation(torus64(free))
    assert (found.free, found.aligned, found.contiguous) == (32, 4, 4)
    assert found.scattered == 32
    assert found.contiguous_index == pytest.approx(7 / 8)


@pytest.mark.parametrize("seed", range(6))
def test_random_holes_leave_the_largest_box(seed):
    rng = random.Random(seed)  # noqa: S311 - the same choices in every run
    free = frozenset(place for place in torus64().free if rng.random() < rng.choice((0.5, 0.9)))
    found = fragmentation(torus64(free))
    largest = largest_slice(torus64(free), contiguous=True)
    assert prod(largest) == found.contiguous == largest_box_by_counting(free)
    assert found.aligned <= found.contiguous <= found.scattered <= found.free == len(free)


def test_an_aligned_box_lies_at_multiples_of_its_extents():
    shifted = frozenset((x, y, z) for x in (1, 2) for y in (0, 1) for z in range(4))
    assert aligned_box(torus64(shifted), (2, 2, 4)) is None
    found = aligned_box(torus64(shifted | {(3, 0, 0), (3, 1, 0)}), (2, 2, 1))
    assert found == ((2, 0, 0), (2, 1, 0), (3, 0, 0), (3, 1, 0))


def test_dead_fibres_leave_a_box_that_is_no_slice():
    torus = torus64()
    dark = replace(torus, edges=tuple(replace(edge, capacity=0) for edge in torus.edges))
    assert prod(largest_slice(dark)) == prod(largest_slice(dark, contiguous=True)) == 4


def test_several_tori_are_summed():
    total = overall([Fragmentation(32, 4, 4, 32), Fragmentation(8, 4, 8, 8)])
    assert total == Fragmentation(40, 8, 12, 40)
    assert total.contiguous_index == index(12, 40) == pytest.approx(0.7)
