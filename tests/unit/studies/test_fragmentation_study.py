"""The study of fragmentation, beside the largest boxes and slices that trying all finds."""

from dataclasses import replace
from itertools import product
from random import Random

import pytest
from study_claims import changed
from torus_states import faults_of

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.slices.allocator import allocate, allocate_box
from lumctl.slices.slot_search import fit_slots
from lumctl.studies import fragmentation, run_study
from lumctl.studies.torus_cluster import FIBRES, SHAPES, UNLIMITED, empty_rack, torus_demand

SHORT = ("seeds=1", "largest=8", "fibres=4,192")


def some_servers(seed, fibres):
    """A rack of which some servers are free."""
    rng = Random(seed)  # noqa: S311 - the same choices in every run
    rack = empty_rack(fibres)
    free = rng.sample(rack.servers, rng.randint(2, 7))
    return replace(rack, free=frozenset(at for at in rack.free if rack.server_of(at) in free))


def largest_by_trying_all(free, starts_of, extents):
    """The accelerators of the largest free box among these extents."""
    return max(
        (
            x * y * z
            for x, y, z in extents
            for start in starts_of((x, y, z))
            if all(
                tuple((at + step) % 4 for at, step in zip(start, steps, strict=True)) in free
                for steps in product(range(x), range(y), range(z))
            )
        ),
        default=0,
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_largest_slices_are_those_that_trying_all_finds(seed):
    rack = some_servers(seed, UNLIMITED)
    found = fragmentation._largest_slices(rack)
    anywhere = largest_by_trying_all(rack.free, lambda _: product(range(4), repeat=3), product(range(1, 5), repeat=3))
    aligned = largest_by_trying_all(
        rack.free, lambda shape: product(*(range(0, 4, extent) for extent in shape)), SHAPES.values()
    )
    sizes = max(size for size in SHAPES if size <= len(rack.free))
    products = {x * y * z for x, y, z in product(range(1, 5), repeat=3)}
    # With unlimited fibres any free accelerators can be joined, so only a shape must have so many.
    any_shape = max(size for size in products if size <= len(rack.free))
    assert found == {
        "free": len(rack.free),
        "aligned": aligned,
        "any-box": anywhere,
        "light-sizes": sizes,
        "light-any": any_shape,
    }


@pytest.mark.parametrize("seed", range(6))
def test_the_slices_of_published_sizes_may_be_applied_with_four_fibres(seed):
    rack = some_servers(seed, FIBRES)
    size = fragmentation._largest_of_sizes(rack)
    demand = torus_demand(SHAPES[size])
    assert not faults_of(rack, demand, allocate(rack, [demand], place=fit_slots).placement)


@pytest.mark.parametrize("largest", [4, 8, 16, 32, 64])
def test_a_filling_takes_every_accelerator(largest):
    chips = fragmentation._even(largest, 64)
    assert max(chips) == largest
    assert sum(chips.values()) == 4096
    assert all(count % size == 0 for size, count in chips.items())


def test_of_the_whole_cluster_one_slice_of_a_rack_is_the_largest():
    rows = {row["slices"]: row for row in fragmentation._solve("by-size", 64, 20.0, FIBRES, 0)}
    assert all(row["rack_most"] < 1 and row["free"] >= 0.2 * 4096 for row in rows.values())
    # One slice of a whole rack of the free ones: of all that is free it leaves the rest.
    assert rows["aligned"]["cluster"] == pytest.approx(1 - 64 / float(rows["aligned"]["free"]))


def test_if_slices_are_released_by_whole_racks_nothing_is_fragmented(monkeypatch):
    def ordered(slices, share, _, *, racks):
        return tuple(each for each in slices if each.rack >= racks * share)

    monkeypatch.setattr(fragmentation, "release", ordered)
    assert changed(fragmentation.STUDY, *SHORT) == {"fragmentation.index", "fragmentation.reduction"}


def test_without_light_the_published_sizes_find_no_more_than_boxes(monkeypatch):
    monkeypatch.setattr(fragmentation, "allocate", lambda rack, demands, **_: allocate_box(rack, demands))
    assert changed(fragmentation.STUDY, *SHORT) == {"fragmentation.reduction"}


def test_without_fibres_light_joins_no_servers():
    rack = some_servers(1, FIBRES)
    dark = replace(rack, edges=tuple(replace(edge, capacity=0) for edge in rack.edges))
    assert fragmentation._largest_of_sizes(dark) == 4


@pytest.mark.parametrize("given", [["released_percent=30", "fibres=4"], ["fibres=8"]])
def test_a_claim_whose_case_is_left_out_is_not_judged(given):
    found = run_study(fragmentation.STUDY, fragmentation.STUDY.settings(["largest=4", *given], quick=True))
    assert [each.verdict for each in found.claims] == [None, None]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("largest=24", "largest is 24, but slices of the torus have 4, 8, 16, 32, 64 accelerators"),
        ("released_percent=0", "released_percent is 0, expected 1 to 100"),
        ("seeds=0", "seeds is 0, expected 1 to 10000"),
    ],
)
def test_wrong_input_is_one_line(given, said, capsys):
    assert run(["study", "run", "fragmentation", "--set", given]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[0]) == ("", f"lumctl: {said}")
