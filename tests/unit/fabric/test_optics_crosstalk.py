"""What receivers hear of other circuits, by the waves and to first order, and the loss budget."""

import importlib.util
import subprocess
import sys
from math import inf, log10
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import Condition
from lumctl.fabric.geometry import FREE, Mesh, mesh
from lumctl.fabric.optics import libraries
from lumctl.fabric.optics.budget import LossBudget, Verdict
from lumctl.fabric.optics.crosstalk import crosstalk, loss_budgets, powers_at_ports, worst_by_circuit
from lumctl.fabric.optics.estimate import first_order_crosstalk_db
from lumctl.fabric.optics.model import IDEAL, Optics
from lumctl.fabric.optics.transmission import incoherent_gains
from lumctl.fabric.routing import Route
from lumctl.fabric.tracing import exits, trace

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
    heard = crosstalk(incoherent_gains(found, states, IDEAL, condition=Condition()), pairs)
    assert len(heard) == found.port_count
    assert {reception.interference_dbm for reception in heard} == {-inf}


@pytest.mark.parametrize("seed", range(5))
def test_more_extinction_means_less_crosstalk(seed):
    found, states = random_mesh(4, 4, seed)
    pairs = [route.ports for route in circuits_of(found, states, 0.5, seed)]
    heard = [
        crosstalk(incoherent_gains(found, states, Optics(each, each), condition=Condition()), pairs)
        for each in (20.0, 25.0, 30.0, 40.0)
    ]
    for receiver in zip(*heard, strict=True):
        below = [reception.signal_to_crosstalk_db for reception in receiver]
        assert below == sorted(set(below))


@pytest.mark.parametrize("seed", range(8))
def test_the_first_order_is_close_to_the_waves(seed):
    found, states = random_mesh(6, 6, seed)
    condition = Condition(puc_loss_db=dict.fromkeys(range(0, found.puc_count, 7), 0.5), port_loss_db={3: 2.0})
    routes = circuits_of(found, states, 0.6, seed)
    optics = Optics(35.0, 30.0)
    estimate = first_order_crosstalk_db(found, routes, optics, condition=condition)
    power = incoherent_gains(found, states, optics, condition=condition)
    worst = worst_by_circuit(crosstalk(power, [route.ports for route in routes]))
    for pair, expected in estimate.items():
        if expected > -inf:
            assert -worst[pair].signal_to_crosstalk_db == pytest.approx(expected, abs=0.2)
        else:
            assert -worst[pair].signal_to_crosstalk_db < -40


def test_a_shared_puc_leaks_its_extinction_from_each_circuit_into_the_other():
    shared = bare(1)
    routes = [Route((0, 2), ((0, PucState.BAR),)), Route((1, 3), ((0, PucState.BAR),))]
    estimate = first_order_crosstalk_db(shared, routes, Optics(25.0, 40.0), condition=Condition())
    assert estimate == {(0, 2): pytest.approx(-25), (1, 3): pytest.approx(-25)}
    # A transmitter behind a lossy port troubles less and is troubled more.
    lossy = first_order_crosstalk_db(shared, routes, Optics(25.0, 40.0), condition=Condition(port_loss_db={0: 3.0}))
    assert lossy == {(0, 2): pytest.approx(-22), (1, 3): pytest.approx(-25)}


def test_a_route_that_passes_a_puc_twice_hears_its_own_echo():
    mirror = bare(1, (2, 3))
    routes = [Route((0, 1), ((0, PucState.BAR),) * 2)]
    (estimate,) = first_order_crosstalk_db(mirror, routes, Optics(30.0, 30.0), condition=Condition()).values()
    power = incoherent_gains(mirror, {}, Optics(30.0, 30.0), condition=Condition())
    assert estimate == pytest.approx(-30 + db(4))
    assert estimate == pytest.approx(db(power[0, 0] / power[1, 0]), abs=0.02)


def test_budgets_say_what_is_to_spare():
    ample = LossBudget(transmit_dbm=4.7, loss_db=12.0, sensitivity_dbm=-15.8, wanted_margin_db=2.0)
    assert (ample.received_dbm, ample.margin_db) == pytest.approx((-7.3, 8.5))
    assert ample.verdict is Verdict.AMPLE
    assert LossBudget(4.7, 19.0, -15.8, 2.0).verdict is Verdict.THIN
    assert LossBudget(4.7, 20.6, -15.8, 2.0).verdict is Verdict.SHORT
    assert LossBudget(4.7, inf, -15.8).verdict is Verdict.SHORT


def test_a_budget_holds_the_signal_against_what_the_receiver_needs():
    sent, needed = {0: 3.0, 1: 1.0, 2: 0.0}, {0: -9.5, 1: -6.5, 3: -20.0}
    at_1, at_0, at_3 = loss_budgets(crosstalk(GAINS, CIRCUITS, sent), sent, needed, 2.0)
    assert [each.loss_db for each in (at_1, at_0, at_3)] == pytest.approx([10, 10, db(2)])
    assert [each.margin_db for each in (at_1, at_0, at_3)] == pytest.approx([-0.5, 0.5, 20 - db(2)])
    assert [each.verdict for each in (at_1, at_0, at_3)] == [Verdict.SHORT, Verdict.THIN, Verdict.AMPLE]


@given(st.floats(-20, 20), st.floats(0, 60), st.floats(-40, 0), st.floats(0, 10))
def test_a_budget_is_short_exactly_when_too_little_arrives(sent, loss, needed, wanted):
    budget = LossBudget(sent, loss, needed, wanted)
    assert (budget.verdict is Verdict.SHORT) == (budget.received_dbm < needed)


def test_estimates_load_no_numpy():
    code = (
        "import sys, lumctl.fabric.optics.estimate, lumctl.fabric.optics.budget\n"
        "sys.exit(bool({'numpy', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_must_be_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    spec = importlib.util.spec_from_file_location("absent", libraries.__file__)
    with pytest.raises(UsageError, match="scipy") as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert caught.value.hint == "pip install 'lumctl[optics]'"
