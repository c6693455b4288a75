"""The fabric as a graph: meshes, the paths of light through them, routes for circuits, and their losses.

Everything here is computed from arguments; no file or device is read or written. Parts that need an optional library
(the exact solver, the optical tracer, PNG) are imported from their own folders.
"""

from lumctl.fabric.condition import MeshCondition, condition_of, loss_db, mesh_of
from lumctl.fabric.geometry import Mesh, PortPair, Trace, exits, trace
from lumctl.fabric.paths import FabricStates, LightPath, Segment, circuit_losses
from lumctl.fabric.routing import Objective, Route, changes, route
from lumctl.fabric.search import InconsistentFabricError, Unroutable
from lumctl.fabric.shapes import from_data, hexagon, mesh, shape, square

__all__ = [
    "FabricStates",
    "InconsistentFabricError",
    "LightPath",
    "Mesh",
    "MeshCondition",
    "Objective",
    "PortPair",
    "Route",
    "Segment",
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
