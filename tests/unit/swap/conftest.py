"""A rack as observed, without a rack: everything ok unless a test says otherwise."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

from lumctl.context import Observation
from lumctl.devices.types import PucState
from lumctl.fabric import changes, mesh, route
from lumctl.fleet.readings import Snapshot
from lumctl.health.states import ComponentHealth, Finding, HealthReport, State
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Assignment, circuits_of, initial_assignment

States = dict[str, dict[int, PucState]]
Observe = Callable[..., Observation]
Programmed = Callable[[Path], States]
OtherText = Callable[[Inventory, str, str], Inventory]


@pytest.fixture(scope="session", params=["prototype", "rack64"])
def inventory(request: pytest.FixtureRequest) -> Inventory:
    return load_inventory(example(request.param))


@pytest.fixture(scope="session")
def rack64() -> Inventory:
    return load_inventory(example("rack64"))


@pytest.fixture(scope="session")
def programmed() -> Programmed:
    """What the meshes hold once the jobs' circuits were programmed from all bar."""
    return _programmed


@cache
def _programmed(path: Path) -> States:
    inventory = load_inventory(path)
    states: States = {}
    circuits = circuits_of(inventory, initial_assignment(inventory))
    for device in inventory.devices.values():
        assert device.geometry is not None
        shape = mesh(device.geometry.columns, device.geometry.rows)
        blank = dict.fromkeys(range(shape.puc_count), PucState.BAR)
        routes = route(shape, [c.ports for c in circuits if c.a.device == device.id], states=blank)
        states[device.id] = blank | changes(blank, routes)
    return states


@pytest.fixture(scope="session")
def observe() -> Observe:
    """Make an observation; ``failed`` are accelerators that are not well, ``assignment`` who runs where."""

    def make(
        inventory: Inventory, *, failed: Mapping[str, State] | None = None, assignment: Assignment | None = None
    ) -> Observation:
        placed = assignment or initial_assignment(inventory)
        circuits = circuits_of(inventory, placed)
        report = HealthReport(
            at=100.0,
            hosts={},
            accelerators={a: _health(a, "accelerator", (failed or {}).get(a)) for a in inventory.accelerators},
            links={t: _health(t, "link", None) for t in inventory.transponders},
            devices={},
            circuits={},
        )
        snapshot = Snapshot(taken_at=100.0, seconds=0.1, hosts={})
        return Observation(100.0, "sim", inventory, placed, circuits, {}, snapshot, report)

    return make


def _health(component: str, kind: str, state: State | None) -> ComponentHealth:
    if state is None:
        return ComponentHealth(component, kind, State.OK, read_at=100.0)
    finding = Finding(component, "test", state, "it fell off the bus", "replace it", 99.0)
    return ComponentHealth(component, kind, state, (finding,), read_at=100.0)


@pytest.fixture
def other_text(tmp_path: Path) -> OtherText:
    """The same inventory with a piece of its text replaced."""

    def make(inventory: Inventory, old: str, new: str) -> Inventory:
        text = inventory.path.read_text(encoding="utf-8")
        assert old in text
        path = tmp_path / inventory.path.name
        path.write_text(text.replace(old, new), encoding="utf-8")
        return load_inventory(path)

    return make
