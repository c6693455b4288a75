"""A NETCONF client (RFC 6241, framing of RFC 6242) over the stream that a driver's connection path opens."""

from lumctl.devices.netconf.client import NetconfClient

__all__ = ["NetconfClient"]
