"""Circuits across devices: new ones are made, and no other moves, in random racks; judged by a tracer of its own."""

import os
import random
from dataclasses import dataclass, replace

import pytest

from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates, Unroutable, mesh_of
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import DevicePort, Evidence, Inventory, Lane, Transponder
from lumctl.inventory.wiring import FREE, Circuit, CircuitEnd, Direction, own_cells
from lumctl.swap.light_paths import LightPaths, RerouteBudget
from lumctl.swap.path_routing import light_paths

SEEDS = range(1000 if "LUMCTL_CAMPAIGN" in os.environ else 60)
HEAD = """\
lumctl: 1
racks: {r: }
hosts: [{name: h}]
devices:
"""


@dataclass
class RandomRack:
    """Two or three meshes, perhaps a switch, fibres between them, and ports left over for lanes."""

    inventory: Inventory
    free: list[DevicePort]


@pytest.fixture(params=SEEDS)
def rng(request):
    return random.Random(request.param)  # noqa: S311 - a seeded sample, no secret


@pytest.fixture
def rack(rng, tmp_path):
    shapes = {f"m{number}": (rng.randint(2, 4), rng.randint(2, 3)) for number in range(rng.randint(2, 3))}
    text = HEAD
    for name, (columns, rows) in shapes.items():
        geometry = f"geometry: {{columns: {columns}, rows: {rows}}}"
        text += f'  - {{id: {name}, kind: mesh, driver: x, address: "{name}:1", {geometry}}}\n'
    if rng.random() < 0.5:
        text += '  - {id: s, kind: switch, driver: x, address: "s:1", port_count: 12, input_count: 12}\n'
    path = tmp_path / "rack.yaml"
    path.write_text(text)
    bare = load_inventory(path)
    free = {d.id: rng.sample(range(d.port_count), d.port_count) for d in bare.devices.values()}
    text += "fibres:\n"
    names = list(free)
    for number in range(rng.randint(2, 6)):
        a, b = (names[number % len(names)], names[(number + 1) % len(names)])
        text += f"  - {{name: f{number}, ends: [{a}/port/{free[a].pop()}, {b}/port/{free[b].pop()}], loss_db: 0.1}}\n"
    path.write_text(text)
    places = [DevicePort(device, port) for device, ports in free.items() for port in ports]
    rng.shuffle(places)
    lane = Transponder("a", "g", "h", "eth2", Lane("m0", 0, 0), "hostport", (Evidence.LLDP,), 0.0, -100.0)
    return RandomRack(replace(load_inventory(path), transponders={"a": lane, "b": lane}), places)


def circuit(name, a, b):
    return Circuit(name, name, CircuitEnd("a", a.device, a.port), CircuitEnd("b", b.device, b.port), Direction.DUPLEX)


class Joined:
    """Places that light leads between, as groups: what is joined with what, in whatever order."""

    def __init__(self):
        self._leader = {}

    def leader(self, place):
        while self._leader.setdefault(place, place) != place:
            place = self._leader[place]
        return place

    def join(self, one, other):
        self._leader[self.leader(one)] = self.leader(other)


def join_mesh(joined, device, held):
    mesh = mesh_of(device)
    for port, terminal in enumerate(mesh.ports):
        joined.join((device.id, port), (device.id, "terminal", terminal))
    for puc in range(mesh.puc_count):
        turn = 2 if held.get(puc, "=") == "=" else 3
        for terminal in (4 * puc, 4 * puc + 1):
            joined.join((device.id, "terminal", terminal), (device.id, "terminal", terminal ^ turn))
    for terminal, peer in enumerate(mesh.peers):
        if peer >= 0:
            joined.join((device.id, "terminal", terminal), (device.id, "terminal", peer))


def partners(inventory, cells):
    """For every port without a fibre, the port that its light reaches: found by what is joined, not by walking."""
    joined = Joined()
    for device in inventory.devices.values():
        if device.geometry is not None:
            join_mesh(joined, device, cells[device.id])
        for at, to in () if device.geometry else cells[device.id].items():
            if to != FREE:
                joined.join((device.id, at), (device.id, int(to)))
    for a, b in (pair for fibre in inventory.fibres.values() for pair in fibre.pairs):
        joined.join((a.device, a.port), (b.device, b.port))
    ends = {}
    for device in inventory.devices.values():
        for port in range(device.port_count):
            if DevicePort(device.id, port) not in inventory.fibre_at:
                ends.setdefault(joined.leader((device.id, port)), []).append((device.id, port))
    return {a: b for pair in ends.values() if len(pair) == 2 for a, b in (pair, pair[::-1])}


def reaches(inventory, cells, wanted):
    found = partners(inventory, cells)
    return all(found.get((c.a.device, c.a.port)) == (c.b.device, c.b.port) for c in wanted)


def written(cells, paths: LightPaths):
    after = {device: dict(held) for device, held in cells.items()}
    for device, changes in paths.writes.items():
        for change in changes:
            assert cells[device][change.puc] == change.before
            after[device][change.puc] = change.after
    return after


def idle(inventory):
    return {
        device.id: dict.fromkeys(range(device.geometry.puc_count), "=")
        if device.geometry
        else dict.fromkeys(range(device.port_count), FREE)
        for device in inventory.devices.values()
    }


def lit(rack, count):
    """As many circuits as find a path, up to ``count``, and the states that make them."""
    cells, made = idle(rack.inventory), []
    while rack.free[1:] and len(made) < count:
        new = circuit(f"c{len(made)}", rack.free.pop(), rack.free.pop())
        if not rack.inventory.joined_by_fibres(new.a.device, new.b.device):
            continue
        try:
            paths = light_paths(rack.inventory, made, [*made, new], cells)
        except (Unroutable, RefusedError):
            continue
        cells, made = written(cells, paths), [*made, new]
    return made, cells


def test_new_circuits_are_made_and_no_other_changes(rack, rng):
    made, cells = lit(rack, 5)
    assert reaches(rack.inventory, cells, made)
    if len(made) < 2 or len(rack.free) < 1:
        pytest.skip("too crowded to move anything")
    moved = rng.choice(made)
    kept = [c for c in made if c is not moved]
    end = next((p for p in rack.free if rack.inventory.joined_by_fibres(p.device, moved.a.device)), moved.b.place)
    after = [*kept, circuit(moved.id, moved.a.place, end)]
    before = FabricStates(rack.inventory, cells)
    try:
        paths = light_paths(rack.inventory, made, after, cells)
    except (Unroutable, RefusedError):
        return
    now = written(cells, paths)
    assert reaches(rack.inventory, now, after)
    states = FabricStates(rack.inventory, now)
    for each in kept:
        path = before.path_of(each)
        assert states.path_of(each) == path
        assert states.cells_of(path) == before.cells_of(path)
    assert {c.id for c in paths.add} == {c.id for c in paths.remove} == ({moved.id} if end != moved.b.place else set())
    if end == moved.b.place:
        return
    planned = {c.id: c for c in paths.add}[moved.id]
    assert planned.loss_db == pytest.approx(states.loss_db(states.path_of(after[-1])), abs=1e-3)
    assert planned.fibres == states.path_of(after[-1]).fibres


def test_circuits_make_room_only_where_they_may(rack):
    made, cells = lit(rack, 4)
    if len(rack.free) < 2:
        pytest.skip("no port is left")
    new = circuit("new", rack.free.pop(), rack.free.pop())
    if not rack.inventory.joined_by_fibres(new.a.device, new.b.device):
        pytest.skip("no fibres lead there")
    owners = frozenset(c.owner for c in made[:2])
    try:
        paths = light_paths(rack.inventory, made, [*made, new], cells, reroutes=RerouteBudget(movable=owners))
    except (Unroutable, RefusedError):
        return
    now = written(cells, paths)
    assert reaches(rack.inventory, now, [*made, new])
    assert paths.moved <= owners
    before, after = FabricStates(rack.inventory, cells), FabricStates(rack.inventory, now)
    assert all(before.path_of(c) == after.path_of(c) for c in made if c.id not in paths.moved)


def test_a_device_that_is_written_whole_gets_all_that_passes_it_again(rack):
    made, cells = lit(rack, 4)
    rewritten = frozenset({"m0"})
    try:
        paths = light_paths(rack.inventory, made, made, cells, rewrite=rewritten)
    except (Unroutable, RefusedError):
        return
    assert [change.puc for change in paths.writes["m0"]] == list(
        own_cells(rack.inventory, rack.inventory.devices["m0"])
    )
    assert reaches(rack.inventory, written(cells, paths), made)


def test_a_fibre_that_is_avoided_carries_nothing_new(rack):
    made, cells = lit(rack, 4)
    states = FabricStates(rack.inventory, cells)
    across = [c for c in made if c.spans_devices]
    if not across:
        pytest.skip("no circuit spans devices")
    fibre = states.path_of(across[0]).fibres[0]
    passing = frozenset(c.id for c in made if fibre in states.path_of(c).fibres)
    budget = RerouteBudget(rerouted=passing, avoid_fibres=frozenset({fibre}))
    try:
        paths = light_paths(rack.inventory, made, made, cells, reroutes=budget)
    except (Unroutable, RefusedError):
        return
    assert reaches(rack.inventory, written(cells, paths), made)
    assert {c.id for c in paths.add} == passing
    assert all(fibre not in c.fibres for c in paths.add)


def test_a_refusal_names_how_many_circuits_of_others_would_have_to_move(tmp_path):
    """The new circuit needs the fibres of two others, each of which could lead directly from s0 to s1."""
    fibres = [(0, 2, 2, 1), (2, 2, 1, 2), (0, 3, 3, 1), (3, 2, 1, 3), (0, 4, 1, 4), (0, 5, 1, 5)]
    text = HEAD + '  - {id: "s[0-3]", kind: switch, driver: x, address: "{id}:1", port_count: 8, input_count: 8}\n'
    ends = [f"[s{a}/port/{at}, s{b}/port/{to}]" for a, at, b, to in fibres]
    text += "fibres:\n" + "".join(f"  - {{name: f{number}, ends: {each}}}\n" for number, each in enumerate(ends))
    path = tmp_path / "rack.yaml"
    path.write_text(text)
    lane = Transponder("a", "g", "h", "eth2", Lane("s0", 0, 0), "hostport", (Evidence.LLDP,), 0.0, -100.0)
    inventory = replace(load_inventory(path), transponders={"a": lane, "b": lane})
    made = [circuit(f"c{at}", DevicePort("s0", at), DevicePort("s1", at)) for at in (0, 1)]
    cells = idle(inventory)
    for device, joins in {"s0": {0: "2", 1: "3"}, "s1": {0: "2", 1: "3"}, "s2": {1: "2"}, "s3": {1: "2"}}.items():
        cells[device] |= joins
    assert reaches(inventory, cells, made)
    after = [*made, circuit("new", DevicePort("s2", 0), DevicePort("s3", 0))]
    few, enough = (RerouteBudget(others=frozenset({"c0", "c1"}), most_others=most) for most in (1, 2))
    with pytest.raises(Unroutable, match=r"move 2 circuits of other jobs \(c0, c1\), but at most 1"):
        light_paths(inventory, made, after, cells, reroutes=few)
    paths = light_paths(inventory, made, after, cells, reroutes=enough)
    assert paths.moved == {"c0", "c1"}
    assert reaches(inventory, written(cells, paths), after)
