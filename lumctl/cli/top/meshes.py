"""What the dashboard draws of meshes and switches: their present states, and their states under a plan."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation
from lumctl.errors import LumctlError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lumctl.change.plan import Plan, PlannedCircuit
    from lumctl.context import Context
    from lumctl.devices.types import PucState
    from lumctl.fabric import Mesh
    from lumctl.fabric.drawing import NamedRoutes
    from lumctl.tui.actions import PlanView
    from lumctl.tui.views.meshes import MeshChange, MeshView


def mesh_view(cx: Invocation, device: str) -> "MeshView":
    """The states of a device from its read-back; without read-back, from the record.

    Raises:
        LumctlError: the record cannot be read either.
    """
    from lumctl.context import Context

    # A context of its own: the one that is observed belongs to the thread that reads.
    with Context(cx.inventory, cx.target) as context:
        return mesh_in(context, device)


def mesh_in(context: "Context", device: str) -> "MeshView":
    """As :func:`mesh_view`, for a device of a context."""
    from lumctl.tui.threads.collector import one_line
    from lumctl.tui.views.meshes import MeshView

    recorded = context.known_cells(device)
    try:
        cells, powers = _read(context, device)
    except LumctlError as error:
        return MeshView(device, recorded, recorded=recorded, trouble=one_line(error))
    return MeshView(device, cells, context.now(), recorded, powers)


def _read(context: "Context", device: str) -> tuple[dict[int, str], dict[int, float]]:
    """Cells and powers as the device reports them."""
    from lumctl.devices.errors import UnsupportedError
    from lumctl.devices.types import Capability
    from lumctl.inventory.model import DeviceKind
    from lumctl.inventory.wiring import FREE, own_cells

    written = context.inventory.devices[device]
    if written.kind is DeviceKind.SWITCH:
        joins = context.devices.switch(device).read_circuits()
        ours = own_cells(context.inventory, written)
        cells = {port: str(joins[port]) if port in joins else FREE for port in ours}
    else:
        mesh = context.devices.mesh(device)
        if Capability.READ_STATES not in mesh.capabilities:
            raise UnsupportedError(f"{device} cannot be read back")
        cells = {puc: str(state.value) for puc, state in mesh.read_states().items()}
    driver = context.devices.changing(device)
    if Capability.READ_POWERS not in driver.capabilities:
        return cells, {}
    return cells, driver.read_powers(tuple(range(written.port_count)))


def with_meshes(context: "Context", view: "PlanView") -> "PlanView":
    """A plan as it is displayed, with its changes of each mesh."""
    return replace(view, changes=mesh_changes(context, view.plan))


def mesh_changes(context: "Context", plan: "Plan") -> "tuple[MeshChange, ...]":
    """The changes that a plan makes to each mesh whose states are known."""
    from lumctl.devices.types import PucState
    from lumctl.fabric import mesh_of
    from lumctl.tui.views.meshes import MeshChange

    found = []
    for name in dict.fromkeys(change.device for change in plan.changes):
        device = context.inventory.devices.get(name)
        before = context.known_states(name) if device is not None else {}
        if device is None or not before:  # gone by now, a switch, or a mesh of which nothing is certain
            continue
        written = {c.puc: PucState(c.after) for c in plan.changes if c.device == name}
        after = {**before, **written}
        mesh = mesh_of(device)
        found.append(
            MeshChange(
                device,
                before,
                after,
                added=_ways(mesh, after, name, plan.add),
                removed=_ways(mesh, before, name, plan.remove),
                kept=_ways(mesh, after, name, plan.keep),
            )
        )
    return tuple(found)


def _ways(
    mesh: "Mesh", states: "Mapping[int, PucState]", device: str, circuits: "Sequence[PlannedCircuit]"
) -> "NamedRoutes":
    """The paths of light in these states, from the start of each circuit."""
    from lumctl.fabric import Route, trace
    from lumctl.fabric.drawing import NamedRoutes

    here = [(circuit.id, part) for circuit in circuits for part in circuit.segments if part.device == device]
    ways = [trace(mesh, states, part.ports[0]) for _, part in here]
    return NamedRoutes(tuple(name for name, _ in here), tuple(Route((way.port, way.exit), way.passes) for way in ways))
