from dataclasses import replace

import pytest

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import DAMAGED_LOSS_DB, MeshCondition, condition_of, mesh_of
from lumctl.fabric.shapes import hexagon, mesh, square
from lumctl.inventory.geometry import Geometry, MeshData, Shape
from lumctl.inventory.model import Device, DeviceKind

DEVICE = Device(
    id="mesh",
    rack="lab",
    kind=DeviceKind.MESH,
    driver="smartlight",
    address="mesh.example:65432",
    geometry=Geometry(4, 3),
    port_count=32,
    loss_per_puc_db=0.5,
    loss_per_port_db=1.5,
    settle_ms=5,
    stuck={3: "bar", 4: "cross"},
    blocked_ports=frozenset({7}),
    damaged=frozenset({9}),
    puc_loss_db={11: 1.25},
    port_loss_db={2: 0.75},
)


def test_the_condition_is_what_the_inventory_says():
    assert condition_of(DEVICE) == MeshCondition(
        stuck={3: PucState.BAR, 4: PucState.CROSS},
        damaged=frozenset({9}),
        blocked_ports=frozenset({7}),
        loss_per_puc_db=0.5,
        loss_per_port_db=1.5,
        puc_loss_db={11: 1.25},
        port_loss_db={2: 0.75},
    )


def test_losses_add_up_over_every_pass():
    condition = condition_of(DEVICE)
    assert condition.loss_db((0, 1), ()) == 3.0
    assert condition.loss_db((2, 1), (11, 0, 11)) == 3.75 + 3 * 0.5 + 2 * 1.25
    assert condition.loss_db((0,), (9,)) == 1.5 + 0.5 + DAMAGED_LOSS_DB


def test_the_excess_is_in_times_of_the_usual_loss():
    assert condition_of(DEVICE).excess == {11: 2.5}
    assert condition_of(replace(DEVICE, loss_per_puc_db=0.0)).excess == {11: 5.0}


def test_a_device_has_the_mesh_of_its_geometry():
    data = MeshData("pair", 2, ((2, 4),))
    shapes = {
        Geometry(4, 3): mesh(4, 3),
        Geometry.hexagon(3): hexagon(3),
        Geometry(4, 2, Shape.SQUARE): square(4, 2),
    }
    for geometry, expected in shapes.items():
        assert mesh_of(replace(DEVICE, geometry=geometry)) is expected
    given = replace(DEVICE, geometry=Geometry.given(data))
    assert mesh_of(given) is mesh_of(given)
    assert mesh_of(given).name == "pair"


def test_a_switch_has_no_mesh():
    with pytest.raises(UsageError, match="mesh is a switch: it has no PUCs"):
        mesh_of(replace(DEVICE, kind=DeviceKind.SWITCH, geometry=None))
