"""A rack with a torus as recorded and observed, without a simulator; plans are carried out by writing their changes."""

from collections import Counter
from types import SimpleNamespace

from lumctl.change.plan import Do
from lumctl.context import Observation
from lumctl.devices.types import DeviceReading
from lumctl.fabric import FabricStates
from lumctl.fleet.readings import Snapshot
from lumctl.health.states import ComponentHealth, HealthReport, State
from lumctl.inventory.slice_records import with_slices
from lumctl.inventory.wiring import circuits_of, initial_assignment
from lumctl.slices.planning import plan_slice
from lumctl.slices.rack_state import rack_state
from lumctl.slices.request import SliceRequest, read_shapes
from lumctl.swap.path_routing import light_paths

RACK = "torus64"
PLAIN = SimpleNamespace(capabilities=frozenset())


class FakeRack:
    """A rack as recorded and observed; plans are carried out by writing what they would write."""

    def __init__(self, inventory):
        self.inventory, self.target = inventory, "sim"
        self.placed = initial_assignment(inventory)
        self.cells = {d.id: dict.fromkeys(range(d.geometry.puc_count), "=") for d in inventory.light_devices}
        self.ill, self.silent = {}, ()
        self.devices = SimpleNamespace(changing=lambda _device: PLAIN)
        self.write(light_paths(inventory, (), circuits_of(inventory, self.placed), self.cells).writes)

    def write(self, writes):
        for device, changes in writes.items():
            self.cells[device] |= {change.puc: change.after for change in changes}

    def store(self, _rack):
        return SimpleNamespace(journal=SimpleNamespace(latest=lambda _count: ()))

    def now(self):
        return 100.0

    def assignment(self):
        self.inventory = with_slices(self.inventory, self.placed)
        return dict(self.placed)

    def known_cells(self, device):
        return self.cells[device]

    def known_fabric(self, _rack):
        return self.cells

    def observe(self):
        placed = self.assignment()
        circuits, states = circuits_of(self.inventory, placed), FabricStates(self.inventory, self.cells)
        report = HealthReport(
            at=100.0,
            hosts={},
            accelerators={a: self._health(a, "accelerator") for a in self.inventory.accelerators},
            links={t: self._health(t, "link") for t in self.inventory.transponders},
            devices={},
            circuits={},
        )
        paths = {circuit.id: states.path_of(circuit) for circuit in circuits}
        assert None not in paths.values()
        devices = {device.id: DeviceReading(100.0) for device in self.inventory.light_devices}
        devices |= {device: DeviceReading(100.0, problem="no answer") for device in self.silent}
        snapshot = Snapshot(taken_at=100.0, seconds=0.1, hosts={})
        return Observation(
            *(100.0, "sim", self.inventory, placed, circuits, {}, snapshot, report), devices=devices, paths=paths
        )

    def _health(self, name, kind):
        return ComponentHealth(name, kind, self.ill.get(name, State.OK), read_at=100.0)

    def carry_out(self, plan):
        for change in plan.changes:
            assert self.cells[change.device][change.puc] == change.before
            self.cells[change.device][change.puc] = change.after
        for step in plan.steps:
            if step.do is Do.ASSIGN:
                after = {name: tuple(ranks) for name, ranks in step.data["assignment"].items()}
                self.placed = {name: ranks for name, ranks in {**self.placed, **after}.items() if ranks}

    def planned(self, shape, job="tenant", **asked):
        return plan_slice(self, SliceRequest(read_shapes(shape), (job,), (), **asked))

    def carried(self):
        return Counter(fibre for path in self.observe().paths.values() for fibre in path.fibres)


def state(rack, **asked):
    return rack_state(rack.observe(), RACK, rack.known_cells, **asked)
