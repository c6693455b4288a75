"""The limits of a new rack's meshes: a ring each, and ports for all lanes; and what to change if they are exceeded."""

from collections.abc import Container, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from lumctl.cli.fabric_mesh import mesh_named
from lumctl.cli.init_answers import intended_range, name_in
from lumctl.cli.new_rack import NewRack
from lumctl.errors import UsageError
from lumctl.inventory.folded_names import fold
from lumctl.inventory.geometry import MOST_COLUMNS
from lumctl.inventory.problems import listing
from lumctl.printable import counted

if TYPE_CHECKING:
    from lumctl.fabric.geometry import Mesh

SHORTEST_RING = 2
"""Minimum size of a ring: a ring of one has no link."""
_SMALLEST = 2
"""Columns and rows of the smallest mesh that is proposed: on a smaller one, hardly any ports can be connected."""


def roomy_mesh(accelerators: int) -> str | None:
    """A parallelogram, about as wide as high, with two ports per accelerator and a row to spare; ``None`` if too large.

    Without the row almost all ports are in use, and circuits to some spares find no route.
    """
    # A mesh of N x M cells has 4N + 4M + 4 ports.
    both = max(2 * _SMALLEST, -(-(2 * accelerators - 4) // 4) + 1)
    columns, rows = both - both // 2, both // 2
    return f"{columns}x{rows}" if columns <= MOST_COLUMNS else None


def ports_lacking(rack: NewRack, mesh: "Mesh") -> str | None:
    """The error if the lanes on the fullest mesh exceed its ports."""
    count = fullest(rack)
    if 2 * count <= mesh.port_count:
        return None
    lanes = f"{count} accelerators on one mesh need {2 * count} ports, one for each of their lanes"
    return f"{lanes}; {mesh.name} has {mesh.port_count}"


def ring_lacking(rack: NewRack, spares: Container[str]) -> str | None:
    """The error if a mesh has fewer than two ranks besides these spares."""
    for number, here in enumerate(rack.by_mesh()):
        left = sum(each not in spares for each in here)
        if left < SHORTEST_RING:
            has = f"{counted(left, 'GPUs')} besides spares; a ring needs two"
            return f"mesh {number + 1} of {rack.meshes} has {has}"
    return None


def fullest(rack: NewRack) -> int:
    """The number of accelerators on the fullest mesh."""
    return max(map(len, rack.by_mesh()))


def meshes_possible(rack: NewRack, mesh: "Mesh | None" = None) -> list[int]:
    """The numbers of meshes, of this shape if one is given, among which the GPUs of a host can be divided."""
    trials = [replace(rack, meshes=number) for number in range(1, rack.most_gpus + 1)]
    return [
        each.meshes
        for each in trials
        if not ring_lacking(each, each.spares) and not (mesh and ports_lacking(each, mesh))
    ]


def require_fit(rack: NewRack, mesh: "Mesh") -> None:
    """Refuse a rack whose meshes have too few GPUs for their rings, or too few ports.

    Raises:
        UsageError: the rack has; the hint gives the options that help.
    """
    if problem := ring_lacking(rack, rack.spares):
        meant = intended_range(rack.names)
        raise UsageError(problem, hint=f"did you mean --hosts '{meant}'?" if meant else _ring_hint(rack, mesh))
    if problem := ports_lacking(rack, mesh):
        raise UsageError(problem, hint=room_hint(rack, mesh))


def _ring_hint(rack: NewRack, mesh: "Mesh") -> str:
    fewer = [number for number in meshes_possible(rack, mesh) if number < rack.meshes]
    covered = [number for number in fewer if _has_spares_everywhere(rack, number)]
    options = [f"--meshes {(covered or fewer)[-1]}"] if fewer else []
    if rack.spares and not ring_lacking(rack, ()):
        options.append("fewer --spares (or none)")
    return listing(["more hosts", *options])


def room_hint(rack: NewRack, mesh: "Mesh") -> str:
    """Options that give the circuits more room; only possible ones are offered."""
    roomy = roomy_mesh(fullest(rack))
    options = [f"--mesh {roomy}" if roomy and mesh_named(roomy).port_count > mesh.port_count else "a larger --mesh"]
    options += [f"--meshes {number}" for number in meshes_possible(rack, mesh) if number > rack.meshes][:1]
    # A host brings up to ``of_each`` GPUs to a mesh, and each GPU takes two ports.
    if len(rack.names) > 1:
        of_each = -(-rack.most_gpus // rack.meshes)
        most = mesh.port_count // 2 // of_each
        options.append(f"fewer hosts ({most} at most)" if 1 < most < len(rack.names) else "fewer hosts")
    return listing(options)


def spares_lacking(rack: NewRack, mesh: "Mesh") -> str | None:
    """The meshes without a spare if others have one, and what helps: their GPUs cannot be replaced."""
    by_mesh = rack.by_mesh()
    bare = [number for number, here in enumerate(by_mesh) if rack.spares.isdisjoint(here)]
    if not rack.spares or not bare:
        return None
    options = []
    if all(len(by_mesh[number]) > SHORTEST_RING for number in bare):
        options.append(f"add {','.join(fold(_next_spare(rack, by_mesh[number]) for number in bare))} to --spares")
    possible = meshes_possible(rack, mesh)
    fewer = [number for number in possible if number < rack.meshes and _has_spares_everywhere(rack, number)]
    options += [f"--meshes {fewer[-1]}"] if fewer else []
    return f"no spare at mesh {', '.join(fold(map(rack.mesh_id, bare)))}: " + (", or ".join(options) or "add hosts")


def spares_by_mesh(rack: NewRack) -> str:
    """How many spares each mesh has: ``rail0 has 1, rail1 has 2``."""
    counts = [sum(each in rack.spares for each in here) for here in rack.by_mesh()]
    return ", ".join(f"{rack.mesh_id(number)} has {count}" for number, count in enumerate(counts))


def _has_spares_everywhere(rack: NewRack, meshes: int) -> bool:
    """Whether each mesh has a spare if there are so many meshes."""
    return not any(map(rack.spares.isdisjoint, replace(rack, meshes=meshes).by_mesh()))


def _next_spare(rack: NewRack, here: list[str]) -> str:
    """The accelerator of a mesh that is the best spare: one on a host that has spares, or else the last."""
    having = tuple(f"{name}-gpu" for name in rack.names if any(each.startswith(f"{name}-gpu") for each in rack.spares))
    return next((each for each in reversed(here) if each.startswith(having)), here[-1])


def require_own_names(rack: NewRack, job: str | None) -> None:
    """Refuse a rack in which two components would have the same name.

    Raises:
        UsageError: a name occurs twice.
    """
    known: dict[str, str] = {}
    for kind, name in _components(rack, job):
        if name in known:
            raise UsageError(f"{kind} {name!r} would have the same name as a {known[name]}", hint="choose another name")
        known[name] = kind


def _components(rack: NewRack, job: str | None) -> Iterator[tuple[str, str]]:
    yield from (("host", name) for name in rack.names)
    yield from (("mesh", rack.mesh_id(number)) for number in range(rack.meshes))
    for here in rack.by_mesh():
        for accelerator in here:
            yield "GPU", accelerator
            yield from (("lane", f"{accelerator}-{letter}") for letter in "ab")
    if job is not None:
        yield "job", job


def job_in(text: str, what: str, rack: NewRack) -> str:
    """The name of the job, checked.

    Raises:
        UsageError: it is not a valid name, or a component of the rack has it.
    """
    require_own_names(rack, name_in(text, what))
    return text
