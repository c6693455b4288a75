"""A simulated mesh that misbehaves in its own protocol: what each driver makes of it, and what really happened."""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.devices.drivers import load
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    NotTakenError,
    OutcomeUnknownError,
)
from lumctl.devices.registry import DeviceSet
from lumctl.devices.transaction import write
from lumctl.devices.types import PucState
from lumctl.devices.ways import Direct
from lumctl.inventory.load import load_inventory
from lumctl.sim.client import ask
from lumctl.sim.launch import launch
from lumctl.sim.meshes.object_client import SimMeshObject

RACK = """\
lumctl: 1
racks: {r1: {}}
hosts: [{name: h1}]
devices:
  - {id: line, kind: mesh, driver: smartlight, address: "line.example:65432", geometry: {columns: 3, rows: 2}}
  - {id: object, kind: mesh, driver: smartlight-object, address: "o.example:65432", geometry: {columns: 3, rows: 2}}
  - {id: whole, kind: mesh, driver: sim-mesh, address: "whole.example:65432", geometry: {columns: 3, rows: 2}}
"""
BAR, CROSS = PucState.BAR, PucState.CROSS
DEVICES = ("line", "object", "whole")
WANTED = dict.fromkeys(range(4), CROSS)


@pytest.fixture(scope="module")
def simulator():
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:  # a short path: sockets lie in it
        path = Path(folder) / "rack.yaml"
        path.write_text(RACK)
        runtime = Path(folder) / "sim"
        with launch(load_inventory(path), folder=runtime, tied=True) as running:
            yield running
        assert not runtime.exists(), "a stopped simulator leaves nothing, its meshes' sockets neither"


@pytest.fixture(params=DEVICES)
def mesh(request, simulator):
    """A driver with a second of patience, whose mesh is all bar and well, and is well again after the test."""
    devices = DeviceSet(
        simulator.inventory,
        simulator.endpoints(),
        shell_of=lambda host: pytest.fail(f"nobody asks {host}"),
        way_of=lambda endpoint: Direct(endpoint.address),
        known_states=lambda _device: {},
        now=time.time,
    )
    driver = devices.mesh(request.param)
    impatient = load(simulator.inventory.devices[request.param].driver)(replace(driver.context, timeout_s=1.0))
    impatient.commit(impatient.stage(dict.fromkeys(range(driver.context.puc_count), BAR)))
    yield impatient
    simulator.clear()
    impatient.close()
    devices.close()


def crossed(simulator, mesh) -> int:
    """How many cells of a mesh are really in cross, once it is well."""
    simulator.clear()
    return str(ask(simulator.control, "mesh-read", device=mesh.context.device)["states"]).count(CROSS.value)


UNKNOWN, UNREACHABLE = OutcomeUnknownError, DeviceUnreachableError


@pytest.mark.parametrize(
    ("fault", "line", "object_", "whole"),
    [
        # An object is asked before it is told, and then it is not told. An answer of the line protocol has no form
        # that could show that it was cut.
        ("device-slow", (UNKNOWN, 4), (UNREACHABLE, 0), (UNKNOWN, 4)),
        ("device-cut", (None, 4), (UNREACHABLE, 0), (UNKNOWN, 4)),
        ("device-half", (UNKNOWN, 2), (UNKNOWN, 2), (InconsistentError, 2)),
        ("device-refuse", (UNKNOWN, 0), (UNKNOWN, 0), (DeviceRefusedError, 0)),
        ("device-lying", (None, 0), (None, 0), (None, 0)),
        ("mesh-lying", (None, 0), (None, 0), (None, 0)),
        ("device-down", (UNREACHABLE, 0), (UNREACHABLE, 0), (UNREACHABLE, 0)),
        ("mesh-down", (UNREACHABLE, 0), (UNREACHABLE, 0), (UNREACHABLE, 0)),
    ],
)
def test_a_write_to_a_mesh_that_misbehaves(simulator, mesh, fault, line, object_, whole):
    """Which error, and how many of four cells were set."""
    staged = mesh.stage(WANTED)
    simulator.inject(mesh.context.device, fault)
    error, really = {"line": line, "object": object_, "whole": whole}[mesh.context.device]
    if error is None:
        mesh.commit(staged)
    else:
        with pytest.raises(error) as caught:
            mesh.commit(staged)
        assert type(caught.value) is error
    assert crossed(simulator, mesh) == really


@pytest.mark.parametrize("mesh", ["object", "whole"], indirect=True)
@pytest.mark.parametrize("fault", ["device-slow", "device-cut", "device-down"])
def test_a_mesh_that_cannot_be_read_is_unreachable(simulator, mesh, fault):
    staged = mesh.stage(WANTED)
    simulator.inject(mesh.context.device, fault)
    for call in (mesh.identify, lambda: mesh.compare(staged)):
        with pytest.raises(DeviceUnreachableError):
            call()


@pytest.mark.parametrize("mesh", ["object", "whole"], indirect=True)
@pytest.mark.parametrize(
    ("fault", "error", "really"),
    [
        ("device-refuse", DeviceRefusedError, 0),
        ("device-half", InconsistentError, 2),
        ("device-lying", InconsistentError, 0),
    ],
)
def test_a_transaction_reads_back_what_a_driver_cannot_know(simulator, mesh, fault, error, really):
    staged = mesh.stage(WANTED)
    simulator.inject(mesh.context.device, fault)
    with pytest.raises(error) as caught:
        write(mesh, staged)
    assert type(caught.value) in {error, NotTakenError}
    assert crossed(simulator, mesh) == really


@pytest.mark.parametrize("mesh", ["object", "whole"], indirect=True)
def test_half_a_change_is_seen_and_finished_once_the_mesh_is_well(simulator, mesh):
    staged = mesh.stage(WANTED)
    simulator.inject(mesh.context.device, "device-half")
    with pytest.raises((InconsistentError, OutcomeUnknownError)):
        mesh.commit(staged)
    simulator.clear()
    assert len(mesh.compare(staged)) == 2
    mesh.commit(staged)
    assert mesh.compare(staged) == ()


@pytest.mark.parametrize("mesh", ["line"], indirect=True)
@pytest.mark.parametrize("fault", ["device-slow", "device-cut", "device-half", "device-refuse"])
def test_a_greeting_is_no_answer_and_comes_whole_and_in_time(simulator, mesh, fault):
    simulator.inject(mesh.context.device, fault)
    assert mesh.identify() == f"line ready, {mesh.context.puc_count} PUCs"


@pytest.mark.parametrize("mesh", ["line"], indirect=True)
def test_an_answer_of_the_line_protocol_is_cut_in_mid_line(simulator, mesh):
    whole = mesh.commit(mesh.stage(WANTED)).text
    simulator.inject("line", "device-cut")
    left = mesh.commit(mesh.stage(WANTED)).text
    assert len(left) < len(whole)
    assert whole.startswith(left)


@pytest.mark.parametrize("mesh", ["object"], indirect=True)
def test_phases_are_kept_by_the_twin_and_by_the_driver(mesh):
    beside = SimMeshObject(mesh.context.address, mesh.context.way)
    beside.connect()
    beside.set_puc_states({5: (0.0, 1.25)})
    mesh.commit(mesh.stage({5: CROSS}))
    assert beside.get_puc_states()[5] == (1.0, 1.25)
    beside.reset()
    assert set(mesh.read_states().values()) == {BAR}
    beside.disconnect()
    with pytest.raises(ConnectionError, match="not connected"):
        beside.get_temp()
