"""The torus of a rack: which server is where, its edges, and what is wrong with one."""

import pytest

from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Role
from lumctl.inventory.tables import as_data
from lumctl.inventory.torus import neighbours_along, positions_in

SMALL = """\
lumctl: 1
racks:
  r1:
    torus:
      shape: [4]
      server: [1]
      hosts: h[1-4]
      edges: ["e[1-3]"]
      wraps: [w]
  r2:
hosts:
  - {name: "h[1-4]", rack: r1, accelerators: [{id: "{host}-gpu0", model: X100, memory_gib: 80}]}
  - {name: other, rack: r2, accelerators: [{id: other-gpu0, model: X100, memory_gib: 80}]}
devices:
  - {id: "m[1-5]", rack: r1, kind: mesh, driver: x, address: "{id}:1", geometry: {columns: 3, rows: 2}}
fibres:
  - {name: e1, ends: ["m1/port/[4-5]", "m2/port/[6-7]"]}
  - {name: e2, ends: ["m2/port/[4-5]", "m3/port/[6-7]"]}
  - {name: e3, ends: ["m3/port/[4-5]", "m4/port/[6-7]"]}
  - {name: w, ends: ["m4/port/[4-5]", "m1/port/[6-7]"]}
  - {name: across, ends: [m1/port/10, m3/port/10]}
  - {name: outside, ends: [m1/port/12, m5/port/12]}
transponders:
  - {id: "h[1-4]-a", accelerator: "h[1-4]-gpu0", interface: eth2, device: "m[1-4]", port: 0}
  - {id: "h[1-4]-b", accelerator: "h[1-4]-gpu0", interface: eth3, device: "m[1-4]", port: 2}
"""


def test_servers_and_edges_are_resolved(write):
    torus = load_inventory(write(SMALL)).racks["r1"].torus
    assert (torus.grid, torus.hosts, torus.devices) == ((4,), ("h1", "h2", "h3", "h4"), ("m1", "m2", "m3", "m4"))
    assert [(e.fibre, e.servers, e.wraps) for e in torus.edges] == [
        ("e1", (0, 1), False),
        ("e2", (1, 2), False),
        ("e3", (2, 3), False),
        ("w", (3, 0), True),
    ]


def test_a_rack_without_one_has_none(write):
    inventory = load_inventory(write(SMALL))
    assert inventory.racks["r2"].torus is None
    assert as_data(inventory)["racks"][0]["torus"]["shape"] == [4]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("shape: [4]", "shape: [0]", "5:15: found 0, expected at least 1"),
        ("shape: [4]", "shape: [-4]", "5:15: found -4, expected at least 1"),
        ("shape: [4]", "shape: [4, 1]", "6:15: found a server of 1 dimensions in a torus of 2, expected as many"),
        ("server: [1]", "server: [3]", "6:16: found 3, expected a divisor of 4, the extent of that dimension"),
        ("shape: [4]", "shape: [6]", "7:14: found 4 hosts: 6 accelerators in servers of 1 need 6 hosts"),
        ("hosts: h[1-4]", "hosts: h[1-3]", "7:14: found 3 hosts: 4 accelerators in servers of 1 need 4 hosts"),
        ("hosts: h[1-4]", "hosts: [h1, h2, h3, h9]", "7:27: host 'h9' is not known"),
        ("hosts: h[1-4]", "hosts: [h1, h2, h3, h3]", "7:27: host h3 is used twice, by place 2 and by place 3"),
        ("hosts: h[1-4]", "hosts: [h1, h2, h3, other]", "7:27: other is in rack r2, expected a host of rack r1"),
        ('["e[1-3]"]', '["e[1-4]"]', "8:15: fibre 'e4' is not known; expected one of: e1, e2, e3, w, across, outside"),
        ('["e[1-3]"]', '["e[1-3]", e2]', "8:25: fibre e2 is used twice"),
        (
            '["e[1-3]"]',
            '["e[1-3]", across]',
            "8:25: across joins m1 at (0) and m3 at (2) of the grid, expected servers side by side",
        ),
        ('["e[1-3]"]', '["e[1-3]", outside]', "8:25: outside ends at m5, which is no device of a server of the torus"),
        (
            'edges: ["e[1-3]"]\n      wraps: [w]',
            'edges: ["e[1-3]", w]',
            "8:25: w joins m4 at (3) and m1 at (0) of the grid, expected servers side by side; write it under wraps",
        ),
        (
            "wraps: [w]",
            "wraps: [w, across]",
            "9:18: across joins m1 at (0) and m3 at (2) of the grid, expected the first and the last server of a row",
        ),
        ("hosts: h[1-4]", "host: h[1-4]", "7:7: key 'host' is not known; did you mean 'hosts'?"),
        (
            'interface: eth3, device: "m[1-4]", port: 2',
            'interface: eth3, device: "m5", port: [0, 1, 2, 3]',
            "7:14: the lanes of h1 end at m1 and m5, expected one device for each server of a torus",
        ),
    ],
)
def test_each_mistake_has_its_place(problems_of, old, new, expected):
    assert SMALL.count(old) >= 1
    problems = [str(problem) for problem in problems_of(SMALL.replace(old, new, 1))]
    assert problems
    assert any(expected in problem for problem in problems), problems


def test_too_few_lanes_and_accelerators_are_reported_once(problems_of):
    text = SMALL.replace('  - {id: "h[1-4]-b"', '  - {id: "h[1-3]-b"').replace(
        'accelerator: "h[1-4]-gpu0", interface: eth3, device: "m[1-4]"',
        'accelerator: "h[1-3]-gpu0", interface: eth3, device: "m[1-3]"',
    )
    assert [str(p).partition("rack.yaml:")[2] for p in problems_of(text)] == [
        "7:14: h4-gpu0 has 1 lanes, expected 2: two for each dimension of the torus"
    ]
    more = SMALL.replace('"{host}-gpu0"', '"{host}-gpu[0-1]"')
    assert "7:14: h1 has 2 accelerators, expected 1, a server of 1" in str(problems_of(more)[0])


def test_all_mistakes_are_reported_at_once(problems_of):
    text = SMALL.replace('["e[1-3]"]', "[e1, e9, across, outside]").replace("wraps: [w]", "wraps: [e2, w]")
    places = [str(problem).partition("rack.yaml:")[2].partition(": ")[0] for problem in problems_of(text)]
    assert places == ["8:19", "8:23", "8:31", "9:15"]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("server: [1]", "server: [3]", "6:16"),
        ("hosts: h[1-4]", "hosts: h[1-5]", "7:14"),
        ("hosts: h[1-4]", "hosts: h[1-3]", "7:14"),
    ],
)
def test_a_shape_or_hosts_that_do_not_fit_hide_no_unknown_fibre(problems_of, old, new, place):
    text = SMALL.replace(old, new, 1).replace('["e[1-3]"]', '["e[1-3]", e9]')
    places = [str(problem).partition("rack.yaml:")[2].partition(": ")[0] for problem in problems_of(text)]
    assert places == [place, "8:25"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("geometry: {columns: 3, rows: 2}}", "geometry: {columns: x, rows: 2}}"),
        ('"m1/port/[4-5]", "m2/port/[6-7]"', '"m1/port/[4-5]", "m9/port/[6-7]"'),
        ('interface: eth2, device: "m[1-4]", port: 0', 'interface: eth2, device: "m[1-4]", port: x'),
    ],
)
def test_a_broken_device_fibre_or_lane_adds_no_other_error(problems_of, old, new):
    assert SMALL.count(old) == 1
    (problem,) = problems_of(SMALL.replace(old, new))
    assert "torus" not in str(problem)


def test_a_broken_accelerator_entry_hides_no_other_error_and_adds_none(problems_of):
    (problem,) = problems_of(SMALL.replace("memory_gib: 80", "memory_gib: x", 1))
    assert "found 'x', expected a number" in str(problem)


def test_a_blocked_port_leaves_a_bundle_with_less_room(write, problems_of):
    whole = "geometry: {columns: 3, rows: 2}}"
    blocked = "geometry: {columns: 3, rows: 2}, blocked_ports: [%s]}"
    loaded = load_inventory(write(SMALL.replace(whole, blocked % 4)))
    assert loaded.racks["r1"].torus is not None
    all_gone = [str(problem) for problem in problems_of(SMALL.replace(whole, blocked % "4, 5"))]
    assert len(all_gone) == 4
    assert all("port 4 of m" in problem and "which is blocked there" in problem for problem in all_gone)


def test_torus64_is_a_torus():
    inventory = load_inventory(example("torus64"))
    torus = inventory.racks["torus64"].torus
    assert (torus.shape, torus.server, torus.grid, torus.server_size) == ((4, 4, 4), (2, 2, 1), (2, 2, 4), 4)
    grid = []
    for place in positions_in(torus.grid):
        for dimension, extent in enumerate(torus.grid):
            ahead = list(place)
            ahead[dimension] = (ahead[dimension] + 1) % extent
            grid.append({torus.positions.index(place), torus.positions.index(tuple(ahead))})
    assert sorted(map(sorted, grid)) == sorted(sorted(edge.servers) for edge in torus.edges)
    assert {inventory.fibres[edge.fibre].capacity for edge in torus.edges} == {4}
    assert sum(edge.wraps for edge in torus.edges) == 20
    placed = {accelerator for job in inventory.jobs.values() for accelerator in job.ranks}
    roles = [each.role for each in inventory.accelerators.values()]
    assert (len(placed), roles.count(Role.SPARE), len(roles)) == (8, 4, 64)


@pytest.mark.parametrize("extent", range(1, 6))
def test_neighbours_are_one_step_apart_on_the_ring(extent):
    grid = (extent, 3)
    for a in positions_in(grid):
        for b in positions_in(grid):
            steps = [min((x - y) % n, (y - x) % n) for x, y, n in zip(a, b, grid, strict=True)]
            found = neighbours_along(grid, a, b)
            assert (found is not None) == (sum(steps) == 1)
            if found is not None:
                assert steps[found] == 1
