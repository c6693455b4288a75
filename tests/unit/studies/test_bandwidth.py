"""The study of bandwidth: ports counted one by one, costs round by round, and broken models."""

from itertools import product
from math import prod

import pytest

from lumctl.cli.main import run
from lumctl.collectives.baselines import ring
from lumctl.errors import ExitCode
from lumctl.slices.allocation import redirected_widths, ring_demand
from lumctl.studies import bandwidth, run_study
from lumctl.studies.bandwidth import electrical_demand, ports_by_dimension


def claims(*given):
    """The claims by id, with some settings."""
    found = run_study(bandwidth.STUDY, bandwidth.STUDY.settings(given, quick=True))
    return {each.claim.id: each for each in found.claims}


def changed():
    return {each for each, result in claims().items() if result.has_changed}


def rows(*given):
    return run_study(bandwidth.STUDY, bandwidth.STUDY.settings(given)).rows


def ports_of_a_corner(shape, extent=4):
    """The ports by dimension with which a chip of a torus reaches another of its slice, counted at the torus."""
    inside = set(product(*map(range, shape)))
    counts = [0, 0, 0]
    for dimension, step in product(range(3), (-1, 1)):
        near = [0, 0, 0]
        near[dimension] = step % extent
        counts[dimension] += tuple(near) in inside
    return tuple(counts)


@pytest.mark.parametrize("shape", [*product((1, 2, 4), repeat=3)][1:])
def test_the_ports_in_an_electrical_torus_are_those_that_meet_a_chip_of_the_slice(shape):
    assert ports_by_dimension(electrical_demand(shape)) == ports_of_a_corner(shape)


@pytest.mark.parametrize("shape", [*product((1, 2, 4), repeat=3)][1:])
def test_with_light_no_port_of_a_chip_is_idle(shape):
    assert sum(ports_by_dimension(ring_demand(shape, redirected_widths(shape, 6)))) == 6


def test_the_example_of_the_source_costs_three_times_as_much_per_byte():
    (row,) = (row for row in rows("alpha_us=0", "buffer_mib=1", "port_gb_s=50") if row["slice"] == "4x2x1")
    assert (row["electrical_gb_s"], row["redirected_gb_s"]) == (50.0, 150.0)
    assert row["times_faster"] == pytest.approx(3.0)
    assert row["redirected_ms"] == pytest.approx(2 * 7 / 8 * 2**20 / 150e9 * 1e3)


def test_the_time_of_an_all_reduce_is_that_of_the_rounds_of_its_schedule():
    for row in rows("alpha_us=7", "buffer_mib=3"):
        ranks = prod(map(int, str(row["slice"]).split("x")))
        for way in ("electrical", "redirected"):
            byte_s = 1 / (float(row[f"{way}_gb_s"]) * 1e9)
            sends = [max(len(send.chunks) for send in turn) for turn in ring(ranks).rounds]
            seconds = sum(7e-6 + chunks * 3 * 2**20 / ranks * byte_s for chunks in sends)
            assert row[f"{way}_ms"] == pytest.approx(seconds * 1e3)


def test_the_gain_is_smaller_for_small_buffers_and_never_more_than_that_of_the_bandwidth():
    for row in rows():
        most = float(row["redirected_gb_s"]) / float(row["electrical_gb_s"])
        assert 1.0 <= float(row["times_faster"]) <= most
    gains = [float(row["times_faster"]) for row in rows("alpha_us=10", "port_gb_s=1.25") if row["slice"] == "2x1x1"]
    assert gains == sorted(gains)


def test_if_an_electrical_torus_joined_the_ends_of_every_slice_no_port_would_be_idle(monkeypatch):
    monkeypatch.setattr(bandwidth, "electrical_demand", ring_demand)
    assert {"bandwidth.idle", "bandwidth.link", "bandwidth.allreduce-most"} <= changed()


def test_light_that_redirects_nothing_leaves_ports_idle(monkeypatch):
    monkeypatch.setattr(bandwidth, "redirected_widths", lambda _shape, _ports: (1, 1, 1))
    assert changed() == {"bandwidth.idle-light"}


def test_ports_that_make_no_rings_gain_nothing(monkeypatch):
    monkeypatch.setattr(bandwidth, "rings", lambda _ranks, _ports: 1)
    assert {"bandwidth.slice", "bandwidth.link", "bandwidth.allreduce-most"} <= changed()


def test_other_seconds_of_an_epoch_change_the_verdict(monkeypatch):
    monkeypatch.setattr(bandwidth, "EPOCH_SECONDS", {2: (157.0, 100.0, 1.57)})
    found = claims()
    assert found["bandwidth.epoch-2"].has_changed
    assert found["bandwidth.epoch-8"].verdict is None


def test_at_another_rate_the_test_bed_is_not_judged():
    assert claims("port_gb_s=50")["bandwidth.allreduce-most"].verdict is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("port_gb_s=0", "port_gb_s is 0, expected 0.001 to 10000"),
        ("buffer_mib=big", "buffer_mib is 'big', expected a number"),
        ("alpha=1", "study bandwidth has no parameter 'alpha'"),
    ],
)
def test_wrong_input_is_one_line(given, said, capsys):
    assert run(["study", "run", "bandwidth", "--set", given]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines()[0] == f"lumctl: {said}"
