"""Leads the connections of a process group over the lanes of a simulated rack, where the light decides what arrives.

Ranks publish the addresses at which gloo listens through the store that a group is made with. Of two ranks the one
with the greater address connects. A :class:`LaneStore` has the greater rank connect: as its peer's address it is given
an endpoint of the lanes, less than almost any address of its own, and the other rank one that is greater than its own.
"""

import os
import socket
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumctl.errors import RefusedError, UnreachableError
from lumctl.training.torch.addresses import Address, is_address, strange
from lumctl.training.wire import BrokenLineError, MessageLine

if TYPE_CHECKING:
    # What is public is typed in the private module only.
    from torch._C._distributed_c10d import Store
else:
    from torch.distributed import Store

_MARK = b"\nlumctl lane "
_GREATEST_PORT = 65535
_ANSWERS_WITHIN_S = 10.0


class LaneStore(Store):
    """A store around the one that a process group would be made with; keep a reference for as long as the group lives.

    ``placement[r]`` is the accelerator of rank ``r``, ``lanes`` the socket at which the simulator gives out endpoints.
    Groups made out of the whole one (``new_group``) are led in the same way. Only the addresses of gloo are touched.
    """

    def __init__(self, store: Store, *, rank: int, placement: Sequence[str], lanes: Path | str) -> None:
        super().__init__()
        # Endpoints are on loopback; an interface of another network may have an address that is less than theirs.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._store, self._rank, self._accelerator = store, rank, placement[rank]
        self._alone = len(placement) == 1
        self._lanes = str(lanes)
        self._own: dict[str, Address] = {}
        self._line: MessageLine | None = None
        self.joined = 0
        """Peers to which connections were led over lanes."""

    def require_joined(self) -> None:
        """Check, once a group is made, that its connections do go over lanes.

        Raises:
            RefusedError: nobody's address was looked up here: this PyTorch hands out addresses in another way.
        """
        if not (self.joined or self._alone):
            raise strange("no peer's address was looked up under a key that is known")

    def close(self) -> None:
        """Let go of the lanes' socket; connections stay. A second call does nothing."""
        if self._line is not None:
            self._line.close()
            self._line = None

    # --- what a store does ---

    def set(self, key: str, value: Any) -> None:
        """Publish a value; beside an address of gloo, whose it is."""
        if is_address(key):
            raw = value if isinstance(value, bytes) else bytes(value, "latin-1")
            self._own[_group(key)] = Address.of(raw)
            value = raw + _MARK + f"{self._rank} {self._accelerator}".encode()
        self._store.set(key, value)

    def get(self, key: str) -> bytes:
        """A value; where it is a peer's address, one that leads over lanes.

        Raises:
            UnreachableError: the simulator does not give out endpoints.
            RefusedError: it refuses, or gloo's addresses have another form than is known.
        """
        value = self._store.get(key)
        if not is_address(key):
            return value
        raw, mark, owner = value.rpartition(_MARK)
        if not mark:
            raise RefusedError(
                f"{key} was published by a rank whose traffic does not go over lanes",
                hint="every rank of a group needs a store with lanes",
            )
        rank, _, accelerator = owner.decode().partition(" ")
        return self._led(_group(key), Address.of(raw), int(rank), accelerator).raw

    def _led(self, group: str, peer: Address, rank: int, accelerator: str) -> Address:
        if rank == self._rank:
            return peer
        own = self._own.get(group)
        if own is None:
            raise strange("a peer's address was asked for before the own one was published")
        led = peer.moved(own.ip, _GREATEST_PORT) if rank > self._rank else self._endpoint(peer, accelerator)
        if (own.order > led.order) is (rank > self._rank):
            raise RefusedError(
                f"gloo listens at {socket.inet_ntoa(own.ip)}:{own.port}, from where no endpoint of a lane is reached",
                hint="set GLOO_SOCKET_IFNAME=lo, and try again",
            )
        self.joined += 1
        return led

    def _endpoint(self, peer: Address, accelerator: str) -> Address:
        address = [socket.inet_ntoa(peer.ip), peer.port]
        try:
            if self._line is None:
                self._line = _connected(self._lanes)
            self._line.send({"from": self._accelerator, "to": accelerator, "address": address})
            answer = self._line.receive()
            if answer is None:
                raise ConnectionResetError("it closed the connection")
        except (OSError, BrokenLineError) as error:
            self.close()
            raise UnreachableError(
                f"the simulator gives out no endpoint of its lanes at {self._lanes}: {error}",
                hint="see: lumctl sim status",
            ) from None
        if "error" in answer:
            raise RefusedError(f"no lane to {accelerator}: {answer['error']}", hint=answer.get("hint"))
        ip, port = answer["endpoint"]
        return peer.moved(socket.inet_aton(ip), int(port))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all these are there."""
        if timeout is None:
            self._store.wait(keys)
        else:
            self._store.wait(keys, timeout)

    def add(self, key: str, amount: int) -> int:
        """Count up."""
        return self._store.add(key, amount)

    def check(self, keys: list[str]) -> bool:
        """Whether all these are there."""
        return self._store.check(keys)

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Publish a value in place of an expected one."""
        return self._store.compare_set(key, expected, desired)

    def delete_key(self, key: str) -> bool:
        """Forget a value."""
        return self._store.delete_key(key)

    def num_keys(self) -> int:
        """How many values there are."""
        return self._store.num_keys()


def _group(key: str) -> str:
    return key.rpartition("/")[0]


def _connected(path: str) -> MessageLine:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_ANSWERS_WITHIN_S)
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return MessageLine(connection)
