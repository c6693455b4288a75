"""The phases of a job in light: each has its circuits, those of other jobs keep their paths, and damage is seen."""

from random import Random

import pytest

from lumctl.context import Observation
from lumctl.devices.types import PucState
from lumctl.fabric import FabricStates, changes, mesh, route
from lumctl.fleet.readings import Snapshot
from lumctl.health.states import ComponentHealth, HealthReport, State
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.wiring import FREE, circuits_of, initial_assignment, job_circuits, own_cells
from lumctl.training.phases import job_phases

HEAD = """\
lumctl: 1
racks: {r1: }
hosts:
  - name: h[0-7]
    accelerators: [{id: "{host}-g", model: X100, memory_gib: 80, pci: "0000:17:00.0"}]
devices:
  - {id: mesh, kind: mesh, driver: x, address: "x:1", settle_ms: 4, geometry: {columns: 8, rows: 6}%s}
transponders:
  - {id: "h[0-7]-a", accelerator: "h[0-7]-g", interface: eth2, device: mesh, port: %s}
jobs:
  - {name: other, ranks: "h[4-7]-g", links: [{kind: pairs, pairs: [[0, 1], [2, 3]]}]}
  - name: job
    ranks: h[0-3]-g
    phases:
      a: [{kind: pairs, pairs: [[0, 1], [2, 3]]}]
      b: [{kind: pairs, pairs: [[0, 2], [1, 3]]}]
      c: [{kind: pairs, pairs: [[0, 3]]}]
    order: [a, b, a, c]
"""


def observed(inventory, known, links=()):
    """A rack as observed, with some links that are not ok."""
    placed = initial_assignment(inventory)
    circuits = circuits_of(inventory, placed)
    states = {name: dict(links).get(name, State.OK) for name in inventory.transponders}
    report = HealthReport(
        at=1.0,
        hosts={},
        accelerators={},
        links={name: ComponentHealth(name, "link", state, read_at=1.0) for name, state in states.items()},
        devices={},
        circuits={},
    )
    fabric = FabricStates(inventory, known)
    paths = {circuit.id: fabric.path_of(circuit) for circuit in circuits}
    return Observation(1.0, "sim", inventory, placed, circuits, {}, Snapshot(1.0, 0.1, {}), report, paths=paths)


def programmed(inventory):
    """The states of a mesh that carries the circuits of all jobs."""
    geometry = inventory.devices["mesh"].geometry
    shape = mesh(geometry.columns, geometry.rows)
    blank = dict.fromkeys(range(shape.puc_count), PucState.BAR)
    circuits = circuits_of(inventory, initial_assignment(inventory))
    routes = route(shape, [c.ports for c in circuits], states=blank)
    return {"mesh": {puc: str(state) for puc, state in (blank | changes(blank, routes)).items()}}


def written(path, ports, more=""):
    path.write_text(HEAD % (more, ports))
    return load_inventory(path)


@pytest.fixture(params=range(11))
def inventory(request, tmp_path):
    ports = Random(request.param).sample(range(28), 8)  # noqa: S311 - no secret
    return written(tmp_path / "rack.yaml", ports)


def test_each_phase_has_its_circuits_and_other_jobs_keep_theirs(inventory):
    known = programmed(inventory)
    made = job_phases(observed(inventory, known), inventory.jobs["job"], known)
    before = FabricStates(inventory, known)
    for phase, light in zip(inventory.jobs["job"].phases, made.phases, strict=True):
        assert light.is_possible, light.obstacle
        job, placed = inventory.jobs["job"].in_phase(phase), initial_assignment(inventory)
        after = FabricStates(inventory, light.states)
        circuits = job_circuits(inventory, job, placed["job"])
        assert all(after.path_of(circuit) is not None for circuit in circuits)
        assert [each.id for each in light.circuits] == [each.id for each in circuits]
        assert all(each.margin_db is not None for each in light.circuits)
        others = circuits_of(inventory, {"other": placed["other"], "job": placed["job"]})
        for circuit in (each for each in others if each.owner == "other"):
            path = before.path_of(circuit)
            assert path is not None
            assert after.path_of(circuit) == path
            assert after.cells_of(path) == before.cells_of(path)


def test_what_changes_between_two_phases(inventory):
    known = programmed(inventory)
    made = job_phases(observed(inventory, known), inventory.jobs["job"], known)
    assert [change.between for change in made.changes] == [("a", "b"), ("a", "c"), ("b", "c")]
    lights = {light.name: light.states["mesh"] for light in made.phases}
    assert lights["a"] == known["mesh"]  # it is lit, so nothing need be written
    for change in made.changes:
        one, other = (lights[name] for name in change.between)
        different = sum(one[puc] != other[puc] for puc in one)
        assert change.cells == ({"mesh": different} if different else {})
        assert change.settling_s == (0.004 if different else 0.0)
    assert [change and change.between for change in made.in_order] == [("a", "b"), ("a", "b"), ("a", "c"), ("a", "c")]


def test_damage_around_the_ports_makes_the_phases_impossible_that_have_no_light(tmp_path):
    ports = list(range(8))
    known = programmed(written(tmp_path / "rack.yaml", ports))
    # What has light keeps it: the circuits of the first phase lead through these PUCs already.
    damaged = written(tmp_path / "rack.yaml", ports, more=", damaged: " + str(list(range(60))))
    made = job_phases(observed(damaged, known), damaged.jobs["job"], known)
    assert [light.is_possible for light in made.phases if light.name != "a"] == [False, False]
    assert all(light.obstacle for light in made.phases if light.name != "a")
    assert None in made.in_order


def test_what_was_not_read_is_not_said_to_be_possible(inventory):
    known = programmed(inventory)
    made = job_phases(observed(inventory, known, {"h0-a": State.UNKNOWN}), inventory.jobs["job"], known)
    assert [light.is_possible for light in made.phases] == [None, None, None]
    assert made.phases[0].doubts == ("h0-a is unknown",)
    made = job_phases(observed(inventory, known, {"h1-a": State.FAILED}), inventory.jobs["job"], known)
    assert [light.is_possible for light in made.phases] == [None, None, True]  # rank 1 has no link in phase c


def test_a_device_whose_states_are_not_certain_leaves_all_phases_unknown(inventory):
    made = job_phases(observed(inventory, {"mesh": {}}), inventory.jobs["job"], {"mesh": {}})
    assert [light.is_possible for light in made.phases] == [None, None, None]
    assert made.phases[0].doubts == ("the states of mesh are not certain",)
    assert made.changes == ()


def test_a_switch_that_carries_another_phase_now_can_carry_each():
    inventory = load_inventory(example("rails"))
    gradients = {0: "2", 1: "3"}
    known = {
        rail: {cell: gradients.get(cell, FREE) for cell in own_cells(inventory, inventory.devices[rail])}
        for rail in ("rail0", "rail1")
    }
    made = job_phases(observed(inventory, known), inventory.jobs["train"], known)
    assert [light.is_possible for light in made.phases] == [True, True]
    assert made.phases[0].states["rail0"] == {0: "1", 1: FREE, 2: "3", 3: FREE, 4: FREE}
    assert made.phases[1].states == known
    (change,) = made.changes
    assert change.cells == {"rail0": 2, "rail1": 2}
    assert change.settling_s == 0.010
