"""Drivers for meshes like that of the published LUMION test bed: by its TCP line protocol, or by a vendor's object."""

from lumctl_smartlight.mesh import SmartlightMesh
from lumctl_smartlight.object_mesh import SmartlightObjectMesh

__all__ = ["SmartlightMesh", "SmartlightObjectMesh"]
