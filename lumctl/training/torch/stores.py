"""Stores that record or change the addresses that the ranks of a group publish.

gloo publishes the address at which a rank listens in the store of the group, under a key. Of two ranks, the one with
the greater address connects.
"""

import array
import fcntl
import os
import re
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
import torch.distributed as dist

from lumctl.errors import RefusedError, UnreachableError
from lumctl.json_lines import JsonLines, connect

if TYPE_CHECKING:
    # The public classes have types only in the private module.
    from torch._C._distributed_c10d import Store
else:
    from torch.distributed import Store

FOUND_WITHIN_S = 10.0
_KEY = re.compile(r"(?:^|/)cpu//(?:.*/)?\d+$")
_MARK = b"\nlumctl lane "
LANES = "lanes/"
"""The prefix of the keys of a group whose connections go over lanes, in a job with phases."""
_GREATEST_PORT = 65535
_ADDRESS_OF = 0x8915
"""``SIOCGIFADDR`` of netdevice(7)."""


class GivenUpError(dist.DistError):
    """The group is no longer needed."""


def is_address(key: str) -> bool:
    """Whether gloo publishes an address under a key."""
    return _KEY.search(key) is not None


@dataclass(frozen=True, slots=True)
class Address:
    """An address that a rank publishes: length of its host's name, the name, length of a record, the record.

    The record begins with a socket address: the family in this machine's byte order, then port and IPv4 address in
    network byte order.
    """

    raw: bytes
    at: int
    ip: bytes
    port: int

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """The address in a published value.

        Raises:
            RefusedError: the value has an unknown form.
        """
        at, family, size = _socket_address(raw)
        if family != socket.AF_INET or size > len(raw):
            raise unknown_form(f"its address is of family {family}, and a record is {size} bytes long")
        port, ip = struct.unpack_from("!H4s", raw, at)
        return cls(raw, at, ip, port)

    @property
    def order(self) -> tuple[bytes, int]:
        """The key by which gloo compares two addresses; it reads the port as little-endian."""
        return self.ip, int.from_bytes(self.port.to_bytes(2), "little")

    def moved(self, ip: bytes, port: int) -> "Address":
        """The same record with another IP address and port."""
        raw = self.raw[: self.at] + port.to_bytes(2) + ip + self.raw[self.at + 6 :]
        return Address(raw, self.at, ip, port)


def port_in(raw: bytes) -> int | None:
    """The port of a published address, IPv4 or IPv6; ``None`` if its form is unknown."""
    try:
        at, family, size = _socket_address(raw)
    except RefusedError:
        return None
    known = family in {socket.AF_INET, socket.AF_INET6} and size <= len(raw)
    return int.from_bytes(raw[at : at + 2]) if known else None


def _socket_address(raw: bytes) -> tuple[int, int, int]:
    """The offset of port and address, their family, and the length of the record."""
    try:
        (name,) = struct.unpack_from("<Q", raw, 0)
        size, family, _ = struct.unpack_from("<QH6s", raw, 8 + name)
    except (struct.error, OverflowError):
        raise unknown_form("its address is too short") from None
    return 8 + name + 8 + 2, family, size


def unknown_form(what: str) -> RefusedError:
    """The error for a version of PyTorch whose addresses cannot be read."""
    return RefusedError(
        f"gloo of PyTorch {torch.__version__} publishes addresses in a form that lanes do not support: {what}",
        hint="the lanes of a simulated rack are known to work with PyTorch 2.13, over IPv4",
    )


def family_of(address: str) -> socket.AddressFamily:
    """The socket family of an IP address."""
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
            # struct ifreq: a name of 16 bytes, then a socket address: family, port, IPv4 address.
            if request.tobytes()[20:24] == wanted:
                return name
    return None


class ForwardingStore(Store):
    """Forwards everything to another store. Keep a reference: PyTorch keeps none to a store written in Python."""

    def __init__(self, inner: Store) -> None:
        super().__init__()
        self._inner = inner

    def set(self, key: str, value: Any) -> None:
        """Publish a value."""
        self._inner.set(key, value)

    def get(self, key: str) -> bytes:
        """A value, once it is published."""
        return self._inner.get(key)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Several values, once all are published."""
        return [self.get(key) for key in keys]

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long a key may take to be published."""
        self._inner.set_timeout(timeout)

    def add(self, key: str, amount: int) -> int:
        """Add to a counter; its new value."""
        return self._inner.add(key, amount)

    def check(self, keys: list[str]) -> bool:
        """Whether all keys are published."""
        return self._inner.check(keys)

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Replace a value if it is the expected one."""
        return self._inner.compare_set(key, expected, desired)

    def delete_key(self, key: str) -> bool:
        """Delete a value."""
        return self._inner.delete_key(key)

    def num_keys(self) -> int:
        """The number of values."""
        return self._inner.num_keys()

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are published."""
        if timeout is None:
            self._inner.wait(keys)
        else:
            self._inner.wait(keys, timeout)


class PortRecorder(ForwardingStore):
    """A store that notes the ports that gloo publishes and reads."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.own_ports: set[int] = set()
        """The ports at which gloo listens here."""
        self.peers_ports: set[int] = set()
        """The ports of peers that gloo looked up in order to connect."""
        self.unknown = False
        """Whether the first published value is not an address of a known form: this PyTorch uses another one."""

    def set(self, key: str, value: Any) -> None:
        """Publish a value."""
        port = port_in(bytes(value, "latin-1") if isinstance(value, str) else bytes(value)) if is_address(key) else None
        if port is not None:
            self.own_ports.add(port)
        elif not self.own_ports:
            self.unknown = True
        super().set(key, value)

    def get(self, key: str) -> bytes:
        """A value, once it is published."""
        value = super().get(key)
        if is_address(key) and (port := port_in(value)) is not None:
            self.peers_ports.add(port)
        return value


class LaneStore(ForwardingStore):
    """Routes the connections of a group over the lanes of a simulated rack, where the light decides what arrives.

    Of two ranks, the greater one must connect. So it gets an endpoint of the lanes as its peer's address; that is less
    than almost any address of its own. The other rank gets an address that is greater than its own. Subgroups
    (``new_group``) are routed in the same way. ``placement[r]`` is the accelerator of rank ``r``; ``lanes`` is the
    socket at which the simulator hands out endpoints. With ``phased``, only groups whose keys have the prefix
    :data:`LANES` are routed; the others use the network between hosts.
    """

    def __init__(
        self, store: Store, *, rank: int, placement: Sequence[str], lanes: Path | str, phased: bool = False
    ) -> None:
        super().__init__(store)
        # Endpoints are on loopback; another interface may have an address that is less than an endpoint's.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._rank, self._accelerator = rank, placement[rank]
        self._alone = len(placement) == 1
        self._phased = phased
        self._lanes = str(lanes)
        self._own: dict[str, Address] = {}
        self._line: JsonLines | None = None
        self.joined = 0
        """The number of peers whose connections were routed over lanes."""

    def require_joined(self) -> None:
        """Require that the connections of a formed group go over lanes.

        Raises:
            RefusedError: no address was looked up in this store: this PyTorch distributes addresses in another way.
        """
        if not (self.joined or self._alone):
            raise unknown_form("no peer's address was read under a known key")

    def close(self) -> None:
        """Close the line to the simulator; the group's connections stay. A second call does nothing."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def set(self, key: str, value: Any) -> None:
        """Publish a value; an address of gloo is marked with its rank and accelerator."""
        if self._is_routed(key):
            raw = value if isinstance(value, bytes) else bytes(value, "latin-1")
            self._own[_group(key)] = Address.of(raw)
            value = raw + _MARK + f"{self._rank} {self._accelerator}".encode()
        super().set(key, value)

    def get(self, key: str) -> bytes:
        """A value; a peer's address is replaced by an address that is connected over lanes.

        Raises:
            UnreachableError: the simulator does not hand out endpoints.
            RefusedError: the simulator refuses, or gloo's addresses have an unknown form.
        """
        value = super().get(key)
        if not self._is_routed(key):
            return value
        raw, mark, owner = value.rpartition(_MARK)
        if not mark:
            raise RefusedError(
                f"{key} was published by a rank whose traffic does not go over lanes",
                hint="every rank of a group needs a store with lanes",
            )
        rank, _, accelerator = owner.decode().partition(" ")
        return self._led(_group(key), Address.of(raw), int(rank), accelerator).raw

    def _is_routed(self, key: str) -> bool:
        return is_address(key) and (not self._phased or f"/{LANES}/" in key)

    def _led(self, group: str, peer: Address, rank: int, accelerator: str) -> Address:
        if rank == self._rank:
            return peer
        own = self._own.get(group)
        if own is None:
            raise unknown_form("a peer's address was read before this rank published its own")
        led = peer.moved(own.ip, _GREATEST_PORT) if rank > self._rank else self._endpoint(peer, accelerator)
        if (own.order > led.order) is (rank > self._rank):
            raise RefusedError(
                f"gloo listens on {socket.inet_ntoa(own.ip)}:{own.port}, which no endpoint of a lane can reach",
                hint="set GLOO_SOCKET_IFNAME=lo, and try again",
            )
        self.joined += 1
        return led

    def _endpoint(self, peer: Address, accelerator: str) -> Address:
        address = [socket.inet_ntoa(peer.ip), peer.port]
        try:
            if self._line is None:
                self._line = JsonLines(connect(Path(self._lanes), FOUND_WITHIN_S))
            self._line.send({"from": self._accelerator, "to": accelerator, "address": address}, FOUND_WITHIN_S)
            answer = self._line.receive(FOUND_WITHIN_S)
        except (OSError, ValueError) as error:
            self.close()
            raise UnreachableError(
                f"the simulator provides no endpoint of its lanes at {self._lanes}: {error}",
                hint="see: lumctl sim status",
            ) from None
        if "error" in answer:
            raise RefusedError(f"no lane to {accelerator}: {answer['error']}", hint=answer.get("hint"))
        ip, port = answer["endpoint"]
        return peer.moved(socket.inet_aton(ip), int(port))


def _group(key: str) -> str:
    return key.rpartition("/")[0]
