"""Which mesh a ``fabric`` command is about: one of the inventory, or any by its shape, with what is known of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumctl.errors import UsageError
from lumctl.fabric import Mesh, MeshCondition, circuit_losses, condition_of, mesh_of, shape
from lumctl.inventory.model import DeviceKind
from lumctl.inventory.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lumctl.cli.invocation import Invocation
    from lumctl.devices.types import PucState
    from lumctl.fabric import PortPair

MeshOption = Annotated[
    str | None,
    typer.Option("--mesh", metavar="SHAPE", help="A mesh by its shape: 9x9, hexagon:3, square:4x4, or a mesh FILE."),
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="ID", help="A mesh of the inventory, as it is known to stand.")
]


@dataclass(frozen=True)
class NamedMesh:
    """The mesh, its name on the command line, what is known of it, and what it holds by the record."""

    mesh: Mesh
    name: str
    spelled: str
    """The mesh in the form of ``--mesh``, for documents that name it."""
    condition: MeshCondition = field(default_factory=MeshCondition)
    states: "Mapping[int, PucState]" = field(default_factory=dict)
    live: "Mapping[str, PortPair]" = field(default_factory=dict)
    """The jobs' circuits that it carries, by id."""
    sends_dbm: "Mapping[int, float]" = field(default_factory=dict)
    needs_dbm: "Mapping[int, float]" = field(default_factory=dict)
    """By port, what a transponder sends into it, and what the receiver behind it needs."""

    def margin_db(self, ports: "PortPair", loss_db: float) -> float | None:
        """By how much the light that arrives is more than the receiver needs, in the worse direction.

        ``None`` where no transponder sends into one of the ports and another listens at the other.
        """
        ways = (ports, ports[::-1])
        margins = [
            self.sends_dbm[a] - loss_db - self.needs_dbm[b]
            for a, b in ways
            if a in self.sends_dbm and b in self.needs_dbm
        ]
        return min(margins, default=None)


def subject(cx: "Invocation", mesh: str | None, device: str | None) -> NamedMesh:
    """The mesh that a command names.

    Raises:
        UsageError: it names none, two, or one that is not there.
    """
    if (mesh is None) == (device is None):
        raise UsageError("which mesh?", hint="--mesh 9x9 for any, or --device ID for one of the inventory")
    if mesh is not None:
        return NamedMesh(mesh_named(mesh), mesh, mesh)
    return of_inventory(cx, device or "")


def mesh_named(text: str) -> Mesh:
    """A mesh by its shape, or from a file that describes it."""
    if not Path(text).suffix:
        return shape(text)
    from lumctl.fabric import from_data
    from lumctl.inventory.mesh_file import load_mesh

    return from_data(load_mesh(Path(text)))


def of_inventory(cx: "Invocation", name: str) -> NamedMesh:
    """A mesh of the inventory in its recorded state.

    Raises:
        UsageError: there is no such mesh.
    """
    from lumctl.context import Context
    from lumctl.inventory.wiring import circuits_of

    meshes = [each.id for each in cx.inventory.devices.values() if each.kind is DeviceKind.MESH]
    if name not in meshes:
        near = nearest(name, meshes)
        raise UsageError(
            f"no mesh {name!r} in the inventory",
            hint=f"did you mean {near}?" if near else f"one of: {', '.join(meshes)}",
        )
    device = cx.inventory.devices[name]
    with Context(cx.inventory, cx.target) as context:
        states = context.known_states(name)
        made = circuits_of(context.inventory, context.assignment())
    if not states:
        cx.out.narrate(f"what {name} holds is not known: taken as idle")
    carried = circuit_losses(device, states, made) if states else {}
    live = {circuit.id: circuit.ports for circuit in made if circuit.id in carried}
    lanes = [each for each in cx.inventory.transponders.values() if each.lane.device == name]
    shape_of = mesh_of(device)
    return NamedMesh(
        shape_of,
        name,
        shape_of.name,
        condition_of(device),
        states,
        live,
        sends_dbm={each.lane.tx: each.tx_power_dbm for each in lanes},
        needs_dbm={each.lane.rx: each.rx_sensitivity_dbm for each in lanes},
    )
