"""The simulated meshes: the controllers' line protocol, the driver ``sim-mesh``, and faults."""

import socket
import time

import pytest

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucState
from lumctl.fabric import mesh, trace
from lumctl.sim.meshes.driver import SimMesh

CROSS = PucState.CROSS


@pytest.fixture
def sim(prototype_sim):
    yield prototype_sim
    prototype_sim.process.clear()
    mesh = prototype_sim.mesh("mesh")
    mesh.commit(mesh.stage(dict.fromkeys(mesh.read_states(), PucState.BAR)))


def talk(sim, line: bytes) -> tuple[str, str]:
    """One exchange: the greeting, and what came until the server closed."""
    host, port = sim.endpoints.devices["mesh"].address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection, connection.makefile("rb") as stream:
        greeting = stream.readline().decode()
        connection.sendall(line)
        return greeting, stream.read().decode()


def test_the_line_protocol(sim):
    greeting, answer = talk(sim, b"[(3, 'x'), (81, 'x'), (4, '=')]\n")
    assert greeting == "mesh ready, 82 PUCs\n"
    assert answer == "ok 3 cells set\n"
    states = sim.mesh("mesh").read_states()
    assert {puc for puc, state in states.items() if state is CROSS} == {3, 81}


@pytest.mark.parametrize("line", [b"[(3, 'x'), (82, 'x')]\n", b"[(3, 'x'), (-1, 'x')]\n", b"[(3, 'x')\n", b"\xff\n"])
def test_a_bad_line_changes_nothing(sim, line):
    _, answer = talk(sim, line)
    assert answer.startswith("error: ") or line == b"\xff\n"
    assert CROSS not in sim.mesh("mesh").read_states().values()


def test_a_line_without_end_is_cut_off(sim):
    try:
        _, answer = talk(sim, b"[" + b"(3, 'x'), " * 20_000)
    except (ConnectionResetError, BrokenPipeError):
        answer = ""
    assert answer == ""
    assert CROSS not in sim.mesh("mesh").read_states().values()


def test_cells_take_their_time_to_settle(simulate):
    sim = simulate("prototype", delay_ms=200)
    started = time.monotonic()
    talk(sim, b"[(3, 'x')]\n")
    assert time.monotonic() - started >= 0.2


def test_a_controller_that_is_down_refuses_and_comes_back_where_it_was(sim):
    sim.process.inject("mesh", "mesh-down")
    with pytest.raises(ConnectionRefusedError):
        talk(sim, b"[]\n")
    with pytest.raises(DeviceUnreachableError, match="mesh does not answer"):
        sim.mesh("mesh").read_states()
    sim.process.clear("mesh")
    assert talk(sim, b"[(3, 'x')]\n")[1] == "ok 1 cells set\n"


def test_a_lying_controller_acknowledges_and_does_nothing(sim):
    sim.process.inject("mesh", "mesh-lying")
    assert talk(sim, b"[(3, 'x')]\n")[1] == "ok 1 cells set\n"
    assert CROSS not in sim.mesh("mesh").read_states().values()


def test_a_change_that_was_not_confirmed_in_time_cannot_be_confirmed(sim):
    mesh = sim.mesh("mesh")
    receipt = mesh.commit(mesh.stage({3: CROSS}), revert_after_s=0.0)
    with pytest.raises(DeviceRefusedError, match="has reverted"):
        mesh.confirm(receipt)


def test_powers_leave_where_the_light_does(sim):
    lane = sim.inventory.transponders["s0-gpu0-a"].lane
    leaves = trace(mesh(7, 3), {}, lane.tx).exit
    powers = sim.mesh("mesh").read_powers((leaves,))
    assert -30 < powers[leaves] < 5


def test_another_device_and_another_address_are_errors_of_one_line():
    with pytest.raises(DeviceUnreachableError, match="not a simulator's socket"):
        SimMesh(DriverContext(device="mesh", address="10.0.0.1:65432")).identify()
