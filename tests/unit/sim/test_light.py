"""What the condition of a mesh does to the light in it, in any shape."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.fabric.condition import DAMAGED_LOSS_DB, loss_db, mesh_of
from lumctl.fabric.geometry import exits
from lumctl.inventory.geometry import Geometry, MeshData, Shape
from lumctl.inventory.model import Device, DeviceKind, Evidence, Inventory, Lane, Thresholds, Transponder
from lumctl.sim.world.light import Fibres, SimulatedChip, illuminate

DEVICE = Device("m", "r", DeviceKind.MESH, "sim-mesh", "", Geometry(2, 1), 16, 0.5, 1.0, 5.0)
SHAPES = [
    Geometry(2, 1),
    Geometry.hexagon(2),
    Geometry(2, 2, Shape.SQUARE),
    Geometry.given(MeshData("triangle", 3, ((2, 4), (6, 8), (10, 0)))),
]

NO_FIBRES = Fibres(Inventory(Path(), "", {}, {}, {}, {}, {}, {}, Thresholds()), lambda _: 0.0)


def sender(port: int) -> Transponder:
    return Transponder(f"t{port}", "a", "h", "eth2", Lane("m", port, port), "hostport", (Evidence.LLDP,), 0.0, -10.0)


def received(device: Device, port: int) -> float:
    """The power that arrives of 0 dBm sent into a port, with all PUCs in bar."""
    leaving, _ = illuminate({"m": SimulatedChip(device)}, NO_FIBRES, [(sender(port), 0.0)], {})
    (light,) = leaving.values()
    return light.power_dbm


@given(st.sampled_from(SHAPES), st.data())
def test_light_leaves_where_the_states_lead_it_in_any_shape(geometry: Geometry, data: st.DataObject) -> None:
    device = replace(DEVICE, geometry=geometry, port_count=geometry.port_count)
    chip = SimulatedChip(device)
    chip.write(dict.fromkeys(data.draw(st.sets(st.integers(0, chip.puc_count - 1))), PucState.CROSS))
    partner = exits(mesh_of(device), chip.states())
    leaving, _ = illuminate({"m": chip}, NO_FIBRES, [(sender(port), 0.0) for port in partner], {})
    assert {port: light.source for (_, port), light in leaving.items()} == {p: f"t{q}" for p, q in partner.items()}


def test_single_pucs_and_ports_lose_more() -> None:
    assert received(DEVICE, 0) == pytest.approx(-2.5)
    assert received(replace(DEVICE, puc_loss_db={0: 1.25, 1: 9.0}), 0) == pytest.approx(-3.75)
    assert received(replace(DEVICE, port_loss_db={1: 0.5, 2: 9.0}), 0) == pytest.approx(-3.0)


def test_a_damaged_puc_leaves_stray_light() -> None:
    damaged = replace(DEVICE, damaged=frozenset({0}))
    assert received(damaged, 0) == pytest.approx(-2.5 - DAMAGED_LOSS_DB)


def test_what_is_planned_is_what_arrives() -> None:
    worn = replace(DEVICE, damaged=frozenset({2}), puc_loss_db={0: 1.25}, port_loss_db={15: 0.5, 4: 0.25})
    chip = SimulatedChip(worn)
    for port in range(16):
        way = chip.trace(port)
        assert received(worn, port) == pytest.approx(-loss_db(worn, (port, way.exit), way.pucs))


def test_a_blocked_port_lets_nothing_through() -> None:
    blocked = {"m": SimulatedChip(replace(DEVICE, blocked_ports=frozenset({1})))}
    assert illuminate(blocked, NO_FIBRES, [(sender(0), 0.0), (sender(1), 0.0)], {})[0] == {}
    assert blocked["m"].loss_db(blocked["m"].trace(0)) == math.inf


def test_stuck_pucs_stand_as_the_inventory_says() -> None:
    chip = SimulatedChip(replace(DEVICE, stuck={0: "cross", 1: "bar"}))
    chip.write({0: PucState.BAR, 1: PucState.CROSS, 2: PucState.CROSS})
    assert [chip.states()[puc] for puc in range(3)] == [PucState.CROSS, PucState.BAR, PucState.CROSS]
