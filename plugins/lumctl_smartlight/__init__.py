"""Drivers for meshes like the published LUMION test bed's: over its TCP line protocol, or a vendor-style object."""

from lumctl_smartlight.mesh import SmartlightMesh
from lumctl_smartlight.object_mesh import SmartlightObjectMesh

__all__ = ["SmartlightMesh", "SmartlightObjectMesh"]
