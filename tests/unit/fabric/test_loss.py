from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.fabric import changes, circuit_losses, loss_db, mesh, route
from lumctl.fabric.condition import DAMAGED_LOSS_DB
from lumctl.inventory.model import Device, DeviceKind, Geometry, Inventory, Thresholds
from lumctl.inventory.wiring import Circuit, CircuitEnd, Direction

DEVICE = Device(
    id="mesh",
    rack="lab",
    kind=DeviceKind.MESH,
    driver="smartlight",
    address="mesh.example:65432",
    geometry=Geometry(4, 3),
    port_count=32,
    loss_per_puc_db=0.25,
    loss_per_port_db=1.0,
    settle_ms=5,
)


def losses_of(states, circuits, device=DEVICE):
    other = replace(DEVICE, id="mesh-2")
    inventory = Inventory(Path("rack.yaml"), "", {}, {}, {}, {}, {"mesh": device, "mesh-2": other}, {}, Thresholds())
    return circuit_losses(inventory, {"mesh": states}, circuits)


def circuit(name, a, b, device="mesh"):
    return Circuit(
        name, "job", CircuitEnd(f"{name}-a", device, a), CircuitEnd(f"{name}-b", device, b), Direction.DUPLEX
    )


def test_loss_counts_pucs_and_both_ports():
    assert loss_db(DEVICE, (2, 17), ()) == pytest.approx(2.0)
    assert loss_db(DEVICE, (2, 17), range(20)) == pytest.approx(7.0)


def test_what_single_pucs_and_ports_lose_is_added():
    worn = replace(DEVICE, puc_loss_db={4: 1.5}, port_loss_db={17: 0.5}, damaged=frozenset({5}))
    assert loss_db(worn, (2, 17), (3, 6)) == pytest.approx(2.0 + 0.5 + 2 * 0.25)
    assert loss_db(worn, (2, 9), (4, 3, 4)) == pytest.approx(2.0 + 3 * 0.25 + 2 * 1.5)
    assert loss_db(worn, (2, 9), (5,)) == pytest.approx(2.0 + 0.25 + DAMAGED_LOSS_DB)


def test_a_circuit_over_a_worn_puc_loses_more():
    made = route(mesh(4, 3), [(2, 17)], states={})
    worn = replace(DEVICE, puc_loss_db={made[0].pucs[0]: 1.5}, port_loss_db={17: 0.5})
    sound = losses_of(changes({}, made), [circuit("it", 2, 17)])["it"]
    assert losses_of(changes({}, made), [circuit("it", 2, 17)], worn) == {"it": pytest.approx(sound + 2.0)}


def test_only_circuits_that_the_states_make_have_a_loss():
    made = route(mesh(4, 3), [(2, 17), (9, 28)], states={})
    states = changes({}, made)
    there, other_way_round = circuit("there", 2, 17), circuit("back", 28, 9)
    not_made, elsewhere = circuit("not-made", 3, 20), circuit("elsewhere", 2, 17, device="mesh-2")
    losses = losses_of(states, [there, other_way_round, not_made, elsewhere])
    assert losses == {
        "there": pytest.approx(2 + 0.25 * len(made[0].pucs)),
        "back": pytest.approx(2 + 0.25 * len(made[1].pucs)),
    }


def test_nothing_is_said_of_a_device_without_pucs():
    switch = replace(DEVICE, kind=DeviceKind.SWITCH, geometry=None)
    assert losses_of({}, [circuit("any", 0, 1)], switch) == {}
