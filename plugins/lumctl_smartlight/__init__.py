"""Driver for mesh controllers that speak the TCP line protocol of the published LUMION test bed."""

from lumctl_smartlight.mesh import SmartlightMesh

__all__ = ["SmartlightMesh"]
