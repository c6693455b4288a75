"""The power that receivers get from circuits other than their own."""

import importlib.util
import sys
from math import inf, log10
from random import Random

import numpy as np
import pytest

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import FREE, Mesh, exits, trace
from lumctl.fabric.research import optics
from lumctl.fabric.research.crosstalk import crosstalk, powers_at_ports, worst_by_circuit
from lumctl.fabric.research.optics import IDEAL, WaveOptics
from lumctl.fabric.research.transmission import incoherent_gains
from lumctl.fabric.routing import Route
from lumctl.fabric.shapes import mesh

GAINS = np.array(
    [
        [1e-5, 0.10, 1e-3, 0.00],
        [0.10, 0.00, 1e-4, 2e-3],
        [1e-3, 1e-4, 0.00, 0.50],
        [0.00, 2e-3, 0.50, 0.00],
    ]
)
CIRCUITS = ((0, 1), (2, 3))


def db(ratio):
    return 10 * log10(ratio)


def seeded(seed):
    return Random(seed)  # noqa: S311


def bare(pucs, *junctions):
    """A mesh of so many PUCs with these terminals joined; its ports are the other terminals, in order."""
    peers = [FREE] * (4 * pucs)
    for a, b in junctions:
        peers[a], peers[b] = b, a
    ports = tuple(terminal for terminal, peer in enumerate(peers) if peer == FREE)
    return Mesh(name="bare", ends=tuple((2 * puc, 2 * puc + 1) for puc in range(pucs)), peers=tuple(peers), ports=ports)


def circuits_of(found, states, share, seed):
    """Some of the circuits that the states make, as routes."""
    rng = seeded(seed)
    pairs = [(a, b) for a, b in exits(found, states).items() if a < b and rng.random() < share]
    return [Route(pair, trace(found, states, pair[0]).passes) for pair in pairs]


def random_mesh(columns, rows, seed):
    found = mesh(columns, rows)
    rng = seeded(seed)
    return found, {puc: rng.choice(list(PucState)) for puc in range(found.puc_count)}


def test_powers_add_up_at_every_port():
    powers = powers_at_ports(GAINS, {0: 0.0, 3: 10.0})
    assert powers[1] == pytest.approx(db(0.10 + 10 * 2e-3))
    assert powers[2] == pytest.approx(db(1e-3 + 10 * 0.50))
    assert powers[3] == -inf


def test_a_receiver_hears_its_far_end_and_all_else_is_crosstalk():
    at_1, at_0, at_3, at_2 = crosstalk(GAINS, CIRCUITS)
    assert [(found.circuit, found.port) for found in (at_1, at_0, at_3, at_2)] == [
        ((0, 1), 1), ((0, 1), 0), ((2, 3), 3), ((2, 3), 2)
    ]  # fmt: skip
    assert at_1.signal_dbm == pytest.approx(-10)
    assert (at_1.worst_port, at_1.worst_circuit) == (3, (2, 3))
    assert at_1.worst_dbm == pytest.approx(db(2e-3))
    assert at_1.interference_dbm == pytest.approx(db(2.1e-3))
    assert at_1.signal_to_crosstalk_db == pytest.approx(-10 - db(2.1e-3))
    assert at_0.interference_dbm == pytest.approx(db(1e-3 + 1e-5))  # its own echo included
    assert worst_by_circuit((at_0, at_1)) == worst_by_circuit((at_1, at_0)) == {(0, 1): at_1}


def test_the_end_that_does_not_transmit_leaves_its_far_end_without_a_receiver():
    (only,) = crosstalk(GAINS, [(0, 1)], {0: 3.0})
    assert (only.port, only.worst_port, only.worst_circuit) == (1, None, None)
    assert only.signal_dbm == pytest.approx(3 - 10)
    assert (only.interference_dbm, only.worst_dbm, only.signal_to_crosstalk_db) == (-inf, -inf, inf)


def test_a_stray_transmitter_is_named_by_its_port():
    (only,) = crosstalk(GAINS, [(0, 1)], {0: 0.0, 3: 5.0})
    assert (only.worst_port, only.worst_circuit) == (3, None)
    assert only.worst_dbm == pytest.approx(5 + db(2e-3))


@pytest.mark.parametrize("port", [-1, 4])
def test_wrong_ports_are_named(port):
    with pytest.raises(UsageError, match=f"port {port} is not on the mesh"):
        powers_at_ports(GAINS, {port: 0.0})
    with pytest.raises(UsageError, match=f"port {port} is not on the mesh"):
        crosstalk(GAINS, [(0, port)], {0: 0.0})


def test_ideal_pucs_make_no_crosstalk():
    found, states = random_mesh(4, 4, 3)
    pairs = [route.ports for route in circuits_of(found, states, 1.0, 0)]
    heard = crosstalk(incoherent_gains(found, states, IDEAL, condition=MeshCondition()), pairs)
    assert len(heard) == found.port_count
    assert {reception.interference_dbm for reception in heard} == {-inf}


@pytest.mark.parametrize("seed", range(5))
def test_more_extinction_means_less_crosstalk(seed):
    found, states = random_mesh(4, 4, seed)
    pairs = [route.ports for route in circuits_of(found, states, 0.5, seed)]
    heard = [
        crosstalk(incoherent_gains(found, states, WaveOptics(each, each), condition=MeshCondition()), pairs)
        for each in (20.0, 25.0, 30.0, 40.0)
    ]
    for receiver in zip(*heard, strict=True):
        below = [reception.signal_to_crosstalk_db for reception in receiver]
        assert below == sorted(set(below))


def test_a_shared_puc_leaks_its_extinction_from_each_circuit_into_the_other():
    shared, circuits, optics = bare(1), [(0, 2), (1, 3)], WaveOptics(25.0, 40.0)

    def worst(condition):
        power = incoherent_gains(shared, {}, optics, condition=condition)
        return {pair: far.signal_to_crosstalk_db for pair, far in worst_by_circuit(crosstalk(power, circuits)).items()}

    assert worst(MeshCondition()) == {(0, 2): pytest.approx(25), (1, 3): pytest.approx(25)}
    # A transmitter behind a lossy port troubles less and is troubled more.
    lossy = worst(MeshCondition(port_loss_db={0: 3.0}))
    assert lossy == {(0, 2): pytest.approx(22), (1, 3): pytest.approx(25)}


def test_a_route_that_passes_a_puc_twice_hears_its_own_echo():
    power = incoherent_gains(bare(1, (2, 3)), {}, WaveOptics(30.0, 30.0), condition=MeshCondition())
    assert db(power[0, 0] / power[1, 0]) == pytest.approx(-30 + db(4), abs=0.02)


def test_what_must_be_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    spec = importlib.util.spec_from_file_location("absent", optics.__file__)
    with pytest.raises(UsageError, match="scipy") as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert caught.value.hint == "pip install 'lumctl[optics]'"
