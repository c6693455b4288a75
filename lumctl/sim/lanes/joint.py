"""Two connections combined into one: a stream of bytes in each direction, each over its own path of lit lanes."""

import math
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lumctl.sim.lanes.loop import BROKEN, CLOSED, IN, OUT, LaneLoop


class Bucket:
    """A rate limit in bytes per second, ``inf`` for none; times are in seconds of any monotonic clock.

    A sender that finds the lane free may send a whole piece; then the lane is busy for as long as the piece takes at
    this rate. So pieces of any size can be sent, and over time the rate is exact.
    """

    _DEPTH_S = 0.005
    """The burst that an idle lane may carry at once, as a time at its rate."""
    _PIECE_S = 0.004
    _PIECES = (16 * 1024, 512 * 1024)

    def __init__(self, rate: float) -> None:
        self.rate = rate
        least, most = self._PIECES
        self.piece = int(min(max(rate * self._PIECE_S, least), most))
        """The most bytes that are taken at once, so that streams that share a lane take turns."""
        self._free_at = -math.inf
        self._wanted_until = -math.inf

    def ready_at(self, now: float) -> float:
        """The time when a piece may be taken: ``now`` or later."""
        return max(now, self._free_at)

    def take(self, count: int, now: float, *, due: float | None = None) -> None:
        """Carry bytes now. ``due``: the time when a sender that waited could have sent, which may be before now.

        With ``due`` a late timer does not lower the rate; without it an idle lane does not catch up.
        """
        start = max(self._free_at, now - self._DEPTH_S)
        if due is not None:
            start = max(self._free_at, min(due, start))
            self._wanted_until = max(self._wanted_until, now)
        elif self._free_at < self._wanted_until:
            # Somebody waited for the lane until after it was free: that time was lost to a late timer, not to idleness.
            start = self._free_at
        self._free_at = start + count / self.rate


_BUFFER = memoryview(bytearray(512 * 1024))
"""The buffer between reading and sending. All streams share it, because there is only one thread."""
_WITHOUT_GRACE = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class LitHop:
    """One lit hop, shared by all its users. ``carried`` counts bytes."""

    name: str
    bucket: Bucket
    carried: int = 0


@dataclass(slots=True)
class HopStream:
    """Bytes from one socket to another. ``way`` is ``None`` without a lit path, and empty if no lane is needed."""

    origin: socket.socket
    target: socket.socket
    way: tuple[LitHop, ...] | None = None
    held: memoryview = field(default_factory=lambda: memoryview(b""))
    ended: bool = False
    closing: bool = False
    """The origin closed while there was no lit path; bytes that it sent before are not read yet."""
    reset: bool = False
    broken: bool = False
    delivered: bool = False
    due: float | None = None
    """The time when the rates of its lanes allow it to continue; ``None`` if it does not wait for them."""
    carried: int = 0

    @property
    def reads(self) -> bool:
        """Whether it may read more from its origin now."""
        return not (self.way is None or self.held or self.ended or self.broken or self.due is not None)

    @property
    def writes(self) -> bool:
        """Whether it holds bytes that its target has not accepted yet and can send them."""
        return self.way is not None and bool(self.held) and not self.broken

    @property
    def stuck(self) -> bool:
        """Whether it cannot read from its origin: there is no lit path, or its target is broken."""
        return self.way is None or self.broken

    @property
    def over(self) -> bool:
        """Whether its origin sends nothing more."""
        return self.ended or self.closing

    def ready_at(self, now: float) -> float:
        """The time when all lanes of its path have room for a piece."""
        return max((lane.bucket.ready_at(now) for lane in self.way or ()), default=now)

    def move(self, now: float, *, due: float | None = None) -> None:
        """Carry one piece. ``due``: the time when it could have continued, if it waited for its lanes."""
        way = self.way or ()
        most = min((lane.bucket.piece for lane in way), default=len(_BUFFER))
        try:
            count = self.origin.recv_into(_BUFFER, most)
        except BlockingIOError:
            return
        except OSError:
            self.ended = self.reset = True
            return
        if count == 0:
            self.ended = True
            return
        self.carried += count
        for lane in way:
            lane.bucket.take(count, now, due=due)
            lane.carried += count
        sent = self._send(_BUFFER[:count])
        if sent < count:
            # A copy, because the next stream reads into the same buffer.
            self.held = memoryview(bytes(_BUFFER[sent:count]))

    def flush(self) -> None:
        """Send the held-back bytes, as far as the target accepts them."""
        self.held = self.held[self._send(self.held) :]

    def _send(self, data: memoryview) -> int:
        try:
            return self.target.send(data, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0
        except OSError:
            self.broken = True
            # As if it was sent, because no receiver is left.
            return len(data)


Queue = deque[tuple["Joint", HopStream]]


class Joint:
    """Joins a connection accepted at an endpoint (``near``) with a connection to the requested address (``far``).

    A close is forwarded like bytes: it is delivered when the path is lit. If both ends have closed, the joint ends even
    without light. ``queue`` holds streams that wait for the rate of their lanes; ``left`` is called once, at the end.
    """

    def __init__(
        self,
        loop: LaneLoop,
        near: socket.socket,
        far: socket.socket,
        *,
        queue: "Queue",
        clock: Callable[[], float],
        left: "Callable[[Joint], None]",
    ) -> None:
        self._loop, self._queue, self._clock, self._left = loop, queue, clock, left
        self._near, self._far = near, far
        for end in (near, far):
            end.settimeout(0.0)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.there = HopStream(near, far)
        self.back = HopStream(far, near)
        self._open = True

    @property
    def streams(self) -> tuple[HopStream, HopStream]:
        """The streams of the two directions."""
        return (self.there, self.back)

    def lead(self, there: tuple[LitHop, ...] | None, back: tuple[LitHop, ...] | None) -> None:
        """Use these paths from now on."""
        self.there.way, self.back.way = there, back
        self._settle()

    def go_on(self, stream: HopStream) -> None:
        """Continue a stream that waited, because its lanes have room now."""
        due, stream.due = stream.due, None
        if self._open:
            self._carry(stream, due=due)
            self._settle()

    def close(self, *, abruptly: bool = False) -> None:
        """Close both ends; a second call does nothing."""
        if not self._open:
            return
        self._open = False
        for end in (self._near, self._far):
            self._loop.forget(end)
            if abruptly:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _WITHOUT_GRACE)
            end.close()
        self._left(self)

    def _near_event(self, events: int) -> None:
        self._event(events, self.there, self.back)

    def _far_event(self, events: int) -> None:
        self._event(events, self.back, self.there)

    def _event(self, events: int, outgoing: HopStream, incoming: HopStream) -> None:
        if incoming.writes and events & (OUT | BROKEN):
            incoming.flush()
        if outgoing.reads and events & (IN | BROKEN):
            self._carry(outgoing)
        elif outgoing.stuck and events & (CLOSED | BROKEN):
            outgoing.closing = True
        self._settle()

    def _carry(self, stream: HopStream, *, due: float | None = None) -> None:
        if not stream.reads:
            return
        now = self._clock()
        ready_at = stream.ready_at(now)
        if ready_at > now:
            stream.due = ready_at
            self._queue.append((self, stream))
        else:
            stream.move(now, due=due)

    def _settle(self) -> None:
        """After any change: forward a close, and watch each end for the events that matter now."""
        if not self._open:
            return
        there, back = self.streams
        for stream, other in ((there, back), (back, there)):
            if stream.broken:
                # An end that refuses incoming data sends nothing either.
                other.ended = other.reset = True
        for stream in (there, back):
            if stream.way is not None and stream.ended and not stream.held and not stream.delivered:
                if stream.reset:
                    self.close(abruptly=True)
                    return
                stream.delivered = True
                try:
                    stream.target.shutdown(socket.SHUT_WR)
                except OSError:
                    self.close(abruptly=True)
                    return
        if (there.delivered and back.delivered) or (self._dark and there.over and back.over):
            self.close()
            return
        self._loop.watch(self._near, _mask(there, back), self._near_event)
        self._loop.watch(self._far, _mask(back, there), self._far_event)

    @property
    def _dark(self) -> bool:
        return self.there.way is None or self.back.way is None


def _mask(outgoing: HopStream, incoming: HopStream) -> int:
    """The events to watch at one end, which is the origin of one stream and the target of the other."""
    mask = 0
    if outgoing.reads:
        mask |= IN
    elif outgoing.stuck and not outgoing.over:
        # Bytes that cannot be read yet would wake a level-triggered loop without end, so only a close is watched.
        mask |= CLOSED
    if incoming.writes:
        mask |= OUT
    return mask
