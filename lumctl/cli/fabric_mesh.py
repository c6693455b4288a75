"""The mesh that a ``fabric`` command works on: one of the inventory, or any mesh given by its shape or a file."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumctl.errors import UsageError
from lumctl.fabric import FabricStates, Mesh, MeshCondition, condition_of, mesh_of, shape
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
    str | None, typer.Option("--device", metavar="ID", help="A mesh of the inventory, in its recorded state.")
]
LimitOption = Annotated[
    float,
    typer.Option(
        "--limit", metavar="SECONDS", min=0.1, max=1e6, help="Time to search; the best result so far is printed."
    ),
]


@dataclass(frozen=True)
class NamedMesh:
    """A mesh with its name on the command line, its condition, its recorded states and its live circuits."""

    mesh: Mesh
    name: str
    spelled: str
    """The mesh in the form that ``--mesh`` accepts; documents use this text."""
    condition: MeshCondition = field(default_factory=MeshCondition)
    states: "Mapping[int, PucState]" = field(default_factory=dict)
    of_inventory: bool = False
    live: "Mapping[PortPair, str]" = field(default_factory=dict)
    """The ids of the jobs' circuits that the mesh carries, by their ports: a circuit may pass the mesh twice."""
    sends_dbm: "Mapping[int, float]" = field(default_factory=dict)
    needs_dbm: "Mapping[int, float]" = field(default_factory=dict)
    """``sends_dbm``: power that a transponder sends into a port; ``needs_dbm``: power that the receiver there needs."""

    @property
    def option(self) -> str:
        """The option that selects it on a command line."""
        return f"--device {self.name}" if self.of_inventory else f"--mesh {shlex.quote(self.spelled)}"

    def margin_db(self, ports: "PortPair", loss_db: float) -> float | None:
        """The margin of the arriving light over the receiver's need, in the worse direction.

        ``None`` if no direction has a transponder that sends into one port and a receiver at the other.
        """
        ways = (ports, ports[::-1])
        margins = [
            self.sends_dbm[a] - loss_db - self.needs_dbm[b]
            for a, b in ways
            if a in self.sends_dbm and b in self.needs_dbm
        ]
        return min(margins, default=None)


def subject(cx: "Invocation", mesh: str | None, device: str | None) -> NamedMesh:
    """The mesh that a command names with ``--mesh`` or ``--device``.

    Raises:
        UsageError: neither or both are given, or there is no such mesh.
    """
    if (mesh is None) == (device is None):
        raise UsageError("which mesh?", hint="use --mesh 9x9 for any mesh, or --device ID for a mesh of the inventory")
    if mesh is not None:
        return NamedMesh(mesh_named(mesh), mesh, mesh)
    return of_inventory(cx, device or "")


def mesh_named(text: str) -> Mesh:
    """A mesh by its shape, or from a file that describes it."""
    if not names_file(text):
        return shape(text)
    from lumctl.fabric import from_data
    from lumctl.inventory.mesh_file import load_mesh

    return from_data(load_mesh(Path(text)))


def names_file(text: str) -> bool:
    """Whether a mesh is given by a file rather than by its shape."""
    return bool(Path(text).suffix) or "/" in text


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
        fabric = FabricStates(cx.inventory, context.known_fabric(device.rack))
        made = circuits_of(context.inventory, context.assignment())
    if not states:
        cx.out.narrate(f"the state of {name} is unknown: it is assumed to be idle")
    paths = {circuit.id: fabric.path_of(circuit) for circuit in made}
    # The jobs' circuits may pass other devices too; what must stay free here is their way through this mesh.
    live = {
        part.ports: circuit
        for circuit, path in paths.items()
        for part in (path.segments if path else ())
        if part.device == name
    }
    lanes = [each for each in cx.inventory.transponders.values() if each.lane.device == name]
    shape_of = mesh_of(device)
    return NamedMesh(
        shape_of,
        name,
        shape_of.name,
        condition_of(device),
        states,
        of_inventory=True,
        live=live,
        sends_dbm={each.lane.tx: each.tx_power_dbm for each in lanes},
        needs_dbm={each.lane.rx: each.rx_sensitivity_dbm for each in lanes},
    )
