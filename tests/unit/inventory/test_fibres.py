"""The fibres of an inventory: what they stand for, and what is wrong with one."""

import json

import pytest

from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import DevicePort, Fibre
from lumctl.inventory.problems import InventoryError
from lumctl.inventory.tables import as_data, rows_of
from lumctl.inventory.wiring import circuits_of, initial_assignment, own_cells

MORE = """\
  - {id: other, kind: mesh, driver: smartlight, address: "other.example:1", geometry: {columns: 2, rows: 2}}
  - {id: switch, kind: switch, driver: x, address: "switch.example:1", port_count: 8}
"""
FIBRES = """\
fibres:
  - name: trunk
    ends: [mesh/port/7, other/port/3]
    loss_db: 0.4
  - name: bundle
    ends:
      - "mesh/port/[8-10]"
      - {device: switch, port: [0, 5, 2]}
    capacity: 2
"""


def with_fibres(small, fibres=FIBRES):
    return small.replace("transponders:\n", f"{MORE}{fibres}transponders:\n")


def test_fibres_are_resolved(small, write):
    inventory = load_inventory(write(with_fibres(small)))
    assert list(inventory.fibres.values()) == [
        Fibre("trunk", ("mesh", "other"), ((7, 3),), 0.4, 1),
        Fibre("bundle", ("mesh", "switch"), ((8, 0), (9, 5), (10, 2)), 0.0, 2),
    ]
    assert inventory.fibres["bundle"].pairs[1] == (DevicePort("mesh", 9), DevicePort("switch", 5))
    assert str(DevicePort("mesh", 9)) == "mesh:9"


def test_an_inventory_without_fibres_has_none(small, write):
    assert load_inventory(write(small)).fibres == {}


def test_they_are_listed(small, write):
    inventory = load_inventory(write(with_fibres(small)))
    data = json.loads(json.dumps(as_data(inventory)))["fibres"]
    assert data[0] == {
        "name": "trunk",
        "devices": ["mesh", "other"],
        "ports": [[7, 3]],
        "loss_db": 0.4,
        "capacity": 1,
    }
    assert rows_of(inventory, "fibres", folded=True)[1] == {
        "name": "bundle",
        "from": "mesh:8,9,10",
        "to": "switch:0,5,2",
        "loss_db": 0.0,
        "capacity": 2,
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("mesh/port/7,", "mesh/7,", "21:12: found 'mesh/7', expected DEVICE/port/N"),
        ("mesh/port/7,", "mehs/port/7,", "21:12: device 'mehs' is not known; did you mean 'mesh'?"),
        ("mesh/port/7,", "mesh/port/24,", "21:12: found port 24 of mesh, expected 0 to 23"),
        ("other/port/3", "other/port/x", "21:25: found 'other/port/x', expected DEVICE/port/N"),
        (", other/port/3", "", "21:11: found a list of length 1, expected at least 2"),
        ("[mesh/port/7, other/port/3]", "[mesh/port/7, 3]", "21:25: found 3, expected a text"),
        ("mesh/port/7,", "mesh/port/9,", "25:9: port 9 of mesh is used twice, by trunk and by bundle"),
        ("mesh/port/7,", "other/port/3,", "21:26: port 3 of other is used twice by trunk"),
        ("mesh/port/7,", "mesh/port/0,", "21:12: port 0 of mesh is used twice, by h1-gpu0-a and by trunk"),
        ("[8-10]", "[8-9]", "25:7: found 2 ports at one end but 3 at the other, expected equal numbers"),
        ("[8-10]", "[8-10", "25:9: 'mesh/port/[8-10' has a bracket without its partner"),
        ('"mesh/port/[8-10]"', '"[mesh,other,switch]/port/8"', "25:9: found ports of mesh and other and switch"),
        ("port: [0, 5, 2]", "port: [0, 5, x]", "26:39: found 'x', expected a whole number"),
        ("port: [0, 5, 2]", "prot: [0, 5, 2]", "26:26: key 'prot' is not known; did you mean 'port'?"),
        ("capacity: 2", "capacity: 4", "27:15: found a capacity of 4 for 3 fibres, expected at most 3"),
        ("capacity: 2", "capacity: 0", "27:15: found 0, expected at least 1"),
        ("loss_db: 0.4", "loss_db: -1", "22:14: found -1, expected at least 0"),
        ("loss_db: 0.4", "los_db: 0.4", "22:5: key 'los_db' is not known; did you mean 'loss_db'?"),
        ("name: bundle", "name: trunk", "23:11: fibre 'trunk' is defined twice, first as fibre in line 20"),
        ("name: trunk", "name: mesh", "20:11: fibre 'mesh' is defined twice, first as mesh in line 12"),
        ("name: trunk", "name: trunk[0-1]", "20:11: 'trunk[0-1]' cannot be a name"),
    ],
)
def test_one_mistake_is_one_line(small, problems_of, old, new, expected):
    assert FIBRES.count(old) == 1
    problems = problems_of(with_fibres(small, FIBRES.replace(old, new)))
    assert len(problems) == 1, [str(problem) for problem in problems]
    assert f"rack.yaml:{expected}" in str(problems[0])


def test_no_fibre_at_a_blocked_port(small, problems_of):
    text = with_fibres(small).replace("rows: 2}\n", "rows: 2}\n    blocked_ports: [7]\n", 1)
    (problem,) = problems_of(text)
    assert "rack.yaml:22:12: found port 7 of mesh, which is blocked there" in str(problem)


def test_a_fibre_stays_in_its_rack(small, problems_of):
    text = with_fibres(small).replace("  r1:\n", "  r1:\n  r2:\n", 1)
    text = text.replace("  - name: h[1-3]\n", "  - name: h[1-3]\n    rack: r1\n", 1)
    text = text.replace("kind: mesh\n    driver", "kind: mesh\n    rack: r1\n    driver", 1)
    text = text.replace("{id: other,", "{id: other, rack: r2,").replace("{id: switch,", "{id: switch, rack: r1,")
    (problem,) = problems_of(text)
    assert "mesh is in rack r1, but other is in r2: expected one rack" in str(problem)


def test_a_fibre_of_a_device_that_is_wrong_itself_is_not_reported_too(small, problems_of):
    problems = problems_of(with_fibres(small).replace("port_count: 8", "port_count: many"))
    assert ["many" in str(problem) for problem in problems] == [True]


def test_a_link_between_two_devices_needs_fibres_from_one_to_the_other(tmp_path):
    text = example("two-meshes").read_text()
    path = tmp_path / "rack.yaml"
    path.write_text(text)
    inventory = load_inventory(path)
    across = [c for c in circuits_of(inventory, initial_assignment(inventory)) if c.spans_devices]
    assert [c.between for c in across] == ["m0:11,m1:10", "m1:17,m0:4"]
    begin, end = text.index("fibres:"), text.index("# h1, h2")
    path.write_text(text[:begin] + text[end:])
    with pytest.raises(InventoryError) as raised:
        load_inventory(path)
    (problem,) = raised.value.problems
    assert "link train/1-2 connects h2-gpu0-b on m0 and h3-gpu0-a on m1, but no fibres lead from m0 to m1" in str(
        problem
    )


def test_devices_are_joined_by_fibres_through_others():
    inventory = load_inventory(example("four-meshes"))
    assert inventory.joined_by_fibres("m1", "m4")
    assert inventory.fibre_at[DevicePort("m2", 18)][1] == DevicePort("ocs", 4)
    assert own_cells(inventory, inventory.devices["ocs"]) == tuple(range(16))
