"""Jobs whose circuits span devices: swapped to a spare at another device, proved, undone, replayed; faults located."""

import time
from dataclasses import replace

import pytest

from lumctl.change import apply
from lumctl.change.plan import Do
from lumctl.devices import transaction
from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates
from lumctl.health.states import State
from lumctl.inventory.model import DevicePort
from lumctl.inventory.wiring import circuits_of, own_cells
from lumctl.runbook import document, yaml_text
from lumctl.runbook.replay import replay_on_simulator
from lumctl.swap import plan_fabric, plan_rollback, plan_swap
from lumctl.swap.reroute import plan_reroute

EXAMPLES = {
    "two-meshes": ("h1-gpu0", "h6-gpu0"),
    "switch-and-mesh": ("h1-gpu0", "h5-gpu0"),
    "four-meshes": ("h12-gpu0", "h43-gpu0"),
}
"""An accelerator that fails, and a spare at another device."""


@pytest.fixture(scope="module", params=EXAMPLES)
def rack(request, rack_of, tmp_path_factory):
    yield from rack_of(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(autouse=True)
def well(rack):
    yield
    rack.clear()
    (name,) = rack.inventory.racks
    apply(rack.context, plan_fabric(rack.context, name, rewrite=True))


def device_states(rack):
    """What every mesh and switch holds, read from the devices."""
    devices, drivers = rack.inventory.light_devices, rack.context.devices
    return {
        each.id: transaction.read_cells(drivers.changing(each.id), own_cells(rack.inventory, each)) for each in devices
    }


def paths(rack):
    """The paths of the job's circuits, by the states of the devices."""
    states = FabricStates(rack.inventory, device_states(rack))
    return {c.id: states.path_of(c) for c in circuits_of(rack.inventory, rack.context.assignment())}


def breaking(rack, circuit, segment):
    """A PUC of a segment without which both ends are dark: at once, for a new neighbour would have to be announced."""
    held = device_states(rack)
    (needed,) = (c for c in circuits_of(rack.inventory, rack.context.assignment()) if c.id == circuit)
    lanes = {DevicePort(each.lane.device, each.lane.rx) for each in rack.inventory.transponders.values()}
    for puc in segment.pucs:
        if held[segment.device][puc] == "x":
            states = FabricStates(rack.inventory, held).with_changed({segment.device: {puc: "="}})
            if lanes.isdisjoint(states.follow(end.place).exit for end in (needed.a, needed.b)):
                return puc
    pytest.fail("no PUC of the segment darkens both ends")


def look(rack):
    """An observation after the time for which a finished run excuses dark light."""
    with rack.another_context(now=lambda: time.time() + 60) as later:
        return later.observe()


def swap(rack):
    failed, spare = EXAMPLES[rack.inventory.path.stem]
    return plan_swap(rack.context, "train", [failed], [spare], even_if_healthy=True)


def test_a_spare_at_another_device_takes_over_is_undone_and_replays(rack):
    before, were = device_states(rack), paths(rack)
    plan = swap(rack)
    assert any(len(circuit.devices) > 1 for circuit in plan.add)
    result = apply(rack.context, plan)
    assert {proof.circuit for proof in result.verified} >= {circuit.id for circuit in plan.add}
    now = paths(rack)
    assert None not in now.values()
    assert all(now[circuit.id] == were[circuit.id] for circuit in plan.keep)
    assert {c.id: c.segments for c in plan.add} == {c.id: now[c.id].segments for c in plan.add}
    assert rack.context.known_fabric(plan.rack) == device_states(rack)
    assert all(rack.ok_circuits("train"))
    run = rack.store.runs.get(result.run)
    book = yaml_text.load(yaml_text.dump(document.make(run, rack.store, rack.inventory)), "it")
    replayed = replay_on_simulator(book, rack.inventory, progress=print, before_step=lambda _step: None)
    assert replayed.identical, replayed.first_difference
    apply(rack.context, plan_rollback(rack.context, run))
    assert device_states(rack) == before


def test_light_that_is_lost_in_a_segment_names_it(rack):
    circuit, path = max(paths(rack).items(), key=lambda item: len(item[1].fibres))
    for fibre in path.fibres:
        rack.sim.inject(fibre, "dark")
        report = look(rack).report
        assert report.circuits[circuit].state is State.FAILED
        assert [incident.cause for incident in report.incidents] == [fibre]
        rack.sim.clear(fibre)
    assert look(rack).report.incidents == ()
    for segment in path.segments:
        if rack.inventory.devices[segment.device].geometry is None:
            continue
        puc = f"{segment.device}/puc/{breaking(rack, circuit, segment)}"
        rack.sim.inject(puc, "stuck-bar")
        incidents = look(rack).report.incidents
        assert [incident.cause for incident in incidents if circuit in incident.members] == [puc]
        rack.sim.clear(puc)
        apply(rack.context, plan_fabric(rack.context, next(iter(rack.inventory.racks))))


def test_a_dark_fibre_is_routed_around(rack):
    _, path = max(paths(rack).items(), key=lambda item: len(item[1].fibres))
    fibre = path.fibres[0]
    rack.sim.inject(fibre, "dark")
    (remedy,) = look(rack).remedies
    assert remedy.avoid == (fibre,)
    plan = plan_reroute(rack.context, "train", [fibre])
    assert all(fibre not in circuit.fibres for circuit in plan.add)
    apply(rack.context, plan)
    assert all(rack.ok_circuits("train"))


def test_a_plan_that_would_change_another_circuit_at_any_device_is_refused(rack):
    """Each PUC that a kept circuit across devices passes is written in turn, beside what the plan writes."""
    plan, held = swap(rack), device_states(rack)
    written = {(change.device, change.puc) for change in plan.changes}
    passed = {puc for circuit in plan.keep if circuit.fibres for puc in circuit.pucs} - written
    assert len({device for device, _ in passed}) > 1 or rack.inventory.path.stem == "switch-and-mesh"
    for device, puc in sorted(passed):
        before = held[device][puc]
        flipped = [puc, before, "x" if before == "=" else "="]
        steps = [
            replace(step, data={**step.data, "changes": [*step.data["changes"], flipped]})
            if step.do is Do.PROGRAM and step.data["device"] == device
            else step
            for step in plan.steps
        ]
        if steps != list(plan.steps):
            with pytest.raises(RefusedError, match="would change circuit"):
                apply(rack.context, replace(plan, steps=tuple(steps)).sealed())
    assert device_states(rack) == held
