"""Networks of meshes against the exact solver: meshes joined by fibres are one larger mesh, as far as it can see."""

import os
from random import Random

import pytest

from lumctl.devices.types import PucState
from lumctl.fabric import Mesh, mesh
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import FREE
from lumctl.fabric.network.model import MeshDevice, Network, joint_of
from lumctl.fabric.network.routing import NetworkUnroutable, route_network
from lumctl.fabric.network.tracing import NetworkStates, network_changes
from lumctl.inventory.model import DevicePort, Fibre

pytest.importorskip("highspy")
pytest.importorskip("numpy")

CAMPAIGN = "LUMCTL_CAMPAIGN" in os.environ
TASKS = 1000 if CAMPAIGN else 30


def task(rng):
    """Two or three small meshes with fibres that are all to be had, and some demands."""
    devices = {}
    for number in range(rng.randint(2, 3)):
        shape = mesh(rng.randint(1, 3), rng.randint(1, 3))
        pucs = rng.sample(range(shape.puc_count), 2)
        stuck = {puc: rng.choice(list(PucState)) for puc in pucs[: rng.randint(0, 2)]}
        condition = MeshCondition(stuck=stuck, loss_per_port_db=0)
        devices[f"m{number}"] = MeshDevice(shape, condition)
    free = {name: rng.sample(range(device.port_count), device.port_count) for name, device in devices.items()}
    fibres = []
    for number in range(rng.randint(2, 6)):
        a, b = rng.sample(list(devices), 2)
        fibres.append(Fibre(f"f{number}", (a, b), ((free[a].pop(), free[b].pop()),), 0, 1))
    left = [DevicePort(name, port) for name, ports in free.items() for port in ports]
    ends = rng.sample(left, 2 * rng.randint(1, 4))
    return Network(devices, tuple(fibres)), list(zip(ends[::2], ends[1::2], strict=True))


def as_one_mesh(network):
    """The network as a mesh, the number of the port at each end, and what is stuck in it."""
    joint = joint_of(network)
    ports = [terminal for place, terminal in joint.terminal_of.items() if joint.peers[terminal] == FREE]
    number = {joint.place_of[terminal]: port for port, terminal in enumerate(ports)}
    one = Mesh("network", ((0, 1),) * (len(joint.peers) // 4), tuple(joint.peers), tuple(ports))
    stuck = {
        joint.first_of[name] // 4 + puc: state
        for name, device in network.meshes
        for puc, state in device.condition.stuck.items()
    }
    return one, number, stuck


def attempt(network, demands):
    """The routes, ``None`` if there are none; and whether that is said to be proven."""
    try:
        return route_network(network, demands), False
    except NetworkUnroutable as error:
        return None, error.proven


def test_against_the_exact_solver():
    from lumctl.fabric.research.exact import solve

    feasible = missed = passes = least = 0
    for seed in range(TASKS):
        network, demands = task(Random(seed))  # noqa: S311 - a seeded sample, no secret
        one, number, stuck = as_one_mesh(network)
        exact = solve(one, [(number[a], number[b]) for a, b in demands], stuck=stuck, time_limit_s=20)
        routes, proven = attempt(network, demands)
        assert not (proven and exact.routes), f"seed {seed}: called impossible, and is not"
        if routes is None:
            feasible += exact.status == "optimal"
            missed += exact.status == "optimal"
            continue
        assert exact.status == "optimal", f"seed {seed}: routed what was reported as {exact.status}"
        feasible += 1
        passes += sum(len(found.path.pucs) for found in routes)
        least += exact.total
    if CAMPAIGN:
        print(f"{TASKS} tasks, {feasible} feasible, {missed} missed, {passes} passes against {least}")  # noqa: T201
    assert feasible > TASKS / 4
    assert missed <= max(1, 0.005 * feasible)
    assert passes <= 1.02 * least


def test_no_circuit_could_lose_less_where_the_others_are():
    better = routed = 0
    for seed in range(TASKS):
        network, demands = task(Random(seed))  # noqa: S311 - a seeded sample, no secret
        routes, _ = attempt(network, demands)
        if routes is None:
            continue
        states = network_changes(network, NetworkStates(), routes).applied(NetworkStates())
        for found in routes:
            others = [(one.path.start, one.path.exit) for one in routes if one is not found]
            (again,) = route_network(network, [(found.path.start, found.path.exit)], states=states, live=others)
            routed += 1
            better += again.loss_db < found.loss_db - 1e-6
    assert routed > TASKS
    assert better == 0
