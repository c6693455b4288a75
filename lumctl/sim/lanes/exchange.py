"""All joints of a rack, the endpoints at which they begin, and the light that leads them."""

import errno
import ipaddress
import math
import random
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.sim.lanes.joint import Bucket, Joint, LitHop, Queue
from lumctl.sim.lanes.loop import IN, LaneLoop
from lumctl.sim.lanes.ways import Hop, Ways

_MOST_PORT = 65535
AWAITED_S = 60.0
"""How long an endpoint waits for its requester; after that, a new request may take it."""


class Exchange:
    """Joins connections. ``hosts`` is the host of each accelerator, ``rate`` what a lane carries in bytes a second."""

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
        self._queue: Queue = deque()
        self._awaiting: dict[socket.socket, float] = {}
        self._gone = 0

    def light(self, hops: Iterable[Hop]) -> None:
        """From now on these hops are lit, and every connection takes the shortest way over them."""
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
        """An endpoint: its connection, from ``source``, is joined with an address of ``sink``.

        Raises:
            UsageError: there is no such accelerator, or the address is not on loopback.
            RefusedError: no endpoint is free.
        """
        for accelerator in (source, sink):
            if accelerator not in self._hosts:
                raise UsageError(f"the simulated rack has no accelerator {accelerator!r}")
        if not (ipaddress.IPv4Address(address[0]).is_loopback and 0 < address[1] <= _MOST_PORT):
            raise UsageError(f"{address[0]}:{address[1]} is no address on loopback, and lanes lead to no other")
        self._give_up()
        listening = listen()
        self._awaiting[listening] = self._clock() + AWAITED_S
        self._loop.watch(listening, IN, lambda _: self._accept(listening, (source, sink), address))
        ip, port = listening.getsockname()
        return ip, port

    def status(self) -> dict[str, Any]:
        """Connections that are open and how many of them wait for light, bytes carried, and those of each lane."""
        streams = [stream for joint in self._joints for stream in joint.streams]
        dark = sum(any(stream.way is None for stream in joint.streams) for joint in self._joints)
        return {
            "connections": len(self._joints),
            "dark": dark,
            "bytes": self._gone + sum(stream.carried for stream in streams),
            "lanes": {name: lane.carried for name, lane in sorted(self._lanes.items()) if lane.carried},
        }

    def patience_s(self) -> float | None:
        """How long nothing needs to be done for connections that wait for the rate of their lanes."""
        now = self._clock()
        return max(0.0, min(stream.ready_at(now) for _, stream in self._queue) - now) if self._queue else None

    def serve_waiting(self) -> None:
        """Let all continue that have waited long enough, in the order in which they came."""
        now = self._clock()
        for _ in range(len(self._queue)):
            joint, stream = self._queue.popleft()
            ready_at = stream.ready_at(now)
            if ready_at <= now:
                joint.go_on(stream)
            else:
                # Another has taken what it waited for.
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
        self._cease(listening)
        far = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        far.settimeout(0.0)
        # A refusal shows with the first byte, and is handed on like every other close.
        far.connect_ex(address)
        joint = Joint(self._loop, near, far, queue=self._queue, clock=self._clock, left=self._left)
        self._joints[joint] = ends
        self._lead(joint, Counter(lane.name for lane in self._used()))

    def _used(self) -> Iterable[LitHop]:
        return (lane for joint in self._joints for stream in joint.streams for lane in stream.way or ())

    def _lead(self, joint: Joint, load: Counter[str]) -> None:
        """Route a joint, and count it in ``load``."""
        source, sink = self._joints[joint]
        if self._hosts[source] == self._hosts[sink]:
            joint.lead((), ())
            return
        ways = []
        for here, there in ((source, sink), (sink, source)):
            names = self._ways.shortest(here, there, load)
            load.update(names or ())
            ways.append(None if names is None else tuple(map(self._lane, names)))
        joint.lead(*ways)

    def _lane(self, name: str) -> LitHop:
        if name not in self._lanes:
            self._lanes[name] = LitHop(name, Bucket(self._rate))
        return self._lanes[name]

    def _left(self, joint: Joint) -> None:
        self._gone += sum(stream.carried for stream in joint.streams)
        del self._joints[joint]

    def _give_up(self) -> None:
        now = self._clock()
        for listening in [each for each, until in self._awaiting.items() if until <= now]:
            self._cease(listening)

    def _cease(self, listening: socket.socket) -> None:
        del self._awaiting[listening]
        self._loop.forget(listening)
        listening.close()


LOOPBACK = "127.0.0.1"
_PORTS = range(1024, 32513, 256)


def listen() -> socket.socket:
    """A listening socket at a free endpoint.

    Raises:
        RefusedError: none is free.
    """
    for port in random.sample(_PORTS, len(_PORTS)):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # A connection that was accepted here before keeps the port busy for everything but another listener.
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
    raise RefusedError(f"all {len(_PORTS)} endpoints of the lanes await somebody", hint="ask again in a while")
