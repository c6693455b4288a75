"""The study of requests in a cluster in use, beside counts of boxes, servers and fibres that share no code with it."""

from dataclasses import replace
from itertools import combinations, product
from random import Random

import pytest
from study_claims import changed
from torus_states import faults_of

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.slices.allocator import allocate, allocate_box
from lumctl.slices.slot_search import fit_slots
from lumctl.studies import placement, run_study
from lumctl.studies.torus_cluster import FIBRES, empty_rack, fill, racks_with, release, torus_demand

EVEN = dict.fromkeys((4, 8, 16, 32), 1024)
SETTINGS = ("seeds=1", "fibres=4,192")


def draws(seed):
    return Random(seed)  # noqa: S311 - the same choices in every run


def live_slices(seed, *, mixed=True):
    rng = draws(seed)
    return release(fill(EVEN, rng, mixed=mixed), 0.3, rng)


def halves(starts, axes=(0, 1, 2)):
    """The boxes of half a rack: two layers along an axis."""
    for axis, start in product(axes, starts):
        layers = {start, (start + 1) % 4}
        yield frozenset(at for at in product(range(4), repeat=3) if at[axis] in layers)


def most_disjoint(boxes, free):
    fitting = [box for box in boxes if box <= free]
    if any(not a & b for a, b in combinations(fitting, 2)):
        return 2
    return min(1, len(fitting))


@pytest.mark.parametrize("seed", range(12))
def test_boxes_are_counted_as_by_trying_all(seed):
    rng = draws(seed)
    rack = empty_rack(FIBRES)
    gone = rng.sample(rack.servers, rng.randint(0, 4)) if seed else ()
    torus = replace(rack, free=frozenset(at for at in rack.free if rack.server_of(at) not in gone))
    assert placement._boxes(torus, 32, placement._with_box) == most_disjoint(halves(range(4)), torus.free)
    assert placement._boxes(torus, 32, placement._with_aligned) == most_disjoint(halves((0, 2), (0,)), torus.free)
    assert placement._bound(torus, 32) == (16 - len(gone)) // 8


@pytest.mark.parametrize("mixed", [False, True])
def test_the_slices_fill_all_racks_and_no_accelerator_twice(mixed):
    slices = fill(EVEN, draws(3), mixed=mixed)
    taken = [(each.rack, at) for each in slices for at in each.accelerators]
    assert len(taken) == len(set(taken)) == 4096
    sizes = [{len(each.accelerators) for each in slices if each.rack == rack} for rack in range(64)]
    assert (max(map(len, sizes)) > 1) is mixed


def test_more_slices_than_accelerators_have_no_box():
    with pytest.raises(ValueError, match="no rack has an aligned box for a slice of 4"):
        fill({4: 68}, draws(0), mixed=False, racks=1)


def test_slices_are_released_until_enough_is_free_and_no_longer():
    free = 4096 - sum(len(each.accelerators) for each in live_slices(1))
    assert 0.3 * 4096 <= free < 0.3 * 4096 + 32


def test_the_links_of_live_slices_take_a_fibre_each_where_they_leave_a_server():
    live = [each for each in live_slices(2) if each.rack == 5]
    expected = 0
    for each, at in ((of, at) for of in live for at in of.accelerators):
        for axis in range(3):
            ahead = tuple((value + (axis == a)) % 4 for a, value in enumerate(at))
            in_box = ahead in each.accelerators and (ahead[axis] or each.shape[axis] == 4)
            expected += bool(in_box and (at[0] // 2, at[1] // 2, at[2]) != (ahead[0] // 2, ahead[1] // 2, ahead[2]))
    (torus,) = racks_with((replace(each, rack=0) for each in live), FIBRES, racks=1)
    assert sum(edge.used for edge in torus.edges) == expected > 0
    assert max(edge.used for edge in torus.edges) <= FIBRES
    assert len(torus.edges) == 8 + 8 + 16


def test_what_light_places_may_be_applied():
    demand = torus_demand((2, 4, 4))
    racks = [rack for rack in racks_with(live_slices(0), FIBRES) if len(rack.free) >= 32]
    found = [(rack, allocate(rack, [demand], place=fit_slots)) for rack in racks]
    assert len(found) > 5
    for rack, answer in found:
        assert answer.placement is None or not faults_of(rack, demand, answer.placement)


def test_a_slice_that_the_search_misses_is_not_taken_for_an_impossible_one():
    def row(fibres):
        (found,) = placement._solve("mixed", 30.0, 32, fibres, 1, 4)
        return found

    assert row(4)["by_light"] < row(4)["by_light_at_most"] == row(4)["bound"]
    assert row(8)["by_light"] == row(8)["bound"]


def test_a_torus_that_takes_any_free_servers_for_a_box_refuses_fewer(monkeypatch):
    monkeypatch.setattr(placement, "_boxes", lambda rack, request, _: placement._bound(rack, request))
    assert changed(placement.STUDY, *SETTINGS) == {"placement.refused"}


def test_without_light_not_all_slices_are_placed(monkeypatch):
    monkeypatch.setattr(placement, "allocate", lambda rack, demands, **_: allocate_box(rack, demands))
    assert changed(placement.STUDY, *SETTINGS) == {"placement.all"}


@pytest.mark.parametrize("given", ["free_percent=40", "request=16", "fibres=8"])
def test_a_claim_whose_case_is_left_out_is_not_judged(given):
    found = run_study(placement.STUDY, placement.STUDY.settings(["seeds=1", "rings=1", given], quick=True))
    assert [each.verdict for each in found.claims] == [None, None]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("request=12", "request is 12, but slices of the torus have 4, 8, 16, 32, 64 accelerators"),
        ("fibres=3", "fibres is 3, expected 4 to 192"),
        ("free_percent=101", "free_percent is 101, expected 1 to 100"),
    ],
)
def test_wrong_input_is_one_line(given, said, capsys):
    assert run(["study", "run", "placement", "--set", given]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[0]) == ("", f"lumctl: {said}")
