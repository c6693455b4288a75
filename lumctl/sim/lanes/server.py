"""The process that carries the bytes: ``python -m lumctl.sim.lanes.server``, started by the simulator only.

It is a separate process so that busy lanes do not slow down the simulated devices. It gets two file descriptors, the
socket for requests and the connection to the simulator, and an order (JSON). The simulator sends all lit hops whenever
they change; when its connection closes, this process ends.
"""

import contextlib
import errno
import ipaddress
import json
import math
import os
import random
import resource
import signal
import socket
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.sim.lanes.joint import Bucket, Joint, LitHop, Queue
from lumctl.sim.lanes.loop import BROKEN, CLOSED, IN, LaneLoop
from lumctl.sim.lanes.ways import Hop, Ways

_MOST_PORT = 65535
_MORE = 1_000_000
"""How much more a connection between the same two accelerators counts on a lane than any other."""
AWAITED_S = 60.0
"""How long an endpoint waits for a connection; after that, a new request may take it."""


class Exchange:
    """Joins connections. ``hosts`` has the host of each accelerator; ``rate`` is that of a lane in bytes per second."""

    def __init__(
        self,
        loop: LaneLoop,
        hosts: Mapping[str, str],
        *,
        rate: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop, self._hosts, self._rate, self._clock = loop, hosts, rate, clock
        self._ways = Ways(())
        self._lanes: dict[str, LitHop] = {}
        self._joints: dict[Joint, tuple[str, str]] = {}
        self._between: defaultdict[frozenset[str], set[Joint]] = defaultdict(set)
        self._queue: Queue = deque()
        self._awaiting: dict[socket.socket, float] = {}
        self._gone = 0

    def light(self, hops: Iterable[Hop]) -> None:
        """Take these hops as lit from now on, and route every connection over the shortest path of them."""
        self._ways = Ways(hops)
        load: Counter[str] = Counter()
        for joint in list(self._joints):
            self._lead(joint, load)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request: an endpoint, the figures, or an error."""
        try:
            if request.get("status"):
                return self.status()
            ip, port = request["address"]
            return {"endpoint": list(self.await_one(str(request["from"]), str(request["to"]), (str(ip), int(port))))}
        except LumctlError as error:
            return {"error": error.message, "hint": error.hint}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return {"error": f"not a request: {type(error).__name__}: {error}"[:200], "hint": None}

    def await_one(self, source: str, sink: str, address: tuple[str, int]) -> tuple[str, int]:
        """Open an endpoint. A connection to it, from ``source``, is combined with one to an address of ``sink``.

        Raises:
            UsageError: there is no such accelerator, or the address is not on loopback.
            RefusedError: no endpoint is free.
        """
        for accelerator in (source, sink):
            if accelerator not in self._hosts:
                raise UsageError(f"the simulated rack has no accelerator {accelerator!r}")
        if not (ipaddress.IPv4Address(address[0]).is_loopback and 0 < address[1] <= _MOST_PORT):
            raise UsageError(f"{address[0]}:{address[1]} is not a loopback address, and lanes lead to no other")
        self._give_up()
        listening = listen()
        self._awaiting[listening] = self._clock() + AWAITED_S
        self._loop.watch(listening, IN, lambda _: self._accept(listening, (source, sink), address))
        ip, port = listening.getsockname()
        return ip, port

    def status(self) -> dict[str, Any]:
        """The open connections, how many of them wait for light, and the bytes carried in all and by each lane."""
        streams = [stream for joint in self._joints for stream in joint.streams]
        dark = sum(any(stream.way is None for stream in joint.streams) for joint in self._joints)
        return {
            "connections": len(self._joints),
            "dark": dark,
            "bytes": self._gone + sum(stream.carried for stream in streams),
            "lanes": {name: lane.carried for name, lane in sorted(self._lanes.items()) if lane.carried},
        }

    def patience_s(self) -> float | None:
        """Seconds until a connection that waits for the rate of its lanes can continue; ``None`` if none waits."""
        now = self._clock()
        return max(0.0, min(stream.ready_at(now) for _, stream in self._queue) - now) if self._queue else None

    def serve_waiting(self) -> None:
        """Continue all streams that have waited long enough, in the order in which they started to wait."""
        now = self._clock()
        for _ in range(len(self._queue)):
            joint, stream = self._queue.popleft()
            ready_at = stream.ready_at(now)
            if ready_at <= now:
                joint.go_on(stream)
            else:
                # Another stream has used the room on the lane, so this one waits again.
                stream.due = ready_at
                self._queue.append((joint, stream))

    def close(self) -> None:
        """Close everything."""
        for listening in list(self._awaiting):
            self._cease(listening)
        for joint in list(self._joints):
            joint.close()

    def _accept(self, listening: socket.socket, ends: tuple[str, str], address: tuple[str, int]) -> None:
        try:
            near, _ = listening.accept()
        except OSError:  # the peer has closed again
            return
        # An endpoint is for one connection; its port is free for another from now on.
        self._cease(listening)
        far = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        far.settimeout(0.0)
        # A refused connection shows as an error at the first read or write, and is forwarded like every other close.
        far.connect_ex(address)
        joint = Joint(self._loop, near, far, queue=self._queue, clock=self._clock, left=self._left)
        self._joints[joint] = ends
        self._between[frozenset(ends)].add(joint)
        self._lead(joint, Counter(lane.name for lane in self._used()))

    def _used(self) -> Iterable[LitHop]:
        return (lane for joint in self._joints for stream in joint.streams for lane in stream.way or ())

    def _lead(self, joint: Joint, load: Counter[str]) -> None:
        """Route a joint, and count it in ``load``."""
        source, sink = self._joints[joint]
        if self._hosts[source] == self._hosts[sink]:
            joint.lead((), ())
            return
        # Connections between the same two accelerators share the lanes between them evenly, whatever passes there.
        others = self._between[frozenset((source, sink))] - {joint}
        own = Counter(lane.name for other in others for stream in other.streams for lane in stream.way or ())
        ways = []
        for here, there in ((source, sink), (sink, source)):
            names = self._ways.shortest(here, there, load + Counter({name: _MORE * n for name, n in own.items()}))
            load.update(names or ())
            ways.append(None if names is None else tuple(map(self._lane, names)))
        joint.lead(*ways)

    def _lane(self, name: str) -> LitHop:
        if name not in self._lanes:
            self._lanes[name] = LitHop(name, Bucket(self._rate))
        return self._lanes[name]

    def _left(self, joint: Joint) -> None:
        self._gone += sum(stream.carried for stream in joint.streams)
        self._between[frozenset(self._joints.pop(joint))].discard(joint)

    def _give_up(self) -> None:
        now = self._clock()
        for listening in [each for each, until in self._awaiting.items() if until <= now]:
            self._cease(listening)

    def _cease(self, listening: socket.socket) -> None:
        del self._awaiting[listening]
        self._loop.forget(listening)
        listening.close()


LOOPBACK = "127.0.0.1"
# Of two ranks, gloo makes the one with the greater address connect, and it compares ports with the low byte first. So a
# port whose low byte is 0 is less than almost all others, and a rank that is given an endpoint connects to it.
_PORTS = range(1024, 32513, 256)


def listen() -> socket.socket:
    """A listening socket at a free endpoint.

    Raises:
        RefusedError: no endpoint is free.
    """
    for port in random.sample(_PORTS, len(_PORTS)):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # An earlier connection that was accepted here keeps the port in use; this option allows binding it.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((LOOPBACK, port))
            listening.listen(1)
        except OSError as error:
            listening.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            listening.settimeout(0.0)
            return listening
    raise RefusedError(f"all {len(_PORTS)} endpoints of the lanes are waiting for a connection", hint="try again later")


_MOST_BYTES = 4096


class Lines:
    """JSON lines from one socket, each passed to ``take``. A line of more than ``most`` bytes ends the connection."""

    def __init__(
        self,
        loop: LaneLoop,
        connection: socket.socket,
        take: Callable[[dict[str, Any]], dict[str, Any] | None],
        *,
        most: float = _MOST_BYTES,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop, self._connection, self._take, self._most, self._ended = loop, connection, take, most, ended
        self._received = bytearray()
        connection.settimeout(0.0)
        loop.watch(connection, IN | CLOSED, self._event)

    def _event(self, _events: int) -> None:
        try:
            chunk = self._connection.recv(65536)
            self._received += chunk
            while b"\n" in self._received:
                line, _, self._received = self._received.partition(b"\n")
                answer = self._take(_object(bytes(line)))
                if answer is not None:
                    # Sending does not wait for a client that does not read its answers.
                    self._connection.send(json.dumps(answer).encode() + b"\n", socket.MSG_NOSIGNAL)
        except OSError:
            chunk = b""
        if not chunk or len(self._received) > self._most:
            self._loop.forget(self._connection)
            self._connection.close()
            self._ended()


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def carry(listener: socket.socket, simulator: socket.socket, order: dict[str, Any]) -> None:
    """Carry bytes until the simulator closes its connection."""
    loop = LaneLoop()
    rate = math.inf if order["mbps"] is None else order["mbps"] * 1e6 / 8
    exchange = Exchange(loop, order["hosts"], rate=rate)
    ended = []

    def light(said: dict[str, Any]) -> None:
        exchange.light(Hop(*hop) for hop in said["lit"])

    def accept(_events: int) -> None:
        # The client may have given up since.
        with contextlib.suppress(BlockingIOError):
            Lines(loop, listener.accept()[0], exchange.answer)

    # Without a limit: the simulator is trusted, and the lanes of a large rack make long lines.
    Lines(loop, simulator, light, most=math.inf, ended=lambda: ended.append(True))
    listener.settimeout(0.0)
    loop.watch(listener, IN | BROKEN, accept)
    while not ended:
        exchange.serve_waiting()
        loop.turn(exchange.patience_s())
    exchange.close()
    loop.close()


def main() -> int:
    """Run the process; returns its exit status."""
    os.umask(0o077)
    # An interrupt of the whole process group is for the simulator, which then closes its connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Each connection takes two descriptors, and the usual soft limit is 1024.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    listener, simulator = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    carry(listener, simulator, json.loads(sys.argv[3]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
