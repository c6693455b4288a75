"""From how the shape of a mesh is written to what it is, meshes in files of their own included."""

from collections.abc import Mapping

from lumctl.inventory.document import GeometryEntry
from lumctl.inventory.files import read_bytes
from lumctl.inventory.geometry import Geometry, Shape
from lumctl.inventory.mesh_file import read_mesh
from lumctl.inventory.scope import Scope

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "parallelogram": ("columns", "rows"),
    "hexagon": ("side",),
    "square": ("columns", "rows"),
}
_SIZES = ("columns", "rows", "side")


def resolve_geometry(entry: GeometryEntry, scope: Scope) -> Geometry | None:
    """The shape; ``None`` where it is not known, which is noted."""
    if entry.mesh is not None:
        return _from_file(entry, entry.mesh, scope)
    if entry.cut("shape", "mesh") or not _sized(entry, scope):
        return None
    if entry.shape == "hexagon":
        return Geometry.hexagon(entry.side) if entry.side is not None else None
    if entry.columns is None or entry.rows is None:
        return None
    return Geometry(entry.columns, entry.rows, Shape(entry.shape))


def _sized(entry: GeometryEntry, scope: Scope) -> bool:
    """Whether exactly the sizes are written that the shape needs."""
    needed = _NEEDS[entry.shape]
    complete = True
    for key in _SIZES:
        if key in needed and getattr(entry, key) is None:
            complete = False
            if not entry.cut(key):
                scope.problems.add(entry.at, f"key {key!r} is missing here: a {entry.shape} needs it")
        elif key not in needed and getattr(entry, key) is not None:
            complete = False
            expected = " and ".join(repr(other) for other in needed)
            scope.problems.add(entry.mark(key), f"a {entry.shape} has no {key!r}, expected {expected}")
    return complete


def _from_file(entry: GeometryEntry, name: str, scope: Scope) -> Geometry | None:
    others = [key for key in ("shape", *_SIZES) if key in entry.model_fields_set]
    if others:
        scope.problems.add(entry.mark(others[0]), f"found {others[0]!r} beside 'mesh', expected one of them")
        return None
    mark = entry.mark("mesh")
    path = scope.path(name, mark)
    if path not in scope.meshes:
        # Nothing to wait at: what is no file may never end, or never begin.
        content = read_bytes(path) if path.is_file() or not path.exists() else "is not a file"
        if isinstance(content, str):
            scope.problems.add(mark, f"mesh {name} {content}")
            return None
        scope.contents.append(content)
        scope.meshes[path] = read_mesh(content, path, scope.problems)
    data = scope.meshes[path]
    return None if data is None else Geometry.given(data)
