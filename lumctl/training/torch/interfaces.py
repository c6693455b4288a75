"""Addresses of this machine: of which family one is, and which interface has it, for gloo is told that by name only."""

import array
import fcntl
import socket

_ADDRESS_OF = 0x8915
"""``SIOCGIFADDR`` of netdevice(7)."""


def family_of(address: str) -> socket.AddressFamily:
    """Of which family a socket for an address is."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def interface_with(address: str) -> str | None:
    """The interface that has an IPv4 address; ``None`` if none has."""
    try:
        wanted = socket.inet_pton(socket.AF_INET, address)
    except OSError:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = array.array("B", name.encode()[:15].ljust(40, b"\0"))
            try:
                fcntl.ioctl(any_socket, _ADDRESS_OF, request)
            except OSError:
                continue
            if request.tobytes()[20:24] == wanted:
                return name
    return None
