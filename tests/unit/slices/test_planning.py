"""Plans of slices on torus64, without a rack: what may be taken, what damage costs, and what a plan says."""

from collections import Counter
from dataclasses import replace

import pytest
from fake_torus import FakeRack, state

from lumctl.change.plan import from_document, to_document
from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates, Unroutable
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Role
from lumctl.inventory.slice_records import shape_of, slice_record
from lumctl.inventory.wiring import circuits_of
from lumctl.slices.documents import report_document, slice_document
from lumctl.slices.planning import plan_slice
from lumctl.slices.release import plan_release
from lumctl.slices.request import SliceRequest, read_shapes
from lumctl.swap.path_routing import DeviceUnroutable, light_paths, light_paths_along


@pytest.fixture(scope="module")
def torus64():
    return load_inventory(example("torus64"))


@pytest.fixture
def rack(torus64):
    return FakeRack(torus64)


def test_free_is_what_no_job_uses_and_is_well_and_no_spare(rack):
    rack.ill |= {"h01-gpu0": State.DEGRADED, "h02-gpu1-c": State.FAILED, "h03-gpu0-a": State.DISABLED}
    found = state(rack)
    kept = found.kept_from
    assert kept["h04-gpu2"] == "runs rank 2 of train"
    assert kept["h16-gpu0"] == "is a spare"
    assert kept["h01-gpu0"] == "is degraded"
    assert kept["h02-gpu1"] == "has a lane that is failed: h02-gpu1-c"
    assert "h03-gpu0" not in kept
    assert len(found.free) == 64 - 8 - 4 - 2
    assert state(rack, memory_gib=81).free == ()
    assert state(rack, model="H200").free == ()


def test_accelerators_lie_where_hosts_and_their_order_put_them(rack):
    places = {name: place for place, name in state(rack).accelerators.items()}
    assert [places[f"h01-gpu{n}"] for n in range(4)] == [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)]
    assert (places["h02-gpu0"], places["h05-gpu0"], places["h09-gpu0"]) == ((0, 0, 1), (0, 2, 0), (2, 0, 0))
    assert places["h16-gpu3"] == (3, 3, 3)


def test_edges_carry_what_the_light_shows_and_damage_leaves(rack, torus64):
    edges = {edge.name: edge for edge in state(rack).torus.edges}
    assert {name: edge.used for name, edge in edges.items() if edge.used} == dict(rack.carried())
    assert {edge.capacity for edge in edges.values()} == {4}
    fibre = torus64.fibres["z1"]
    here, there = fibre.pairs[0]
    mesh = torus64.devices[here.device]
    rack.inventory = replace(
        torus64, devices={**torus64.devices, mesh.id: replace(mesh, blocked_ports=frozenset({here.port}))}
    )
    assert {edge.name: edge.capacity for edge in state(rack).torus.edges if edge.capacity < 4} == {"z1": 3}
    rack.inventory = torus64
    rack.silent = (there.device,)
    down = {edge.name for edge in state(rack).torus.edges if edge.capacity == 0}
    assert down == {name for name, each in torus64.fibres.items() if there.device in each.devices}


def test_damage_around_a_port_cuts_its_fibre_off(rack, torus64):
    mesh = torus64.devices["m01"]
    port = torus64.fibres["z1"].pairs[0][0].port
    alone = FabricStates(torus64, {"m01": dict.fromkeys(range(mesh.geometry.puc_count), "=")})
    first = alone.follow(torus64.fibres["z1"].pairs[0][0]).segments[0].pucs[0]
    damaged = replace(mesh, damaged=frozenset({first}))
    rack.inventory = replace(torus64, devices={**torus64.devices, "m01": damaged})
    lost = {name: edge.capacity for edge in state(rack).torus.edges if edge.capacity < 4 for name in [edge.name]}
    assert lost["z1"] < 4, f"port {port} is cut off"


@pytest.mark.parametrize("shape", ["2x2x1", "4x4x1", "4x2x2", "4x4x2", "3x3x1", "16"])
def test_a_plan_makes_what_it_says_and_a_release_takes_it_back(rack, shape):
    before, carried = {device: dict(cells) for device, cells in rack.cells.items()}, rack.carried()
    plan = rack.planned(shape)
    assert from_document(to_document(plan)) == plan
    assert plan == rack.planned(shape), "the same rack gives the same plan"
    taken = [row["accelerator"] for row in plan.slices.placement]
    assert all(rack.inventory.accelerators[name].role is not Role.SPARE for name in taken)
    assert not set(taken) & set(rack.placed["train"])
    rack.carry_out(plan)
    now = rack.carried()
    assert now - carried == Counter(fibre for circuit in plan.add for fibre in circuit.fibres)
    assert max(now.values()) == plan.slices.fullest_edge["after"]
    assert {name: len(ranks) for name, ranks in rack.placed.items() if name == "tenant"} == {"tenant": len(taken)}
    rack.carry_out(plan_release(rack, "tenant"))
    assert rack.cells == before
    assert "tenant" not in rack.placed


@pytest.mark.parametrize(("shape", "used"), [("4x1x1", 6), ("4x4x1", 6), ("2x2x2", 6), ("8x1x1", 6), ("2x1x1", 6)])
def test_ports_of_dimensions_without_a_neighbour_serve_the_others(rack, shape, used):
    before = {device: dict(cells) for device, cells in rack.cells.items()}
    narrow = rack.planned(shape)
    plan = rack.planned(shape, redirect=True)
    assert sum(row["ports_used"] for row in plan.slices.bandwidth) == used
    assert [row["ports_used"] for row in plan.slices.bandwidth] == [
        row["ports_redirected"] for row in narrow.slices.bandwidth
    ]
    assert all(row["gb_s"] == row["gb_s_redirected"] for row in plan.slices.bandwidth)
    rack.carry_out(plan)
    shown = slice_document(rack, "tenant")
    assert (shown["ports_used"], shown["ports_available"], shown["not_programmed"]) == (used, 6, 0)
    assert shown["circuits"] == len(shown["accelerators"]) * used // 2
    rack.carry_out(plan_release(rack, "tenant"))
    assert rack.cells == before


def test_with_redirection_a_link_is_as_wide_as_the_fibres_allow(rack, torus64):
    """One fibre of each bundle is left: what cannot be had is stated."""
    blocked = Counter()
    for fibre in torus64.fibres.values():
        for pair in fibre.pairs[1:]:
            blocked.update((end.device, end.port) for end in pair)
    narrow = {
        name: replace(device, blocked_ports=device.blocked_ports | {port for of, port in blocked if of == name})
        for name, device in torus64.devices.items()
    }
    rack.inventory = replace(torus64, devices=narrow)
    plan = rack.planned("28x1x1", redirect=True)
    (row,) = plan.slices.bandwidth
    assert row["ports_used"] < row["ports_redirected"] == 6
    assert any("with 3x1x1 circuits a link" in line for line in plan.why)


def test_several_slices_of_one_plan_share_nothing(rack):
    plan = plan_slice(rack, SliceRequest(read_shapes("2x2x2"), ("a-1", "a-2", "a-3"), ()))
    taken = [row["accelerator"] for row in plan.slices.placement]
    assert len(taken) == len(set(taken)) == 24
    rack.carry_out(plan)
    assert {"a-1", "a-2", "a-3"} <= set(rack.assignment())
    rack.carry_out(plan_release(rack, "a-2"))
    assert {c.owner for c in rack.observe().circuits} == {"train", "a-1", "a-3"}


def test_only_the_named_hosts_are_used(rack):
    plan = rack.planned("4", hosts=("h07", "h08"))
    assert {row["host"] for row in plan.slices.placement} <= {"h07", "h08"}
    with pytest.raises(RefusedError, match="there is no place for a slice of 12"):
        rack.planned("12", hosts=("h07", "h08"))


def test_what_cannot_be_met_says_why_and_what_would_make_room(rack):
    with pytest.raises(RefusedError, match="53 accelerators are needed and 52 are free") as error:
        rack.planned("53")
    assert "h[04,12]-gpu[0-3] (run train)" in error.value.hint
    assert "h16-gpu[0-3] (is a spare)" in error.value.hint


def test_a_release_keeps_what_another_slice_uses_and_what_its_path_is_not_known(rack):
    rack.carry_out(rack.planned("4x4x1", "a"))
    rack.carry_out(rack.planned("4x4x1", "b"))
    stay = {c.id: rack.observe().paths[c.id] for c in rack.observe().circuits if c.owner != "a"}
    rack.carry_out(plan_release(rack, "a"))
    now = rack.observe().paths
    assert {name: now[name] for name in stay} == stay


def test_circuits_take_the_fibres_that_were_chosen_and_a_full_bundle_is_refused(rack, torus64):
    ranks = ("h01-gpu0", "h02-gpu0")
    placed = {"a": ranks, shape_of("a"): slice_record((2, 1, 1), ranks)}
    wanted = tuple(c for c in circuits_of(torus64, rack.placed | placed) if c.owner == "a")
    live = circuits_of(torus64, rack.placed)
    there, back = (circuit.id for circuit in wanted)
    chosen = {there: ("z1",), back: ("z2", "z3", "z1w")}
    paths = light_paths_along(torus64, live, (*live, *wanted), rack.cells, chosen)
    assert {circuit.id: circuit.fibres for circuit in paths.add} == chosen
    blocked = {
        end: frozenset(pair[at].port for pair in torus64.fibres["z1"].pairs)
        for at, end in enumerate(torus64.fibres["z1"].devices)
    }
    without = replace(
        torus64,
        devices={
            name: replace(device, blocked_ports=blocked.get(name, device.blocked_ports))
            for name, device in torus64.devices.items()
        },
    )
    with pytest.raises(Unroutable, match="z1 has no fibre left for a/0-1"):
        light_paths_along(without, live, (*live, *wanted), rack.cells, chosen)
    around = light_paths(without, live, (*live, *wanted), rack.cells)
    assert all("z1" not in circuit.fibres for circuit in around.add)


def test_a_server_whose_mesh_has_no_way_is_left_out(rack, monkeypatch):
    """The accelerators first; its fibres only once it has none to give."""
    found = state(rack)
    once = found.without("m01")
    assert set(found.free) - set(once.free) == {f"h01-gpu{n}" for n in range(4)}
    assert {edge.capacity for edge in once.torus.edges} == {4}
    assert once.kept_from["h01-gpu0"] == "is at m01, which has no way for the circuits"
    twice = once.without("m01")
    assert {edge.name for edge in twice.torus.edges if not edge.free} == {
        name for name, fibre in rack.inventory.fibres.items() if "m01" in fibre.devices
    }

    def refusing(inventory, before, after, states, fibres):
        if any(end.device == "m01" for circuit in after if circuit.owner == "tenant" for end in (circuit.a, circuit.b)):
            raise DeviceUnroutable("m01", Unroutable(((0, 1),), "there is no way for 0:1", proven=True))
        return light_paths_along(inventory, before, after, states, fibres)

    assert "h01" in {row["host"] for row in rack.planned("4x2x1").slices.placement}
    monkeypatch.setattr("lumctl.slices.planning.light_paths_along", refusing)
    assert "h01" not in {row["host"] for row in rack.planned("4x2x1").slices.placement}
    with pytest.raises(RefusedError, match=r"no way through the meshes was found .* m01: there is no way for 0:1"):
        rack.planned("4x2x1", hosts=("h01", "h09"))


def test_a_report_counts_what_is_free_and_in_use(rack):
    before = report_document(rack, seen=rack.observe())["racks"][0]
    assert (before["free"], before["ports"], before["fibres"]) == (52, 384, 192)
    assert before["ports_used"] == len({e for c in rack.observe().circuits for e in (c.a.transponder, c.b.transponder)})
    rack.carry_out(rack.planned("4x4x2"))
    document = report_document(rack, seen=rack.observe())
    after = document["racks"][0]
    assert after["free"] == 20
    assert after["ports_used"] == before["ports_used"] + 32 * 6
    assert after["fibres_used"] == sum(rack.carried().values())
    assert after["fragmentation"]["scattered"] <= after["fragmentation"]["box"] <= after["fragmentation"]["aligned"]
    assert document["overall"]["free"] == 20


def test_servers_whose_meshes_would_lose_too_much_light_are_left_out(rack, torus64):
    first = rack.planned("2x2x2")
    weakest = min(circuit.margin_db for circuit in first.add)

    def needing(more_db):
        lanes = torus64.transponders.items()
        changed = {name: replace(each, rx_sensitivity_dbm=each.rx_sensitivity_dbm + more_db) for name, each in lanes}
        return replace(torus64, transponders=changed)

    rack.inventory = needing(weakest + 0.05)
    again = rack.planned("2x2x2")
    assert min(circuit.margin_db for circuit in again.add) >= 0
    assert {row["host"] for row in again.slices.placement} != {row["host"] for row in first.slices.placement}
    rack.inventory = needing(weakest + 12)
    with pytest.raises(
        RefusedError, match=r"no way through the meshes was found .* m\d+: circuit .* would arrive with"
    ):
        rack.planned("2x2x2")
