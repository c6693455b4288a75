"""A transponder behind a host's network interface, driven with the host's own tools over SSH."""

from lumctl_hostport.port import HostPort

__all__ = ["HostPort"]
