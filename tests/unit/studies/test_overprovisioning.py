"""The study of overprovisioning, beside every choice of failures in one rack and the formula for their number."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from math import comb
from random import Random

import pytest
from study_claims import changed
from torus_states import leads

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.studies import overprovisioning, run_study
from lumctl.studies.torus_cluster import FIBRES, UNLIMITED, fill, racks_with


def draws(seed):
    return Random(seed)  # noqa: S311 - the same choices in every run


def rack_of(size):
    """One rack in slices of a size."""
    return fill({size: 64}, draws(0), mixed=False, racks=1)


def all_joined(_, failed, __):
    return len(failed)


def expected_groups(size, failures):
    """How many groups of ``size`` of 64 have a failure: each is missed by all with a hypergeometric probability."""
    return 64 / size * (1 - comb(64 - size, failures) / comb(64, failures))


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32, 64])
def test_over_every_pair_of_failures_the_parts_are_those_of_the_formula(size):
    slices = rack_of(size)
    chips = sorted(at for each in slices for at in each.accelerators)
    pairs = list(combinations(chips, 2))
    assert len(pairs) == comb(64, 2)
    migrated = sum(overprovisioning._migrated(slices, pair) for pair in pairs) / len(pairs)
    evicted = sum(map(overprovisioning._evicted, pairs)) / len(pairs)
    assert migrated == pytest.approx(size * expected_groups(size, 2))
    assert evicted == pytest.approx(4 * expected_groups(4, 2))


def test_the_published_example_two_failures_in_a_slice_of_32_leave_30_parts_too_many():
    slices = rack_of(32)
    pair = sorted(slices[0].accelerators)[:2]
    assert overprovisioning._migrated(slices, pair) - len(pair) == 30


def test_the_counts_of_a_cluster_are_near_the_formula():
    rows = {row["way"]: row for row in overprovisioning._solve(100.0, 8, 4, 0)}
    assert rows["migration"]["used"] == pytest.approx(64 * 8 * expected_groups(8, 4), rel=0.05)
    assert rows["eviction"]["used"] == pytest.approx(64 * 4 * expected_groups(4, 4), rel=0.05)
    assert rows["rack_migration"]["used"] == 4096
    assert {rows[way]["used_less_failed"] for way in ("light-4", "light-8", "ideal")} == {0}


@pytest.mark.parametrize("size", [4, 16, 32])
@pytest.mark.parametrize("fibres", [FIBRES, 8, UNLIMITED])
def test_the_circuits_of_spares_join_them_with_their_slice_and_no_edge_is_too_full(size, fibres):
    slices = overprovisioning._with_spares(size)
    (torus,) = racks_with(slices, fibres, racks=1)
    assert len(torus.free) == 4
    states = {each: overprovisioning._SliceState(each, torus, fibres) for each in slices}
    links = {each: Counter(circuit.ranks for circuit in states[each].circuits) for each in slices}
    lost = {each: set() for each in slices}
    for at in overprovisioning._drawn(slices, 4, draws(size)):
        own = next(each for each in slices if at in each.accelerators)
        torus, is_joined = states[own].replaced(torus, at)
        if not is_joined:
            lost[own].add(states[own].ranks.index(at))
    used = Counter()
    for each, state in states.items():
        for circuit in state.circuits:
            assert leads(torus, circuit.edges, *(state.servers[rank] for rank in circuit.ranks))
            used.update(circuit.edges)
        kept = Counter({ranks: count for ranks, count in links[each].items() if not lost[each] & set(ranks)})
        assert Counter(circuit.ranks for circuit in state.circuits) == kept
    assert {edge.name: edge.used for edge in torus.edges if edge.used} == {name: n for name, n in used.items() if n}
    assert max(used.values()) <= fibres
    assert fibres < UNLIMITED or not any(lost.values())


def test_without_fibres_no_spare_is_joined(monkeypatch):
    def dark(*of, **racks):
        return tuple(
            replace(rack, edges=tuple(replace(edge, capacity=0) for edge in rack.edges))
            for rack in racks_with(*of, **racks)
        )

    monkeypatch.setattr(overprovisioning, "racks_with", dark)
    slices = overprovisioning._with_spares(32)
    assert overprovisioning.joined_spares(slices, sorted(slices[0].accelerators)[:4], FIBRES) == 0


def test_models_that_are_broken_on_purpose_change_their_claims(monkeypatch):
    monkeypatch.setattr(overprovisioning, "joined_spares", all_joined)  # the capacity of fibres is ignored
    assert changed(overprovisioning.STUDY, quick=True) == {"overprovisioning.ideal"}
    monkeypatch.setattr(overprovisioning, "_evicted", len)  # only the failed accelerator of a server is replaced
    assert changed(overprovisioning.STUDY, quick=True) == {"overprovisioning.ideal", "overprovisioning.eviction"}
    monkeypatch.setattr(overprovisioning, "_migrated", lambda _, down: len(down))
    assert changed(overprovisioning.STUDY, quick=True) == {claim.id for claim in overprovisioning.STUDY.claims}


@pytest.mark.parametrize("given", ["below_percent=0", "size=4", "failures=1,2,3"])
def test_a_claim_whose_case_is_left_out_is_not_judged(given, monkeypatch):
    monkeypatch.setattr(overprovisioning, "joined_spares", all_joined)
    found = run_study(overprovisioning.STUDY, overprovisioning.STUDY.settings([given], quick=True))
    assert {each.verdict for each in found.claims} == {None}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("size=24", "size is 24, but slices below a rack have 1, 2, 4, 8, 16, 32"),
        ("failures=5", "failures is 5, expected 1 to 4"),
        ("below_percent=-1", "below_percent is -1, expected 0 to 100"),
    ],
)
def test_wrong_input_is_one_line(given, said, capsys):
    assert run(["study", "run", "overprovisioning", "--set", given]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[0]) == ("", f"lumctl: {said}")
