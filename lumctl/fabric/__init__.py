"""The fabric as a graph: the mesh, the ways of light through it, routes for circuits, and what they lose.

Everything here is computed from what is handed in; nothing is read and nothing is written.
"""

from lumctl.fabric.errors import InconsistentFabricError, Unroutable
from lumctl.fabric.geometry import Mesh, mesh
from lumctl.fabric.loss import circuit_losses, loss_db
from lumctl.fabric.routing import Route, changes, route
from lumctl.fabric.tracing import Trace, exits, trace

__all__ = [
    "InconsistentFabricError",
    "Mesh",
    "Route",
    "Trace",
    "Unroutable",
    "changes",
    "circuit_losses",
    "exits",
    "loss_db",
    "mesh",
    "route",
    "trace",
]
