"""The sockets of a process group. PyTorch does not name them; they are the ones that appear while it is formed.

gloo cannot cancel a collective that waits for a peer that hangs, but it notices when its sockets are shut down.
"""

import contextlib
import os
import select
import socket
import stat
import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# The first byte of tcp_info is the state of the connection; 2 is TCP_SYN_SENT, see netinet/tcp.h.
_SYN_SENT = 2
_RANK = struct.Struct("<q")
"""The first bytes of a gloo connection: the rank that connects."""


@dataclass(frozen=True, slots=True)
class OpenSocket:
    """A socket of this process. The inode distinguishes it from a later socket with the same descriptor."""

    descriptor: int
    inode: int

    def again(self) -> socket.socket | None:
        """A duplicate of the connection, if it is still open."""
        with contextlib.suppress(OSError):
            # Duplicated before the inode is compared: the descriptor itself may be reused at any time.
            again = os.dup(self.descriptor)
            if os.fstat(again).st_ino == self.inode:
                return socket.socket(fileno=again)
            os.close(again)
        return None

    @property
    def is_open(self) -> bool:
        """Whether the socket is still open."""
        with contextlib.suppress(OSError):
            return os.fstat(self.descriptor).st_ino == self.inode
        return False

    @property
    def is_at_end(self) -> bool:
        """Whether the connection is closed, here or by its peer."""
        if (own := self.again()) is None:
            return True
        with own:
            poll = select.poll()
            poll.register(own, select.POLLRDHUP)
            return bool(poll.poll(0))

    def close_on_exec(self) -> None:
        """Close the socket in programs that this process starts."""
        with contextlib.suppress(OSError):
            if self.is_open:
                os.set_inheritable(self.descriptor, False)  # noqa: FBT003 - as it is called

    def use(self, act: Callable[[socket.socket], object]) -> None:
        """Call ``act`` with a duplicate if the socket is still open; ignore errors."""
        if (own := self.again()) is not None:
            with own, contextlib.suppress(OSError):
                act(own)


def sockets() -> frozenset[OpenSocket]:
    """All sockets of this process."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            known = os.fstat(int(entry.name))
            if stat.S_ISSOCK(known.st_mode):
                found.add(OpenSocket(int(entry.name), known.st_ino))
    return frozenset(found)


def between(held: frozenset[OpenSocket], own: Collection[int], peers: Collection[int]) -> frozenset[OpenSocket]:
    """The TCP sockets at one of our ports, or connected to one of our peers' ports."""
    found = set()

    def look(each: OpenSocket, one: socket.socket) -> None:
        if _is_tcp(one) and (one.getsockname()[1] in own or (not _listens(one) and one.getpeername()[1] in peers)):
            found.add(each)

    for each in held:
        each.use(partial(look, each))
    return frozenset(found)


def connected(held: frozenset[OpenSocket], *, but: int) -> frozenset[OpenSocket]:
    """The connected TCP sockets, except those to the port ``but``."""
    found = set()

    def look(each: OpenSocket, one: socket.socket) -> None:
        if _is_tcp(one) and not _listens(one) and one.getpeername()[1] != but:
            found.add(each)

    for each in held:
        each.use(partial(look, each))
    return frozenset(found)


def calling(held: frozenset[OpenSocket]) -> frozenset[OpenSocket]:
    """The TCP sockets that are still connecting; the system does not report their peers."""
    found = set()

    def look(each: OpenSocket, one: socket.socket) -> None:
        if _is_tcp(one) and one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _SYN_SENT:
            found.add(each)

    for each in held:
        each.use(partial(look, each))
    return frozenset(found)


def shut(held: frozenset[OpenSocket], ports: frozenset[int]) -> None:
    """Shut down TCP connections, which wakes threads that wait on them; spare connections to our own servers' ports."""
    for each in held:
        each.use(lambda one: _shut(one, ports))


def deafen(held: frozenset[OpenSocket], ports: frozenset[int]) -> Iterator[socket.socket]:
    """Shut down TCP connections for reading; yield a duplicate of each, which keeps it open for the peer.

    gloo of PyTorch 2.13 takes an operation off its list before it writes for it. If that write fails, the operation is
    not informed, and its caller waits for the time-out of collectives. So no write must fail.
    """
    for each in held:
        own = each.again()
        if own is None:
            continue
        try:
            if _is_tcp(own) and not _listens(own) and own.getsockname()[1] not in ports:
                own.shutdown(socket.SHUT_RD)
                yield own
                continue
        except OSError:
            pass  # the connection is broken already
        own.close()


def knock(held: frozenset[OpenSocket], ranks: range, keep: contextlib.ExitStack) -> None:
    """Connect to the listeners instead of missing peers: gloo waits for those, and we cannot limit that wait.

    The connections stay open until ``keep`` is closed.
    """
    for each in held:
        for own in _listeners(each):
            for rank in ranks:
                with contextlib.suppress(OSError):
                    caller = keep.enter_context(socket.create_connection(own, timeout=1.0))
                    caller.sendall(_RANK.pack(rank))


def _listeners(held: OpenSocket) -> Iterator[tuple[str, int]]:
    found: list[tuple[str, int]] = []

    def look(one: socket.socket) -> None:
        if _is_tcp(one) and _listens(one):
            host, port = one.getsockname()[:2]
            found.append(({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port))  # noqa: S104 - what it listens on

    held.use(look)
    yield from found


def _shut(one: socket.socket, ports: frozenset[int]) -> None:
    if _is_tcp(one) and not _listens(one) and one.getsockname()[1] not in ports:
        one.shutdown(socket.SHUT_RDWR)


def _listens(one: socket.socket) -> bool:
    return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _is_tcp(one: socket.socket) -> bool:
    return one.family in {socket.AF_INET, socket.AF_INET6} and one.type == socket.SOCK_STREAM
