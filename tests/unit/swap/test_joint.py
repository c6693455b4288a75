"""Several failures are replaced together: whenever trying everything finds a choice, one is found."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError, RefusedError
from lumctl.fabric import changes, mesh, route
from lumctl.inventory.load import load_inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment
from lumctl.swap.choice import choose
from lumctl.swap.path_routing import light_paths

# Two meshes. On each a pair of one job, half a pair of another beside it, and spares; lanes sit all along the rim.
RACK = """
lumctl: 1
racks: {{r: {{}}}}
hosts:
  - {{name: "w[1-6]", accelerators: [{{id: "{{host}}-x", model: M, memory_gib: 80}}]}}
{spares}
devices:
  - {{id: "m[1-2]", kind: mesh, driver: smartlight, address: "{{id}}.example:1", geometry: {{columns: 4, rows: 3}}}}
transponders:
  - {{id: "w[1-6]-a", accelerator: "w[1-6]-x", interface: eth0, device: [m1, m1, m1, m1, m2, m2],
     port: [3, 9, 14, 20, 3, 14]}}
{lanes}
jobs:
  - {{name: one, ranks: "w[1-2]-x", links: [{{kind: pairs, pairs: [[0, 1]]}}]}}
  - {{name: two, ranks: "w[3-4]-x", links: [{{kind: pairs, pairs: [[0, 1]]}}]}}
  - {{name: three, ranks: "w[5-6]-x", links: [{{kind: pairs, pairs: [[0, 1]]}}]}}
"""
FREE = [5, 11, 17, 23, 27, 29]


def rack(folder, spares):
    """``spares`` are pairs of what each is and the mesh that it sits on."""
    hosts, lanes = [], []
    for at, (text, device) in enumerate(spares):
        host = '  - {name: s%d, accelerators: [{id: "{host}-x", role: spare, %s}]}'
        hosts.append(host % (at, text))
        lanes.append(f"  - {{id: s{at}-a, accelerator: s{at}-x, interface: eth0, device: {device}, port: {FREE[at]}}}")
    path = folder / "rack.yaml"
    path.write_text(RACK.format(spares="\n".join(hosts), lanes="\n".join(lanes)))
    return load_inventory(path)


def programmed(inventory):
    shape = mesh(4, 3)
    states = {}
    for device in inventory.devices:
        wanted = [c.ports for c in circuits_of(inventory, initial_assignment(inventory)) if c.a.device == device]
        blank = dict.fromkeys(range(shape.puc_count), PucState.BAR)
        states[device] = blank | changes(blank, route(shape, wanted, states=blank))
    return states


def fits(inventory, failed, spare):
    old, new = inventory.accelerators[failed], inventory.accelerators[spare]
    return new.model == old.model and new.memory_gib >= old.memory_gib and not new.reserved


def by_trying(seen, states, failed, spares):
    """Every choice whose light paths can be had."""
    found = []
    for way in permutations(spares, len(failed)):
        if not all(fits(seen.inventory, a, s) for a, s in zip(failed, way, strict=True)):
            continue
        placed = dict(zip(failed, way, strict=True))
        after = {job: tuple(placed.get(a, a) for a in ranks) for job, ranks in seen.assignment.items()}
        try:
            light_paths(seen.inventory, seen.circuits, circuits_of(seen.inventory, after), states)
        except LumctlError:
            continue
        found.append(way)
    return found


KINDS = st.sampled_from(
    ["model: M, memory_gib: 80", "model: M, memory_gib: 141", "model: M, memory_gib: 40", "model: N, memory_gib: 80",
     "model: M, memory_gib: 80, reserved: true"]
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    spares=st.lists(st.tuples(KINDS, st.sampled_from(["m1", "m1", "m2"])), min_size=1, max_size=4),
    failed=st.lists(st.sampled_from([f"w{n}-x" for n in range(1, 7)]), min_size=1, max_size=3, unique=True),
)
def test_a_choice_is_found_whenever_trying_everything_finds_one(tmp_path_factory, observe, spares, failed):
    inventory = rack(tmp_path_factory.mktemp("joint"), spares)
    states, seen = programmed(inventory), observe(inventory)
    names = [f"s{at}-x" for at in range(len(spares))]
    ways = by_trying(seen, states, failed, names)
    try:
        choice = choose(seen, states, failed)
    except RefusedError:
        assert not ways
        return
    taken = [r.spare for r in choice.replacements]
    assert [r.failed for r in choice.replacements] == failed
    assert len(set(taken)) == len(taken)
    assert all(fits(inventory, a, s) for a, s in zip(failed, taken, strict=True))
    if ways:
        assert tuple(taken) in ways
        assert not choice.paths.moved
        larger = {way: sum(inventory.accelerators[s].memory_gib for s in way) for way in ways}
        assert larger[tuple(taken)] == min(larger.values())  # scarce parts are left where others will do
    else:
        assert choice.paths.moved
    assert {(c.failed, c.spare) for c in choice.candidates if c.chosen} == set(zip(failed, taken, strict=True))


GOOD, LARGE = "model: M, memory_gib: 80", "model: M, memory_gib: 141"


def test_two_that_are_linked_may_go_to_another_mesh_together(tmp_path, observe):
    inventory = rack(tmp_path, [(GOOD, "m2"), (GOOD, "m2"), (GOOD, "m1")])
    choice = choose(observe(inventory), programmed(inventory), ["w1-x", "w2-x"])
    assert {r.spare for r in choice.replacements} == {"s0-x", "s1-x"}


def test_the_best_spare_of_one_is_left_to_another_that_has_no_other(tmp_path, observe):
    inventory = rack(tmp_path, [(GOOD, "m1"), (LARGE, "m1")])
    path = inventory.path
    path.write_text(path.read_text().replace('{name: "w[1-6]", acc', '{name: "w[1-2,4-6]", acc').replace(
        "hosts:\n", "hosts:\n  - {name: w3, accelerators: [{id: w3-x, model: M, memory_gib: 141}]}\n"))  # fmt: skip
    inventory = load_inventory(path)
    choice = choose(observe(inventory), programmed(inventory), ["w1-x", "w3-x"])
    assert [r.spare for r in choice.replacements] == ["s0-x", "s1-x"]
    alone = choose(observe(inventory), programmed(inventory), ["w1-x"])
    assert alone.replacements[0].spare == "s0-x"
    behind = next(c for c in alone.candidates if c.spare == "s1-x")
    assert (behind.rank, behind.score["memory_gib"]) == (2, 61.0)
    assert "it has 61 GiB more than the other, which is enough" in behind.reasons[0]
    assert "it ranks first of 2, before s1-x" in alone.why[0]


def test_the_time_for_a_joint_choice_is_bounded(tmp_path, observe):
    inventory = rack(tmp_path, [(GOOD, "m1"), (GOOD, "m2"), (GOOD, "m1")])
    ticks = iter(range(0, 10_000, 15))
    with pytest.raises(RefusedError, match="2 choices of spares tried, there are more") as refused:
        choose(
            observe(inventory),
            programmed(inventory),
            ["w1-x", "w2-x", "w5-x"],
            attempt=lambda names, **_: f"swap {names[0]}" if names == ["w2-x"] else RefusedError("no spare"),
            clock=lambda: float(next(ticks)),
        )
    assert refused.value.hint == "choose the spares with --spare; replace one at a time: swap w2-x"
