"""Circuits through several devices: what is found is traced end to end, and what cannot be is refused with a proof."""

from dataclasses import replace
from itertools import combinations, permutations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import ExitCode, LumctlError, UsageError
from lumctl.fabric import mesh
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.network.model import MeshDevice, Network, SwitchDevice, ends_of, network_of, port_of
from lumctl.fabric.network.routing import NetworkUnroutable, full_cut, route_network
from lumctl.fabric.network.tracing import NetworkStates, circuits_made, network_changes, network_loss_db, trace_network
from lumctl.fabric.search import InconsistentFabricError
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import DevicePort, Fibre

BAR, CROSS = PucState.BAR, PucState.CROSS
IDLE = NetworkStates()


def fibre(name, a, b, *ports, loss_db=0.5, capacity=None):
    return Fibre(name, (a, b), ports, loss_db, len(ports) if capacity is None else capacity)


def two_meshes(*ports, capacity=None, **conditions):
    devices = {name: MeshDevice(mesh(3, 3), conditions.get(name, MeshCondition())) for name in ("m0", "m1")}
    return Network(devices, (fibre("trunk", "m0", "m1", *ports, capacity=capacity),))


def circuits(*texts):
    return [ends_of(text) for text in texts]


def attempt(network, demands, **known):
    try:
        return route_network(network, demands, **known), None
    except NetworkUnroutable as error:
        return (), error


@st.composite
def networks(draw):
    """Two to four small meshes, perhaps a switch, joined at random; and how all of them happen to stand."""
    rng = Random(draw(st.integers(0, 2**32)))  # noqa: S311 - a seeded sample, no secret
    devices = {}
    for number in range(rng.randint(2, 4)):
        shape = mesh(rng.randint(1, 3), rng.randint(2, 3))
        pucs = rng.sample(range(shape.puc_count), 3)
        stuck = {puc: rng.choice((BAR, CROSS)) for puc in pucs[: rng.randint(0, 2)]}
        damaged = frozenset(pucs[2:] if rng.random() < 0.3 else ())
        devices[f"m{number}"] = MeshDevice(shape, MeshCondition(stuck=stuck, damaged=damaged))
    if rng.random() < 0.5:
        devices["s"] = SwitchDevice(8, loss_db=1.5)
    free = {name: rng.sample(range(device.port_count), device.port_count) for name, device in devices.items()}
    fibres = []
    for number in range(rng.randint(3, 9)):
        a, b = rng.choice(list(devices)), rng.choice(list(devices))
        count = rng.randint(1, 3)
        if a != b and len(free[a]) > count + 1 and len(free[b]) > count + 1:
            ports = [(free[a].pop(), free[b].pop()) for _ in range(count)]
            capacity = rng.randint(1, count)
            fibres.append(fibre(f"f{number}", a, b, *ports, loss_db=rng.choice((0, 0.3, 4)), capacity=capacity))
    pucs = {
        name: {puc: rng.choice((BAR, CROSS)) for puc in range(device.mesh.puc_count)}
        for name, device in devices.items()
        if name != "s"
    }
    connects = {"s": frozenset({(0, 1), (2, 3)})} if "s" in devices else {}
    return Network(devices, tuple(fibres)), NetworkStates(pucs, connects), rng, free


@st.composite
def tasks(draw):
    """A network, what it happens to carry, some of that as live, and demands at ports that are left."""
    network, states, rng, free = draw(networks())
    made = [(found.start, found.exit) for found in circuits_made(network, states)]
    live = rng.sample(made, min(len(made), rng.randint(0, 2)))
    used = {place for ends in live for place in ends}
    left = [place for name, ports in free.items() for port in ports if (place := DevicePort(name, port)) not in used]
    ends = rng.sample(left, 2 * min(len(left) // 2, rng.randint(1, 3)))
    return network, states, live, list(zip(ends[::2], ends[1::2], strict=True))


def load_of(found):
    return {name: sum(name == used for one in found for used in one.fibres) for one in found for name in one.fibres}


@settings(deadline=None, max_examples=150)
@given(tasks())
def test_a_route_found_is_a_route_traced_and_live_circuits_stay(task):
    network, states, live, demands = task
    before = [trace_network(network, states, start) for start, _ in live]
    routes, refused = attempt(network, demands, states=states, live=live)
    if refused:
        assert set(refused.ends) <= set(demands)
        assert refused.ends
        return
    written = network_changes(network, states, routes)
    after = written.applied(states)
    assert [(found.path.start, found.path.exit) for found in routes] == demands
    for found in routes:
        path = found.path
        assert trace_network(network, after, path.start) == path
        back = trace_network(network, after, path.exit)
        assert (back.exit, back.fibres) == (path.start, path.fibres[::-1])
        assert found.loss_db == pytest.approx(network_loss_db(network, path))
    assert [trace_network(network, after, start) for start, _ in live] == before
    for segment in (segment for found in before for segment in found.segments):
        assert set(segment.pucs).isdisjoint(written.pucs.get(segment.device, {}))
        touched = written.connect.get(segment.device, ()) + written.disconnect.get(segment.device, ())
        assert set(segment.ports).isdisjoint(port for pair in touched for port in pair) or segment.pucs
    for found in routes:
        for segment in (each for each in found.path.segments if each.pucs):
            condition = network.devices[segment.device].condition
            assert all(condition.stuck.get(puc, state) is state for puc, state in found.passes(segment))
            assert condition.damaged.isdisjoint(segment.pucs)
    new, old = load_of(found.path for found in routes), load_of(before)
    for one in network.fibres:
        count = new.get(one.name, 0)
        assert count == 0 or count + old.get(one.name, 0) <= one.capacity


@settings(deadline=None, max_examples=100)
@given(networks())
def test_every_setting_pairs_all_ways_in_or_ends_light_in_a_switch(task):
    network, states, _, free = task
    for start in (DevicePort(name, port) for name, ports in free.items() for port in ports):
        found = trace_network(network, states, start)
        if found.exit is None:
            assert found.ends_in == "s"
        else:
            assert found.exit != start
            assert trace_network(network, states, found.exit).exit == start


@settings(deadline=None, max_examples=30)
@given(tasks())
def test_same_question_same_answer(task):
    network, states, live, demands = task
    first, second = (attempt(network, demands, states=states, live=live) for _ in range(2))
    assert first[0] == second[0]
    assert str(first[1]) == str(second[1])


def smallest(fibres):
    return Network({name: MeshDevice(mesh(1, 1)) for name in ("m0", "m1")}, fibres)


def every_circuit(network):
    """By trying every setting of both meshes: the least loss of each circuit, and the pairs of circuits at once."""
    least, together = {}, set()
    for setting in product((BAR, CROSS), repeat=12):
        states = NetworkStates({"m0": dict(enumerate(setting[:6])), "m1": dict(enumerate(setting[6:]))})
        made = circuits_made(network, states)
        together |= {frozenset(pair) for pair in combinations([frozenset({one.start, one.exit}) for one in made], 2)}
        for one in made:
            ends, loss = frozenset({one.start, one.exit}), network_loss_db(network, one)
            least[ends] = min(loss, least.get(ends, loss))
    return least, together


def test_small_networks_are_routed_as_trying_every_setting_says():
    network = smallest((fibre("a", "m0", "m1", (0, 5), loss_db=0.1), fibre("b", "m0", "m1", (7, 8), loss_db=3)))
    least, together = every_circuit(network)
    free = [place for n in ("m0", "m1") for p in range(12) if (place := DevicePort(n, p)) not in network.across]
    for ends in permutations(free, 2):
        routes, refused = attempt(network, [ends])
        if refused:
            assert refused.proven
            assert frozenset(ends) not in least
        else:
            assert routes[0].loss_db == pytest.approx(least[frozenset(ends)])
    missed = tried = 0
    rng = Random(3)  # noqa: S311 - a seeded sample, no secret
    for a, b, c, d in (rng.sample(free, 4) for _ in range(300)):
        possible = frozenset({frozenset({a, b}), frozenset({c, d})}) in together
        _, refused = attempt(network, [(a, b), (c, d)])
        tried += possible
        missed += possible and refused is not None
        assert not (possible and refused and refused.proven)
        assert possible or refused
    assert tried > 20
    assert missed <= tried * 0.005


def test_loss_adds_up_over_devices_and_fibres():
    network = Network(
        {
            "m0": MeshDevice(mesh(3, 3)),
            "s": SwitchDevice(4, loss_db=1.5),
            "m1": MeshDevice(mesh(2, 2), MeshCondition(loss_per_puc_db=0.5, loss_per_port_db=0.75)),
        },
        (fibre("up", "m0", "s", (10, 0), loss_db=0.2), fibre("down", "s", "m1", (3, 7), loss_db=0.3)),
    )
    (found,) = route_network(network, circuits("m0:1,m1:2"))
    assert [(one.device, one.ports) for one in found.path.segments] == [
        ("m0", (1, 10)),
        ("s", (0, 3)),
        ("m1", (7, 2)),
    ]
    assert found.path.fibres == ("up", "down")
    first, _, last = (len(segment.pucs) for segment in found.path.segments)
    assert min(first, last) > 0
    assert found.loss_db == pytest.approx(2 * 1 + 0.25 * first + 0.2 + 1.5 + 0.3 + 2 * 0.75 + 0.5 * last)
    changes = network_changes(network, IDLE, [found])
    assert changes.connect == {"s": ((0, 3),)}
    assert not changes.disconnect


@pytest.mark.parametrize(("first", "second", "taken"), [(0.5, 6, "first"), (6, 0.5, "second")])
def test_of_two_parallel_ways_the_one_that_loses_less_is_taken(first, second, taken):
    devices = {"m0": MeshDevice(mesh(3, 3)), "m1": MeshDevice(mesh(3, 3))}
    fibres = (
        fibre("first", "m0", "m1", (4, 20), loss_db=first),
        fibre("second", "m0", "m1", (10, 14), loss_db=second),
    )
    (found,) = route_network(Network(devices, fibres), circuits("m0:7,m1:17"))
    assert found.path.fibres == (taken,)
    both = route_network(Network(devices, fibres), circuits("m0:7,m1:17", "m0:20,m1:2"))
    assert sorted(name for one in both for name in one.path.fibres) == ["first", "second"]


def test_a_bundle_carries_as_many_circuits_as_it_has_fibres_and_one_more_is_proven_impossible():
    network = two_meshes((2, 20), (6, 16), (10, 12))
    demands = circuits("m0:17,m1:3", "m0:20,m1:6", "m0:22,m1:9", "m0:25,m1:24")
    assert len(route_network(network, demands[:3])) == 3
    with pytest.raises(
        NetworkUnroutable, match=r"for 4 circuits at once .* the fibres out of m0 .* 3 of them"
    ) as refused:
        route_network(network, demands)
    assert refused.value.proven
    assert refused.value.ends == tuple(demands)
    assert refused.value.exit_code is ExitCode.REFUSED


def test_a_search_whose_time_is_up_ends_and_proves_nothing():
    network = two_meshes((2, 20), (6, 16), (10, 12))
    demands = circuits("m0:17,m1:3", "m0:20,m1:6", "m0:22,m1:9")
    with pytest.raises(NetworkUnroutable, match="time ran out, which does not prove") as refused:
        route_network(network, demands, left=lambda: 0.0)
    assert not refused.value.proven
    (alone,) = route_network(network, demands[:1], left=lambda: 0.0)
    assert (alone.path.start, alone.path.exit) == demands[0]


def test_a_bundle_carries_no_more_than_its_capacity_whatever_ways_there_are():
    network = two_meshes((2, 20), (6, 16), (10, 12), capacity=2)
    demands = circuits("m0:17,m1:3", "m0:20,m1:6", "m0:22,m1:9")
    assert len(route_network(network, demands[:2])) == 2
    with pytest.raises(NetworkUnroutable, match="room for 2 of them") as refused:
        route_network(network, demands)
    assert refused.value.proven


def test_what_is_live_uses_up_capacity():
    network = two_meshes((2, 20), (10, 12))
    live = circuits("m0:17,m1:3")
    states = network_changes(network, IDLE, route_network(network, live)).applied(IDLE)
    more = circuits("m0:20,m1:6", "m0:22,m1:9")
    assert len(route_network(network, more[:1], states=states, live=live)) == 1
    with pytest.raises(NetworkUnroutable, match="room for 1 of them") as refused:
        route_network(network, more, states=states, live=live)
    assert refused.value.proven


def test_capacity_is_shared_over_two_ways():
    """A bundle that is full sends the third circuit the long way, through another mesh."""
    devices = {name: MeshDevice(mesh(3, 3)) for name in ("m0", "m1", "m2")}
    fibres = (
        fibre("short", "m0", "m1", (2, 20), (6, 16), (10, 12), loss_db=0.1, capacity=2),
        fibre("out", "m0", "m2", (14, 4), loss_db=5),
        fibre("back", "m2", "m1", (18, 24), loss_db=5),
    )
    found = route_network(Network(devices, fibres), circuits("m0:17,m1:3", "m0:20,m1:6", "m0:22,m1:9"))
    assert sorted(one.path.fibres for one in found) == [("out", "back"), ("short",), ("short",)]


def test_devices_without_a_fibre_between_them_are_proven_unreachable():
    network = Network({"m0": MeshDevice(mesh(2, 2)), "m1": MeshDevice(mesh(2, 2)), "s": SwitchDevice(4)})
    for demand in circuits("m0:3,m1:5", "m0:3,s:1"):
        with pytest.raises(NetworkUnroutable, match="even alone") as refused:
            route_network(network, [demand])
        assert refused.value.proven


def test_every_matching_of_a_switch_is_made():
    network = Network({"s": SwitchDevice(6, loss_db=1.5)})
    for order in permutations(range(6)):
        demands = [(DevicePort("s", a), DevicePort("s", b)) for a, b in zip(order[::2], order[1::2], strict=True)]
        found = route_network(network, demands)
        assert [one.loss_db for one in found] == [1.5] * 3
        connects = network_changes(network, IDLE, found).applied(IDLE).connects["s"]
        assert {frozenset(pair) for pair in connects} == {frozenset(order[at : at + 2]) for at in (0, 2, 4)}


def test_servers_round_a_switch_are_joined_all_at_once():
    """A mesh for each of four servers, two fibres from each to the switch: every server talks with two others."""
    devices = {f"m{number}": MeshDevice(mesh(3, 3)) for number in range(4)} | {"s": SwitchDevice(8, loss_db=1)}
    fibres = tuple(fibre(f"f{n}", f"m{n}", "s", (10, 2 * n), (12, 2 * n + 1), loss_db=0.1) for n in range(4))
    network = Network(devices, fibres)
    demands = circuits("m0:0,m1:1", "m1:0,m2:1", "m2:0,m3:1", "m3:0,m0:1")
    found = route_network(network, demands)
    assert all(one.path.devices[1:-1] == ("s",) for one in found)
    made = circuits_made(network, network_changes(network, IDLE, found).applied(IDLE))
    ends = [{one.start, one.exit} for one in made]
    assert all(set(demand) in ends for demand in demands)
    with pytest.raises(NetworkUnroutable, match="the fibres out of m0 have room for 2 of them") as refused:
        route_network(network, [*demands, *circuits("m0:20,m2:20")])
    assert refused.value.proven


def test_a_fibre_of_a_bundle_between_switches_that_is_live_is_left_alone():
    devices = {"s": SwitchDevice(6), "t": SwitchDevice(6)}
    network = Network(devices, (fibre("trunk", "s", "t", (0, 0), (1, 1)),))
    for strand in (0, 1):
        states = NetworkStates(connects={name: frozenset({(strand, 2)}) for name in devices})
        (found,) = route_network(network, circuits("s:3,t:3"), states=states, live=circuits("s:2,t:2"))
        assert [segment.ports for segment in found.path.segments] == [(3, 1 - strand), (1 - strand, 3)]


def test_a_connection_that_nobody_needs_makes_way():
    network = Network({"s": SwitchDevice(6)})
    states = NetworkStates(connects={"s": frozenset({(0, 3), (1, 4), (5, 2)})})
    found = route_network(network, circuits("s:0,s:1"), states=states, live=circuits("s:2,s:5"))
    changes = network_changes(network, states, found)
    assert changes.disconnect == {"s": ((0, 3), (1, 4))}
    assert {frozenset(pair) for pair in changes.applied(states).connects["s"]} == {frozenset({0, 1}), frozenset({2, 5})}


def test_a_connection_that_stands_already_is_not_set_again():
    network = Network({"s": SwitchDevice(6)})
    states = NetworkStates(connects={"s": frozenset({(3, 0)})})
    changes = network_changes(network, states, route_network(network, circuits("s:0,s:3"), states=states))
    assert not changes.connect
    assert not changes.disconnect


def test_a_circuit_may_pass_one_mesh_twice():
    """In a single cell light keeps its sense of rotation: only the loop through the other mesh can turn it."""
    network = smallest((fibre("there", "m0", "m1", (1, 0)), fibre("back", "m1", "m0", (3, 5))))
    (found,) = route_network(network, circuits("m0:4,m0:2"))
    assert [(one.device, one.ports) for one in found.path.segments] == [
        ("m0", (4, 5)),
        ("m1", (3, 0)),
        ("m0", (1, 2)),
    ]
    assert found.path.fibres == ("back", "there")
    with pytest.raises(NetworkUnroutable, match="even alone"):
        route_network(smallest(()), circuits("m0:4,m0:2"))


def test_blocked_ports_carry_nothing():
    network = two_meshes((2, 20), (10, 12), m1=MeshCondition(blocked_ports=frozenset({12, 9})))
    with pytest.raises(NetworkUnroutable, match="m0:17,m1:9: a port is blocked"):
        route_network(network, circuits("m0:17,m1:9"))
    (found,) = route_network(network, circuits("m0:14,m1:10"))
    assert found.path.segments[0].ports[1] == 2
    with pytest.raises(NetworkUnroutable, match="room for 1 of them"):
        route_network(network, circuits("m0:17,m1:3", "m0:20,m1:6"))


def test_cuts_of_chains_and_stars_are_found_however_many_devices_there_are():
    devices = {f"m{number}": MeshDevice(mesh(1, 1)) for number in range(14)}
    names = list(devices)
    chain = tuple(fibre(f"f{at}", names[at], names[at + 1], (0, 4), (1, 5)) for at in range(13))
    network = Network(devices, chain)
    rooms = {one.name: 2 for one in chain}
    demands = [(DevicePort(names[a], 8), DevicePort(names[b], 8)) for a, b in [(2, 9), (3, 11), (1, 7)]]
    cut = full_cut(network, demands, rooms)
    assert cut is not None
    assert set(cut.crossing) == set(demands)
    assert cut.room == 2
    assert full_cut(network, demands[:2], rooms) is None


@settings(deadline=None, max_examples=60)
@given(tasks())
def test_a_cut_is_full_by_count(task):
    network, _, _, demands = task
    rooms = {one.name: one.capacity for one in network.fibres}
    cut = full_cut(network, demands, rooms)
    if cut is None:
        return
    inside = set(cut.devices)
    out = [one for one in network.fibres if len(inside & set(one.devices)) == 1]
    assert cut.room == sum(one.capacity for one in out) < len(cut.crossing)
    assert all((a.device in inside) != (b.device in inside) for a, b in cut.crossing)


@pytest.mark.parametrize(
    ("demands", "live", "said"),
    [
        (["m0:99,m1:3"], [], "port 99 is not on m0"),
        (["m9:1,m1:3"], [], "device 'm9' is not in the fabric"),
        (["m0:1,m1:3", "m0:1,m1:5"], [], "m0:1 is used twice"),
        (["m0:1,m0:1"], [], "m0:1 is used twice"),
        (["m0:2,m1:3"], [], "m0:2 cannot be an end of a circuit: fibre trunk is connected there"),
        (["m0:0,m1:3"], ["m0:0,m0:1"], "m0:0 is used twice"),
    ],
)
def test_wrong_ports_are_named(demands, live, said):
    with pytest.raises(UsageError, match=said):
        route_network(two_meshes((2, 20)), circuits(*demands), live=circuits(*live))


def test_a_live_circuit_that_is_not_there_is_named():
    with pytest.raises(InconsistentFabricError, match=r"m0:0,m1:5 should be live, but .* leaves at m0:1"):
        route_network(two_meshes((2, 20)), circuits("m0:8,m0:12"), live=circuits("m0:0,m1:5"))
    dark = Network({"s": SwitchDevice(4)})
    with pytest.raises(InconsistentFabricError, match="light from s:0 ends in s"):
        route_network(dark, [], live=circuits("s:0,s:1"))


@pytest.mark.parametrize(
    ("fibres", "said"),
    [
        ((fibre("a", "m0", "m1", (2, 99)),), "port 99 is not on m1"),
        ((fibre("a", "m0", "m2", (2, 3)),), "device 'm2'"),
        ((fibre("a", "m0", "m1", (2, 3)), fibre("b", "m0", "m1", (2, 4))), "m0:2 has two fibres"),
        ((fibre("a", "m0", "m1", (2, 3)), fibre("a", "m0", "m1", (4, 4))), "two fibres have the same name"),
    ],
)
def test_a_network_that_cannot_be(fibres, said):
    with pytest.raises(UsageError, match=said):
        smallest(fibres)


def test_light_is_not_traced_from_a_fibre():
    with pytest.raises(UsageError, match="m0:2 cannot be an entry: fibre trunk connects it to m1:20"):
        trace_network(two_meshes((2, 20)), IDLE, DevicePort("m0", 2))


def test_a_switch_port_with_two_partners_is_refused():
    states = NetworkStates(connects={"s": frozenset({(0, 1), (1, 2)})})
    with pytest.raises(UsageError, match="port 1 of s is connected twice"):
        trace_network(Network({"s": SwitchDevice(4)}), states, DevicePort("s", 1))


def test_a_wrong_answer_of_the_search_never_leaves_the_room(monkeypatch):
    demand, other = circuits("m0:8,m1:12", "m0:9,m1:12")
    (wrong,) = route_network(two_meshes((2, 20)), [other])
    moved = replace(wrong, path=replace(wrong.path, start=demand[0], exit=demand[1]))
    monkeypatch.setattr("lumctl.fabric.network.routing._route", lambda *_: moved)
    with pytest.raises(LumctlError, match="the route of m0:8,m1:12 cannot be traced"):
        route_network(two_meshes((2, 20)), [demand])


def test_ends_are_written_as_on_the_command_line():
    assert port_of("rail-0.a:12") == DevicePort("rail-0.a", 12)
    assert ends_of("m0:3,m1:9") == (DevicePort("m0", 3), DevicePort("m1", 9))
    for text in ("m0", "m0:", ":3", "m0:x", "3", "m0:-1"):
        with pytest.raises(UsageError, match="expected DEVICE:PORT"):
            port_of(text)
    with pytest.raises(UsageError, match="expected DEVICE:PORT,DEVICE:PORT"):
        ends_of("m0:3")


def test_the_fabric_of_an_inventory(tmp_path):
    path = tmp_path / "rack.yaml"
    path.write_text(
        """\
lumctl: 1
racks: {r1: , r2: }
hosts: [{name: h1, rack: r1}]
devices:
  - {id: "m[0-1]", rack: r1, kind: mesh, driver: x, address: "{id}:1", geometry: {columns: 3, rows: 3}, stuck: {7: bar}}
  - {id: s, rack: r1, kind: switch, driver: x, address: "s:1", port_count: 4, loss_per_port_db: 0.6}
  - {id: far, rack: r2, kind: switch, driver: x, address: "far:1", port_count: 4}
fibres:
  - {name: up, ends: [m0/port/10, s/port/0], loss_db: 0.1}
  - {name: down, ends: [s/port/3, m1/port/7]}
  - {name: loop, ends: [far/port/0, far/port/1]}
"""
    )
    network = network_of(load_inventory(path), "r1")
    assert list(network.devices) == ["m0", "m1", "s"]
    assert [one.name for one in network.fibres] == ["up", "down"]
    assert network.devices["s"] == SwitchDevice(4, 1.2, input_count=2)
    assert network.devices["m1"].condition.stuck == {7: BAR}
    (found,) = route_network(network, circuits("m0:1,m1:2"))
    assert found.path.fibres == ("up", "down")
