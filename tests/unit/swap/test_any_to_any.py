"""A switch that joins any port to any: each port may stand at either end of a join."""

from types import SimpleNamespace

import pytest

from lumctl.change.foreign_circuits import require_foreign_circuits_kept
from lumctl.change.plan import Do, Plan, Start, Step
from lumctl.errors import RefusedError
from lumctl.inventory.components import find_component
from lumctl.inventory.load import load_inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment, own_cells
from lumctl.swap.path_routing import light_paths
from lumctl.swap.settings import cell_of

RACK = """
lumctl: 1
racks: {r: {}}
hosts:
  - {name: "h[1-3]", accelerators: [{id: "{host}-gpu0", model: H100, memory_gib: 80}]}
devices:
  - {id: x, kind: switch, driver: sim-switch, address: "x.example:1", port_count: 12, input_count: 12}
transponders:
  - {id: "h[1-3]-gpu0-a", accelerator: "h[1-3]-gpu0", interface: eth2, device: x, port: [3, 5, 9]}
  - {id: "h[1-3]-gpu0-b", accelerator: "h[1-3]-gpu0", interface: eth3, device: x, port: [4, 6, 10]}
jobs:
  - {name: train, ranks: ["h1-gpu0", "h2-gpu0"], links: [{kind: pairs, pairs: [[0, 1]]}]}
"""


@pytest.fixture
def inventory(tmp_path):
    (tmp_path / "rack.yaml").write_text(RACK)
    return load_inventory(tmp_path / "rack.yaml")


@pytest.fixture
def circuit(inventory):
    (found,) = circuits_of(inventory, initial_assignment(inventory))
    return found


@pytest.fixture
def context(inventory):
    own = own_cells(inventory, inventory.devices["x"])

    def made(joins):
        held = {**dict.fromkeys(own, "-"), **joins}
        return SimpleNamespace(
            inventory=inventory,
            assignment=lambda **_: initial_assignment(inventory),
            known_cells=lambda _device: held,
        )

    return made


def asked(context, component, text):
    return cell_of(context, find_component(context.inventory, component), text)


@pytest.mark.parametrize(("port", "other"), [(5, 9), (9, 5)])
def test_a_join_is_recorded_as_it_will_be_read(context, port, other):
    change = asked(context({}), f"x/port/{port}", str(other))
    assert (change.puc, change.before, change.after) == (5, "-", "9")


@pytest.mark.parametrize(("port", "other", "says"), [(5, 9, "port 5 of x is connected to port 3"), (3, 9, None)])
def test_a_port_at_the_far_end_of_a_join_is_taken(context, port, other, says):
    joined = context({3: "5"})
    if says is None:
        assert asked(joined, f"x/port/{port}", str(other)).before == "5"  # its own join is moved
        return
    with pytest.raises(RefusedError, match=says) as refused:
        asked(joined, f"x/port/{port}", str(other))
    assert "x/port/3 joined=none" in refused.value.hint


@pytest.mark.parametrize("port", [3, 5])
def test_a_join_is_taken_away_at_either_end(context, port):
    change = asked(context({3: "5"}), f"x/port/{port}", "none")
    assert (change.puc, change.before, change.after) == (3, "5", "-")


@pytest.mark.parametrize("stray", [{5: "9"}, {3: "4"}])
def test_a_stray_join_of_a_circuit_s_port_is_found_at_either_end(inventory, context, circuit, stray):
    assert sorted(circuit.ports) in ([3, 5], [4, 6])
    moved = {min(circuit.ports) + at - 3: str(min(circuit.ports) + int(to) - 3) for at, to in stray.items()}
    held = context(moved).known_cells("x")
    with pytest.raises(RefusedError, match="is connected to port"):
        light_paths(inventory, [], [circuit], {"x": held})


def test_a_plan_that_takes_the_far_end_of_a_circuit_is_refused(inventory, context, circuit):
    low, high = sorted(circuit.ports)
    standing = context({low: str(high)})
    changes = [[high, "-", "10" if high != 10 else "9"]]
    plan = Plan(
        kind="replay", title="edited", rack="r", target="rack", created_at=0.0, inventory_digest=inventory.digest,
        start=Start.of(initial_assignment(inventory), {"x": standing.known_cells("x")}),
        steps=(Step("1", Do.PROGRAM, "edited", {"device": "x", "changes": changes}),
               Step("2", Do.VERIFY, "v", {"circuits": [], "kept": [circuit.id]})),
    ).sealed()  # fmt: skip
    with pytest.raises(RefusedError, match="would change circuit"):
        require_foreign_circuits_kept(standing, plan)
