"""Pluggable modules of a SONiC host, read with the host's own tools over SSH."""

from lumctl_sonic.port import SonicPort

__all__ = ["SonicPort"]
