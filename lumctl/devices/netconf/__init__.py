"""A NETCONF client (RFC 6241, framing of RFC 6242) over whatever stream a driver's way gives."""

from lumctl.devices.netconf.client import NetconfClient

__all__ = ["NetconfClient"]
