"""Two connections joined into one: a stream of bytes each way, each over its own way of lit lanes."""

import math
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lumctl.sim.lanes.loop import BROKEN, CLOSED, IN, OUT, LaneLoop


class Bucket:
    """A rate limit in bytes per second, ``inf`` for none; times are in seconds of any steady clock.

    A sender that finds the lane free may send a whole piece, and then the lane is busy for the time of the piece:
    pieces of any size pass, and over time the rate is exact.
    """

    _DEPTH_S = 0.005
    """What a lane that rested may carry at once, as the time in which it would have carried that."""
    _PIECE_S = 0.004
    _PIECES = (16 * 1024, 512 * 1024)

    def __init__(self, rate: float) -> None:
        self.rate = rate
        least, most = self._PIECES
        self.piece = int(min(max(rate * self._PIECE_S, least), most))
        """The most bytes that are taken at once, so that those who share a lane take turns."""
        self._free_at = -math.inf
        self._wanted_until = -math.inf

    def ready_at(self, now: float) -> float:
        """When a piece may be taken: ``now``, or later."""
        return max(now, self._free_at)

    def take(self, count: int, now: float, *, due: float | None = None) -> None:
        """Carry bytes now. ``due``: their sender waited until it was woken, and could have sent at that time.

        So a late timer does not lower the rate, while an idle lane does not catch up.
        """
        start = max(self._free_at, now - self._DEPTH_S)
        if due is not None:
            start = max(self._free_at, min(due, start))
            self._wanted_until = max(self._wanted_until, now)
        elif self._free_at < self._wanted_until:
            start = self._free_at
        self._free_at = start + count / self.rate


_BUFFER = memoryview(bytearray(512 * 1024))
"""What a stream reads into before it sends it on: one for all, as there is one thread."""
_WITHOUT_GRACE = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class LitHop:
    """One lit hop, shared by all its users. ``carried`` counts bytes."""

    name: str
    bucket: Bucket
    carried: int = 0


@dataclass(slots=True)
class HopStream:
    """Bytes from one socket to another. ``way`` is ``None`` in the dark, and empty where no lane has to be passed."""

    origin: socket.socket
    target: socket.socket
    way: tuple[LitHop, ...] | None = None
    held: memoryview = field(default_factory=lambda: memoryview(b""))
    ended: bool = False
    closing: bool = False
    """The origin was seen to close in the dark, and what it sent before was not read yet."""
    reset: bool = False
    broken: bool = False
    delivered: bool = False
    due: float | None = None
    """When the rates of its lanes let it continue; ``None`` while it does not wait for them."""
    carried: int = 0

    @property
    def reads(self) -> bool:
        """Whether it may take more from its origin now."""
        return not (self.way is None or self.held or self.ended or self.broken or self.due is not None)

    @property
    def writes(self) -> bool:
        """Whether it has something that its target did not take yet."""
        return self.way is not None and bool(self.held) and not self.broken

    @property
    def stuck(self) -> bool:
        """Whether it takes nothing from its origin until light or the other direction changes that."""
        return self.way is None or self.broken

    @property
    def over(self) -> bool:
        """Whether its origin sends nothing more."""
        return self.ended or self.closing

    def ready_at(self, now: float) -> float:
        """When all lanes of its way have room for it."""
        return max((lane.bucket.ready_at(now) for lane in self.way or ()), default=now)

    def move(self, now: float, *, due: float | None = None) -> None:
        """Carry one piece. ``due``: it waited for its lanes, and could have continued then."""
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
            self.held = memoryview(bytes(_BUFFER[sent:count]))

    def flush(self) -> None:
        """Send the held bytes, as far as the target accepts them."""
        self.held = self.held[self._send(self.held) :]

    def _send(self, data: memoryview) -> int:
        try:
            return self.target.send(data, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0
        except OSError:
            self.broken = True
            return len(data)


Queue = deque[tuple["Joint", HopStream]]


class Joint:
    """A connection that came in at an endpoint (``near``) and the one to the address that it is joined with (``far``).

    A close travels as bytes do: it is delivered when the way is lit. Ends that have both closed are let go, lit or not.
    ``queue`` holds streams that wait for their lanes' rate; ``left`` is called once, when all is over.
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
        """There and back."""
        return (self.there, self.back)

    def lead(self, there: tuple[LitHop, ...] | None, back: tuple[LitHop, ...] | None) -> None:
        """Take these ways from now on."""
        self.there.way, self.back.way = there, back
        self._settle()

    def go_on(self, stream: HopStream) -> None:
        """Its turn has come: lanes have room for it."""
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
        """After anything has changed: hand on a close, and watch each end for what matters now."""
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
    """What one end is watched for: the origin of one stream and the target of the other."""
    mask = 0
    if outgoing.reads:
        mask |= IN
    elif outgoing.stuck and not outgoing.over:
        mask |= CLOSED
    if incoming.writes:
        mask |= OUT
    return mask
