"""The waves in a mesh: what its transfer matrix must be, whatever the mesh, and small ones by hand."""

from cmath import exp
from math import cos, inf, isclose, pi, sin, sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import FREE, Mesh, exits, trace
from lumctl.fabric.research.optics import IDEAL, Phases, WaveOptics, random_phase_errors, random_waveguide_phases
from lumctl.fabric.research.transmission import gains, incoherent_gains, mean_gains, transmission
from lumctl.fabric.shapes import mesh, square

BAR, CROSS = PucState.BAR, PucState.CROSS
LOSSLESS = MeshCondition(loss_per_puc_db=0.0, loss_per_port_db=0.0)
HALF = Phases(pi / 4, -pi / 4)
"""A partial PUC that parts light in equal halves."""


def bare(pucs, *junctions):
    """A mesh of so many PUCs with these terminals joined; its ports are the other terminals, in order."""
    peers = [FREE] * (4 * pucs)
    for a, b in junctions:
        peers[a], peers[b] = b, a
    ports = tuple(terminal for terminal, peer in enumerate(peers) if peer == FREE)
    return Mesh(name="bare", ends=tuple((2 * puc, 2 * puc + 1) for puc in range(pucs)), peers=tuple(peers), ports=ports)


def seeded(seed):
    return Random(seed)  # noqa: S311


def state_of_all(found, seed):
    rng = seeded(seed)
    return {puc: rng.choice(list(PucState)) for puc in range(found.puc_count)}


@st.composite
def meshes(draw):
    made = draw(st.sampled_from((mesh, square)))
    return made(draw(st.integers(1, 4)), draw(st.integers(1, 4)))


@st.composite
def ideal_meshes(draw):
    found = draw(meshes())
    return found, state_of_all(found, draw(st.integers(0, 2**32)))


@st.composite
def real_meshes(draw):
    """A mesh, settings of which some are partial, and optics with errors of every kind."""
    found, standing = draw(ideal_meshes())
    rng = seeded(draw(st.integers(0, 2**32)))
    partial = {puc: Phases(rng.uniform(-4, 4), rng.uniform(-4, 4)) for puc in standing if rng.random() < 0.2}
    optics = WaveOptics(
        bar_extinction_db=draw(st.floats(10, 45)),
        cross_extinction_db=draw(st.floats(10, 45)),
        puc_extinction_db={0: draw(st.floats(0, 60))},
        phase_errors=random_phase_errors(found, draw(st.floats(0, 0.3)), rng),
        waveguide_phases=random_waveguide_phases(found, rng),
    )
    return found, standing | partial, optics


@settings(deadline=None)
@given(real_meshes())
def test_a_mesh_without_loss_is_unitary(real):
    found, standing, optics = real
    waves = transmission(found, standing, optics, condition=LOSSLESS)
    assert np.allclose(waves @ waves.conj().T, np.eye(found.port_count), atol=1e-6)


@settings(deadline=None)
@given(real_meshes(), st.floats(0, 2), st.integers(0, 2**32))
def test_light_passes_alike_both_ways_and_energy_never_grows(real, loss_db, seed):
    found, standing, optics = real
    condition = MeshCondition(loss_per_puc_db=loss_db, port_loss_db={0: 3.0}, puc_loss_db={1: 1.0})
    waves = transmission(found, standing, optics, condition=condition)
    assert np.allclose(waves, waves.T, atol=1e-9)
    mean = mean_gains(found, standing, optics, condition=condition, rng=seeded(seed), samples=2)
    incoherent = incoherent_gains(found, standing, optics, condition=condition)
    incoherent -= np.diag(np.diag(incoherent)) / 2  # echoes count twice there, and nothing else less
    for power in (np.abs(waves) ** 2, mean, incoherent):
        # A way leads out through one PUC at least, and two ports.
        assert (power.sum(axis=0) <= 10 ** (-(loss_db + 2.0) / 10) + 1e-9).all()


@settings(deadline=None)
@given(ideal_meshes(), st.booleans())
def test_ideal_states_lead_light_where_a_trace_says_and_nowhere_else(ideal, exact):
    found, standing = ideal
    by_phases = {puc: Phases(pi / 2, -pi / 2) if state is BAR else Phases(1.0, 1.0) for puc, state in standing.items()}
    power = gains(found, by_phases if exact else standing, IDEAL, condition=LOSSLESS)
    expected = np.zeros_like(power)
    for port, leaves in exits(found, standing).items():
        expected[leaves, port] = 1.0
    assert np.allclose(power, expected, rtol=0, atol=1e-12)
    assert ((power > 0) == (expected > 0)).all()


@settings(deadline=None)
@given(ideal_meshes())
def test_loss_is_that_of_the_pucs_and_ports_on_the_way(ideal):
    found, standing = ideal
    condition = MeshCondition(loss_per_puc_db=0.3, loss_per_port_db=1.5, puc_loss_db={2: 2.0}, port_loss_db={1: 0.7})
    for power in (
        gains(found, standing, IDEAL, condition=condition),
        incoherent_gains(found, standing, IDEAL, condition=condition),
    ):
        for port in range(found.port_count):
            way = trace(found, standing, port)
            excess = 2.0 * way.pucs.count(2) + 0.7 * (1 in {port, way.exit})
            expected = 10 ** (-(0.3 * len(way.pucs) + 3.0 + excess) / 10)
            assert isclose(power[way.exit, port], expected, rel_tol=1e-9)


@pytest.mark.parametrize(("state", "right", "wrong"), [(BAR, 2, 3), (CROSS, 3, 2)])
def test_one_imperfect_puc_leaks_its_extinction(state, right, wrong):
    optics = WaveOptics(inf, inf, puc_extinction_db={0: 25.0})
    power = gains(bare(1), {0: state}, optics, condition=LOSSLESS)
    assert power[wrong, 0] / power[right, 0] == pytest.approx(10**-2.5, rel=1e-12)
    assert power[[0, 1], 0].tolist() == [0, 0]  # no reflection


def test_each_state_has_its_own_extinction():
    bar, cross = (
        gains(bare(1), {0: state}, WaveOptics(20.0, 40.0), condition=LOSSLESS)[:, 0] for state in (BAR, CROSS)
    )
    assert (bar[3] / bar[2], cross[2] / cross[3]) == pytest.approx((1e-2, 1e-4))


def test_the_matrix_of_one_puc_is_the_published_one():
    half, common = 0.4, 0.7
    waves = transmission(bare(1), {0: Phases(common + half, common - half)}, IDEAL, condition=LOSSLESS)
    factor = 1j * exp(1j * common)
    expected = factor * np.array([[sin(half), cos(half)], [cos(half), -sin(half)]])
    assert np.allclose(waves[2:, :2], expected)
    assert np.allclose(waves[:2, 2:], expected)


def test_a_phase_error_leaks_the_square_of_its_sine():
    optics = WaveOptics(inf, inf, phase_errors={0: Phases(0.1, -0.1)})
    for state, wrong in ((BAR, 3), (CROSS, 2)):
        assert gains(bare(1), {0: state}, optics, condition=LOSSLESS)[wrong, 0] == pytest.approx(sin(0.1) ** 2)


@pytest.mark.parametrize("phase", [0.0, 0.5, pi / 2, pi, 4.0])
def test_two_pucs_in_a_row_are_an_interferometer(phase):
    two = bare(2, (2, 4), (3, 5))
    optics = WaveOptics(inf, inf, waveguide_phases={2: phase})
    power = gains(two, {0: HALF, 1: HALF}, optics, condition=LOSSLESS)
    # Ports 0 and 1 are the end of the first PUC, ports 2 and 3 that of the second.
    assert power[2, 0] == pytest.approx(cos(phase / 2) ** 2)
    assert power[3, 0] == pytest.approx(sin(phase / 2) ** 2, abs=1e-12)


def test_over_random_phases_an_interferometer_parts_light_in_halves():
    two = bare(2, (2, 4), (3, 5))
    mean = mean_gains(two, {0: HALF, 1: HALF}, IDEAL, condition=LOSSLESS, rng=seeded(1), samples=500)
    assert mean[2, 0] == pytest.approx(0.5, abs=0.06)  # the standard error is 0.016
    assert incoherent_gains(two, {0: HALF, 1: HALF}, IDEAL, condition=LOSSLESS)[2, 0] == pytest.approx(0.5)


@pytest.mark.parametrize("phase", [0.0, 1.0])
def test_an_echo_adds_up_with_itself_run_the_other_way_round(phase):
    # Light goes out and comes back by the same end of one PUC: whichever way round it ran, it ran the same way.
    mirror, optics = bare(1, (2, 3)), WaveOptics(20.0, 20.0, waveguide_phases={2: phase})
    leak, kept = 1 / 101, 100 / 101
    assert gains(mirror, {}, optics, condition=LOSSLESS)[0, 0] == pytest.approx(4 * leak * kept)
    assert incoherent_gains(mirror, {}, optics, condition=LOSSLESS)[0, 0] == pytest.approx(4 * leak * kept)


def test_light_that_runs_in_a_loop_is_counted_to_the_end():
    ring = bare(1, (1, 3))
    loss_db, phase = 1.2, 0.9
    condition = MeshCondition(loss_per_puc_db=loss_db, loss_per_port_db=0.0)
    held = 10 ** (-loss_db / 20)
    turn, straight = exp(1j * phase), 1j * held / sqrt(2)
    expected = straight + (straight**2 * turn) / (1 + straight * turn)
    waves = transmission(ring, {0: HALF}, WaveOptics(inf, inf, waveguide_phases={1: phase}), condition=condition)
    assert waves[1, 0] == pytest.approx(expected)
    # The loop loses as much as is fed to it: on resonance nothing comes out.
    critical = MeshCondition(loss_per_puc_db=10 * np.log10(2), loss_per_port_db=0.0)
    optics = WaveOptics(inf, inf, waveguide_phases={1: pi / 2})
    assert gains(ring, {0: HALF}, optics, condition=critical)[1, 0] == pytest.approx(0.0, abs=1e-12)


def test_a_stuck_puc_is_what_it_is_stuck_in():
    condition = MeshCondition(stuck={0: CROSS}, loss_per_puc_db=0.0, loss_per_port_db=0.0)
    assert gains(bare(1), {0: BAR}, IDEAL, condition=condition)[3, 0] == 1.0


def test_the_same_seed_gives_the_same_mean_and_adding_powers_comes_close():
    found = mesh(3, 3)
    standing = state_of_all(found, 7)
    first, again, other = (
        mean_gains(found, standing, WaveOptics(), condition=MeshCondition(), rng=seeded(seed), samples=128)
        for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()
    fast = incoherent_gains(found, standing, WaveOptics(), condition=MeshCondition())
    at_most_one_leak = first > 1e-4
    assert at_most_one_leak.sum() > found.port_count
    apart_db = 10 * np.log10(fast[at_most_one_leak] / first[at_most_one_leak])
    assert abs(apart_db.mean()) < 0.1
    assert np.abs(apart_db).max() < 1.0  # where two leaks meet, the mean of so few is itself unsure by 0.4 dB


def test_a_whole_mesh_is_solved():
    found = mesh(9, 9)
    power = gains(found, state_of_all(found, 9), WaveOptics(), condition=MeshCondition())
    assert power.shape == (76, 76)


@pytest.mark.parametrize("wrong", [-1.0, float("nan")])
def test_an_extinction_that_cannot_be_is_refused(wrong):
    for arguments in ({"bar_extinction_db": wrong}, {"puc_extinction_db": {3: wrong}}):
        with pytest.raises(UsageError, match="extinction"):
            WaveOptics(**arguments)


@pytest.mark.parametrize("terminal", [0, -1, 8])
def test_a_phase_needs_a_waveguide(terminal):
    optics = WaveOptics(waveguide_phases={terminal: 1.0})
    with pytest.raises(UsageError, match="no waveguide"):
        gains(bare(2, (2, 4), (3, 5)), {}, optics, condition=LOSSLESS)


def test_a_mean_takes_a_sample():
    with pytest.raises(UsageError, match="0 samples"):
        mean_gains(bare(1), {}, IDEAL, condition=LOSSLESS, rng=seeded(1), samples=0)
