"""The fabric as a graph: meshes, the ways of light through them, routes for circuits, and what they lose.

Everything here is computed from what is handed in; nothing is read and nothing is written. What needs a library that is
not always there (the exact solver, the optical tracer, PNG) is imported from its own folder.
"""

from lumctl.fabric.condition import MeshCondition, circuit_losses, condition_of, loss_db, mesh_of
from lumctl.fabric.geometry import Mesh, PortPair, Trace, exits, trace
from lumctl.fabric.routing import Objective, Route, changes, route
from lumctl.fabric.search import InconsistentFabricError, Unroutable
from lumctl.fabric.shapes import from_data, hexagon, mesh, shape, square

__all__ = [
    "InconsistentFabricError",
    "Mesh",
    "MeshCondition",
    "Objective",
    "PortPair",
    "Route",
    "Trace",
    "Unroutable",
    "changes",
    "circuit_losses",
    "condition_of",
    "exits",
    "from_data",
    "hexagon",
    "loss_db",
    "mesh",
    "mesh_of",
    "route",
    "shape",
    "square",
    "trace",
]
