"""Circuits of the same job make room where a new one finds no way; nobody else's cells are touched."""

from dataclasses import replace
from functools import cache
from random import Random

import pytest

from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import Unroutable, changes, mesh, route, trace
from lumctl.inventory.load import load_inventory
from lumctl.inventory.wiring import Circuit, CircuitEnd, Direction
from lumctl.swap.light_paths import RerouteBudget
from lumctl.swap.path_routing import light_paths

COLUMNS, ROWS = 4, 3
SHAPE = mesh(COLUMNS, ROWS)
LAST = SHAPE.port_count - 1
RACK = f"""
lumctl: 1
racks: {{r: {{}}}}
defaults: {{transponder: {{rx_sensitivity_dbm: -90}}}}
hosts:
  - {{name: h, accelerators: [{{id: "g[0-{LAST}]", model: M, memory_gib: 1}}]}}
devices:
  - {{id: m, kind: mesh, driver: smartlight, address: "m.example:1", geometry: {{columns: {COLUMNS}, rows: {ROWS}}}}}
transponders:
  - {{id: "t[0-{LAST}]", accelerator: "g[0-{LAST}]", interface: "eth[0-{LAST}]", device: m,
     port: {list(range(SHAPE.port_count))}}}
"""
MOVABLE = RerouteBudget(movable=frozenset({"own"}))
SEEDS = range(40)


@pytest.fixture(scope="module")
def inventory(tmp_path_factory):
    path = tmp_path_factory.mktemp("moving") / "rack.yaml"
    path.write_text(RACK)
    return load_inventory(path)


def circuit(name, owner, ports):
    a, b = (CircuitEnd(f"t{port}", "m", port) for port in ports)
    return Circuit(name, owner, a, b, Direction.DUPLEX)


@cache
def crowd(seed):
    """A mesh with four live circuits of two owners, and one more that is wanted."""
    random = Random(seed)  # noqa: S311 - a seeded sample, no secret
    ports = random.sample(range(SHAPE.port_count), 10)
    pairs = [(ports[at], ports[at + 1]) for at in range(0, 10, 2)]
    blank = dict.fromkeys(range(SHAPE.puc_count), PucState.BAR)
    try:
        routes = route(SHAPE, pairs[:4], states=blank)
    except Unroutable:
        return None
    live = [circuit(f"{owner}/{at}", owner, pairs[at]) for at, owner in enumerate(["own", "own", "own", "f"])]
    return live, circuit("own/new", "own", pairs[4]), blank | changes(blank, routes)


def outcome(inventory, live, new, states, reroutes):
    try:
        return light_paths(inventory, live, [*live, new], {"m": states}, reroutes=reroutes)
    except RefusedError:
        return None


def test_moves_are_made_only_where_needed_and_never_touch_what_belongs_to_others(inventory):
    moved = 0
    for seed in SEEDS:
        made = crowd(seed)
        if made is None:
            continue
        live, new, states = made
        alone = outcome(inventory, live, new, states, RerouteBudget())
        found = outcome(inventory, live, new, states, MOVABLE)
        if alone is not None:
            assert found == alone  # nobody makes room without need
            assert not found.moved
            continue
        if found is None:
            continue
        moved += 1
        after = states | {cell.puc: PucState(cell.after) for cell in found.writes["m"]}
        assert found.moved
        assert found.moved <= {c.id for c in live if c.owner == "own"}
        assert {c.id for c in found.remove} == found.moved
        assert {c.id for c in found.add} == found.moved | {new.id}
        assert {c.id for c in found.keep} == {c.id for c in live} - found.moved
        for each in (*live, new):
            assert trace(SHAPE, after, each.ports[0]).exit == each.ports[1]
        written = {cell.puc for cell in found.writes["m"]}
        for each in live:
            if each.id not in found.moved:
                way = trace(SHAPE, states, each.ports[0]).passes
                assert trace(SHAPE, after, each.ports[0]).passes == way
                assert not written & {puc for puc, _ in way}
    assert moved >= 2  # else this has shown nothing


def test_where_circuits_make_room_a_puc_that_loses_much_light_is_avoided(inventory):
    shown = 0
    for seed in SEEDS:
        made = crowd(seed)
        found = made and outcome(inventory, *made, MOVABLE)
        if not found or not found.moved:
            continue
        for _, puc in found.add[0].pucs:
            lossy = replace(inventory.devices["m"], puc_loss_db={puc: 20.0})
            spared = outcome(replace(inventory, devices={"m": lossy}), *made, MOVABLE)
            shown += spared is not None and ("m", puc) not in spared.add[0].pucs
    assert shown  # most have no other way in so crowded a mesh


def test_a_rerouted_circuit_leaves_the_cells_to_avoid_and_nobody_else_moves(inventory):
    shown = 0
    for seed in SEEDS:
        made = crowd(seed)
        if made is None:
            continue
        live, _, states = made
        way = trace(SHAPE, states, live[0].ports[0]).pucs
        avoided = way[len(way) // 2]
        through = frozenset(c.id for c in live if c.owner == "own" and avoided in trace(SHAPE, states, c.ports[0]).pucs)
        reroutes = RerouteBudget({"m": frozenset({avoided})}, through)
        try:
            found = light_paths(inventory, live, live, {"m": states}, reroutes=reroutes)
        except RefusedError:
            continue
        shown += 1
        after = states | {cell.puc: PucState(cell.after) for cell in found.writes["m"]}
        assert {c.id for c in found.add} == {c.id for c in found.remove} == through
        assert all(avoided not in dict(c.pucs).values() for c in found.add)
        for each in live:
            now = trace(SHAPE, after, each.ports[0])
            assert now.exit == each.ports[1]
            assert each.id in through or now.passes == trace(SHAPE, states, each.ports[0]).passes
    assert shown >= 3
