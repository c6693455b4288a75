"""Devices that are no meshes, and what refers to their parts."""

from pathlib import Path

import pytest

from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import DeviceKind, DeviceLogin, PartOf
from lumctl.inventory.problems import InventoryError
from lumctl.inventory.wiring import FREE, is_joined, join_of, own_cells

RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h[1-2]
    power: bmc/{name}
    accelerators:
      - {id: "{host}-gpu0", model: X, memory_gib: 80}
devices:
  - id: ocs
    kind: switch
    driver: polatis-scpi
    address: ocs:5025
    port_count: 8
    via: h1
  - id: shelf
    kind: chassis
    driver: openconfig
    address: shelf:830
    login: {user: ops, key_file: keys/shelf, secret_file: shelf.secret, secret_variable: SHELF}
  - id: bmc
    kind: power
    driver: redfish
    address: bmc:443
transponders:
  - id: h[1-2]-gpu0-a
    accelerator: h[1-2]-gpu0
    interface: eth2
    device: ocs
    tx: [0, 2]
    rx: [4, 6]
    module: shelf/och-1/[1-2]
"""


def loaded(folder: Path, text: str = RACK):
    path = folder / "rack.yaml"
    path.write_text(text)
    return load_inventory(path)


def test_parts_of_devices_are_referred_to(tmp_path):
    inventory = loaded(tmp_path)
    assert [d.kind for d in inventory.devices.values()] == [DeviceKind.SWITCH, DeviceKind.CHASSIS, DeviceKind.POWER]
    assert inventory.hosts["h2"].power == PartOf("bmc", "h2")
    assert inventory.transponders["h2-gpu0-a"].module == PartOf("shelf", "och-1/2")
    assert inventory.devices["ocs"].via == "h1"
    assert inventory.devices["shelf"].login == DeviceLogin(
        "ops", tmp_path / "keys/shelf", tmp_path / "shelf.secret", "SHELF"
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("bmc/{name}", "shelf/{name}", "6:12: shelf is of kind chassis, expected one of kind power"),
        ("bmc/{name}", "bmd/{name}", "6:12: device 'bmd' is not known; did you mean 'bmc'?"),
        ("bmc/{name}", "bmc", "power bmc/ is used twice, by h1 and by h2"),
        ("shelf/och-1/[1-2]", "bmc/[1-2]", "32:13: bmc is of kind power, expected one of kind chassis"),
        ("shelf/och-1/[1-2]", "shelf/och", "shelf/och is used twice, by h1-gpu0-a and by h2-gpu0-a"),
        ("    device: ocs\n", "    device: shelf\n", "29:13: shelf is of kind chassis, expected a mesh or a switch"),
        ("via: h1", "via: h9", "15:10: host 'h9' is not known"),
        ("address: shelf:830", "address: shelf:830\n    port_count: 4", "20:17: a chassis has no 'port_count'"),
        ("address: shelf:830", "address: shelf:830\n    input_count: 4", "20:18: a chassis has no 'input_count'"),
        ("address: shelf:830", "address: shelf:830\n    blocked_ports: [1]", "20:20: a chassis has no ports"),
        ("port_count: 8", "port_count: 8\n    input_count: 9", "15:18: found 9, expected 1 to 8"),
        ("port_count: 8", "geometry: {columns: 1, rows: 1}", "a switch has no 'geometry', expected 'port_count'"),
        (
            "secret_variable: SHELF",
            "secret_variable: not one",
            "20:90: found 'not one', expected the name of an environment variable",
        ),
        ("secret_variable: SHELF", "password: hunter2", "20:73: key 'password' is not known"),
    ],
)
def test_one_mistake_is_one_line(tmp_path, old, new, says):
    with pytest.raises(InventoryError) as error:
        loaded(tmp_path, RACK.replace(old, new))
    assert says in str(error.value)


def test_ports_that_no_lane_meets_are_not_ours(tmp_path):
    inventory = loaded(tmp_path)
    assert own_cells(inventory, inventory.devices["ocs"]) == (0, 2)


def test_light_enters_at_inputs_and_leaves_at_outputs(tmp_path):
    switch = loaded(tmp_path).devices["ocs"]
    assert join_of(switch, (0, 6), reciprocal=False) == (0, 6)
    assert join_of(switch, (6, 0), reciprocal=True) == (0, 6)
    for ports, reciprocal in (((6, 0), False), ((0, 2), True), ((4, 6), True)):
        with pytest.raises(Exception, match="cannot connect port"):
            join_of(switch, ports, reciprocal=reciprocal)


def test_where_any_port_may_be_joined_to_any_the_lower_one_counts_as_the_ingress(tmp_path):
    inventory = loaded(tmp_path, RACK.replace("port_count: 8", "port_count: 8\n    input_count: 8"))
    switch = inventory.devices["ocs"]
    assert join_of(switch, (6, 2), reciprocal=False) == (2, 6)
    assert own_cells(inventory, switch) == (0, 2, 4, 6)
    assert is_joined({2: "6", 0: FREE}, (6, 2))
    assert not is_joined({2: "6", 0: FREE}, (0, 6))


def test_a_switch_that_cannot_carry_a_job_is_refused_with_the_line_that_lets_it(tmp_path):
    job = "jobs:\n  - {name: pair, ranks: [h1-gpu0, h2-gpu0], links: [{kind: pairs, pairs: [[0, 1]]}]}\n"
    duplex = RACK.replace("    tx: [0, 2]\n    rx: [4, 6]\n", "    port: [0, 2]\n") + job
    with pytest.raises(InventoryError, match="link pair/0-1: ocs cannot connect port 0 to port 2") as error:
        loaded(tmp_path, duplex)
    assert "input_count: 8" in str(error.value)
    assert loaded(tmp_path, duplex.replace("port_count: 8", "port_count: 8\n    input_count: 8")).jobs["pair"]
