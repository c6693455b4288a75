"""The store over which the ranks of a group find each other: served by a worker, left by whoever is told to give up."""

import contextlib
import socket
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

if TYPE_CHECKING:
    # What is public is typed in the private module only.
    from torch._C._distributed_c10d import Store, TCPStore
else:
    from torch.distributed import Store, TCPStore

from lumctl.training.torch.addresses import family_of, is_address, port_in

FOUND_WITHIN_S = 10.0
LOOKS_AGAIN_S, LATER_S = 0.001, 0.05
"""A group is mostly formed within some looks; where a peer does not come, waiting for it must cost nothing."""


class GivenUpError(dist.DistError):
    """The group is not to be made any more."""


def serve(address: str) -> TCPStore:
    """A store of our own that listens on an address, for as long as the worker lives."""
    listener = socket.create_server((address, 0), family=family_of(address))
    port = listener.getsockname()[1]
    return TCPStore(address, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach())


def reach(host: str, port: int, given_up: threading.Event) -> TCPStore:
    """A connection to a worker's store.

    Raises:
        DistError: nobody is there, or the group is given up.
    """
    # TCPStore would go on calling a worker that is gone, and nothing could stop it.
    try:
        with contextlib.closing(socket.create_connection((host, port), timeout=FOUND_WITHIN_S)):
            pass
    except OSError as error:
        raise dist.DistNetworkError(f"the store at {host}:{port} is not there: {error}") from error
    if given_up.is_set():
        raise GivenUpError("the group is given up")
    limit = timedelta(seconds=FOUND_WITHIN_S)
    return TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=limit)


class Patient(Store):
    """Another store, but waiting ends as soon as the group is given up."""

    def __init__(self, inner: Store, given_up: threading.Event) -> None:
        super().__init__()
        self._inner, self._given_up = inner, given_up
        self._within_s = 1800.0
        self.own_ports: set[int] = set()
        """Those at which gloo listens here."""
        self.peers_ports: set[int] = set()
        """Those that it was told to connect to."""
        self.unknown = False
        """Something was published first that is no address as we know them: this PyTorch does so in another way."""

    def set(self, key: str, value: Any) -> None:
        """As the store does."""
        port = port_in(bytes(value, "latin-1") if isinstance(value, str) else bytes(value)) if is_address(key) else None
        if port is not None:
            self.own_ports.add(port)
        elif not self.own_ports:
            self.unknown = True
        self._inner.set(key, value)

    def get(self, key: str) -> bytes:
        """As the store does: once it is there."""
        self.wait([key])
        value = self._inner.get(key)
        if is_address(key) and (port := port_in(value)) is not None:
            self.peers_ports.add(port)
        return value

    def add(self, key: str, value: int) -> int:
        """As the store does."""
        return self._inner.add(key, value)

    def check(self, keys: list[str]) -> bool:
        """As the store does."""
        return self._inner.check(keys)

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """As the store does."""
        return self._inner.compare_set(key, expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        """As the store does."""
        return self._inner.delete_key(key)

    def num_keys(self) -> int:
        """As the store does."""
        return self._inner.num_keys()

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """As the store does: once all are there."""
        return [self.get(key) for key in keys]

    def set_timeout(self, timeout: timedelta) -> None:
        """How long to wait where nothing else is said."""
        self._within_s = timeout.total_seconds()

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all are there.

        Raises:
            DistError: the group is given up, or the time is over.
        """
        until = time.monotonic() + (timeout.total_seconds() if timeout else self._within_s)
        pause = LOOKS_AGAIN_S
        while not self._inner.check(keys):
            pause = min(1.1 * pause, LATER_S)
            if self._given_up.wait(pause):
                raise GivenUpError("the group is given up")
            if time.monotonic() > until:
                raise dist.DistStoreError(f"nobody has set {', '.join(keys)} in time")
