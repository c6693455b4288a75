"""``device set`` at devices that lumctl has never written: what a device says it holds is what the change goes by."""

from contextlib import closing

import pytest

from lumctl.change import apply
from lumctl.context import Context
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.inventory.load import load_inventory
from lumctl.sim.launch import launch
from lumctl.sim.meshes.driver import SimMesh
from lumctl.sim.switches.driver import SimSwitch
from lumctl.store import store_at
from lumctl.swap import plan_rollback, plan_settings

BENCH = """\
lumctl: 1
racks: {bench: {}, lab: {}, cell: {}}
hosts:
  - name: h[1-2]
    rack: cell
    accelerators: [{id: "{host}-gpu0", model: X, memory_gib: 80, pci: "0000:1b:00.0"}]
devices:
  - {id: alone, rack: bench, kind: switch, driver: sim-switch, address: "a.example:1", port_count: 32}
  - {id: told, rack: lab, kind: mesh, driver: sim-mesh, address: "b.example:1", geometry: {columns: 2, rows: 2}}
  - {id: mute, rack: lab, kind: mesh, driver: smartlight, address: "c.example:1", geometry: {columns: 2, rows: 2}}
  - {id: met, rack: cell, kind: switch, driver: sim-switch, address: "d.example:1", port_count: 32}
transponders:
  - {id: "h[1-2]-gpu0-a", accelerator: "h[1-2]-gpu0", interface: eth2, device: met, tx: [0, 2], rx: [16, 18]}
  - {id: "h[1-2]-gpu0-b", accelerator: "h[1-2]-gpu0", interface: eth3, device: met, tx: [1, 3], rx: [17, 19]}
thresholds: {light_deadline_s: 1.0}
"""
"""A vendor's bench: a switch that nothing is plugged into, two meshes, a switch between two hosts; no job."""
JOB = 'jobs: [{name: train, ranks: "h[1-2]-gpu0", links: [{kind: ring}]}]\n'


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    path = folder / "bench.yaml"
    path.write_text(BENCH)
    with launch(load_inventory(path), folder=folder / "sim", tied=True) as running:
        yield running


@pytest.fixture
def context(sim, tmp_path):
    sim.renew()
    with Context(sim.inventory, "sim", endpoints=sim.endpoints(), store=stores(tmp_path)) as context:
        yield context


@pytest.fixture
def with_job(sim, tmp_path):
    """The same hardware and an inventory with a job, whose record was lost."""
    sim.renew()
    path = tmp_path / "job.yaml"
    path.write_text(BENCH + JOB)
    inventory = load_inventory(path)
    with Context(inventory, "sim", endpoints=sim.endpoints(), store=stores(tmp_path)) as context:
        yield context


def stores(folder):
    opened = {}
    return lambda rack: opened.setdefault(rack, store_at(str(folder / rack), rack=rack))


def switch(sim, name):
    """A switch past lumctl, as its own front panel."""
    return closing(SimSwitch(DriverContext(name, f"unix:{sim.control}", port_count=32, input_count=16)))


def joined(sim, name):
    with switch(sim, name) as device:
        return device.read_circuits()


def join(sim, name, joins):
    with switch(sim, name) as device:
        device.commit(device.stage(joins))


def done(context, component, setting):
    return apply(context, plan_settings(context, component, [setting]))


def test_a_switch_that_no_lane_meets_can_be_joined_and_rolled_back(context, sim):
    join(sim, "alone", {7: 27})
    first = done(context, "alone/port/3", "joined=20")
    assert joined(sim, "alone") == {3: 20, 7: 27}
    assert plan_settings(context, "alone/port/3", ["joined=20"]).steps == ()
    with pytest.raises(RefusedError, match="port 20 of alone is connected to port 3"):
        plan_settings(context, "alone/port/4", ["joined=20"])
    second = done(context, "alone/port/7", "joined=none")
    assert joined(sim, "alone") == {3: 20}
    for result in (second, first):
        run = context.store("bench").runs.get(result.run)
        apply(context, plan_rollback(context, run))
    assert joined(sim, "alone") == {7: 27}


def test_what_changed_at_such_a_switch_since_the_plan_is_not_written_over(context, sim):
    plan = plan_settings(context, "alone/port/3", ["joined=20"])
    join(sim, "alone", {3: 21})
    with pytest.raises(RefusedError, match="is not in the state that it had"):
        apply(context, plan)
    assert joined(sim, "alone") == {3: 21}


def test_a_mesh_that_can_be_read_needs_no_fabric_apply(context, sim):
    with closing(SimMesh(DriverContext("told", f"unix:{sim.control}", puc_count=19))) as mesh:
        mesh.commit(mesh.stage(dict(mesh.read_states()) | {5: PucState.CROSS}))
        before = mesh.read_states()
        done(context, "told/puc/3", "state=cross")
        assert mesh.read_states() == before | {3: PucState.CROSS}
        assert context.known_cells("told") == {puc: str(state) for puc, state in mesh.read_states().items()}


def test_a_mesh_that_cannot_be_read_is_programmed_first_by_the_command_of_the_hint(sim, shell_of):
    sim.renew()
    lumctl = shell_of(sim.inventory.path, sim.folder)
    refused = lumctl("device", "set", "mute/puc/3", "state=cross", "--yes", code=5)
    hint = refused.stderr.split("program the rack first: lumctl ")[1].split()
    assert "lab" in hint, "an inventory with several racks needs to be told which"
    lumctl(*hint, "--yes", code=0)
    lumctl("device", "set", "mute/puc/3", "state=cross", "--yes", code=0)


def test_the_light_path_that_is_cut_is_shown_before_the_yes(context, sim):
    join(sim, "met", {0: 18, 2: 16})
    plan = plan_settings(context, "met/port/0", ["joined=none"])
    assert [(cut.ingress, cut.egress, cut.agreed) for cut in plan.cuts] == [(0, 18, True)]
    apply(context, plan)
    assert joined(sim, "met") == {2: 16}


def test_light_between_two_lanes_in_a_rack_with_jobs_is_not_cut_without_a_record(with_job, sim):
    """Somebody's job may run there: where it runs is adopted from the light, and then the port can be set."""
    join(sim, "met", {0: 18, 2: 16})
    with pytest.raises(RefusedError, match="the store has no record of met") as refused:
        plan_settings(with_job, "met/port/0", ["joined=none"])
    assert "lumctl store adopt cell" in refused.value.hint
    assert joined(sim, "met") == {0: 18, 2: 16}
    done(with_job, "met/port/3", "joined=17")
    assert joined(sim, "met") == {0: 18, 2: 16, 3: 17}
