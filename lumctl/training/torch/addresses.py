"""Addresses of this machine's interfaces, and those at which gloo listens, as ranks publish them."""

import array
import fcntl
import re
import socket
import struct
from dataclasses import dataclass
from typing import Self

import torch

from lumctl.errors import RefusedError

_KEY = re.compile(r"(?:^|/)cpu//(?:.*/)?\d+$")


def is_address(key: str) -> bool:
    """Whether an address of gloo is published under a key."""
    return _KEY.search(key) is not None


@dataclass(frozen=True, slots=True)
class Address:
    """What a rank of a group publishes: the length of its host's name and the name, that of a record, and the record.

    The record begins with a socket address: its family in this machine's order, port and IPv4 address in the network's.
    """

    raw: bytes
    at: int
    ip: bytes
    port: int

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """The address in what was published.

        Raises:
            RefusedError: it has another form than is known.
        """
        at, family, size = _socket_address(raw)
        if family != socket.AF_INET or size > len(raw):
            raise strange(f"its address is of family {family}, and a record is {size} bytes long")
        port, ip = struct.unpack_from("!H4s", raw, at)
        return cls(raw, at, ip, port)

    @property
    def order(self) -> tuple[bytes, int]:
        """What gloo compares two addresses by: the port as it lies in memory, read the other way round."""
        return self.ip, int.from_bytes(self.port.to_bytes(2), "little")

    def moved(self, ip: bytes, port: int) -> "Address":
        """The same with another place."""
        raw = self.raw[: self.at] + port.to_bytes(2) + ip + self.raw[self.at + 6 :]
        return Address(raw, self.at, ip, port)


def port_in(raw: bytes) -> int | None:
    """The port of a published address, IPv6 too; ``None`` where the form is not known."""
    try:
        at, family, size = _socket_address(raw)
    except RefusedError:
        return None
    known = family in {socket.AF_INET, socket.AF_INET6} and size <= len(raw)
    return int.from_bytes(raw[at : at + 2]) if known else None


def _socket_address(raw: bytes) -> tuple[int, int, int]:
    """Where port and address begin, their family, and the length of the record."""
    try:
        (name,) = struct.unpack_from("<Q", raw, 0)
        size, family, _ = struct.unpack_from("<QH6s", raw, 8 + name)
    except (struct.error, OverflowError):
        raise strange("its address is too short") from None
    return 8 + name + 8 + 2, family, size


def strange(what: str) -> RefusedError:
    """An error of those that have to know the form."""
    return RefusedError(
        f"gloo of PyTorch {torch.__version__} publishes addresses in a form that lanes do not know: {what}",
        hint="the lanes of a simulated rack are known to work with PyTorch 2.13, over IPv4",
    )


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
