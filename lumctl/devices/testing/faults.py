"""Faults on the connection to a device, below its protocol, as a network or a failing controller causes them."""

import random
import threading
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from lumctl.devices.ways import Stream, Way

DRIP_S = 0.02
"""Seconds between two bytes of an endless answer."""


class WayFault(StrEnum):
    """A fault of a connection. Most strike after a set number of bytes."""

    REFUSED = "refused"
    """After this many received bytes the device is gone: the next request breaks, and no connection is accepted."""
    CUT_SENDING = "cut-sending"
    """The connection breaks within a request, after that many bytes were sent."""
    CUT_ANSWER = "cut-answer"
    """The far end closes properly within an answer, after that many bytes arrived."""
    BROKEN_ANSWER = "broken-answer"
    """The connection breaks within an answer, after that many bytes arrived."""
    SILENT = "silent"
    """That many bytes arrive, then no more until the reader's time limit."""
    DRIPPING = "dripping"
    """Bytes arrive one at a time. None is lost, so a driver must work as usual."""
    GARBAGE = "garbage"
    """After that many bytes, noise arrives, then the end."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault and the number of bytes, over all connections, after which it takes effect; with ``passes`` only once.

    With ``lasts`` it takes real time: a silent device makes its reader wait, a dripping one sends bytes endlessly.
    ``text`` replaces the noise.
    """

    fault: WayFault
    after: int = 0
    passes: bool = False
    lasts: bool = False
    text: bytes = b""


class FaultyWay:
    """A connection path with faults: while :attr:`trouble` is set, it affects both open and new connections.

    ``struck`` counts how often each fault was met, which is less often than it was set. ``opened``, ``sent`` and
    ``came`` count connections and bytes. ``over`` ends every wait that a lasting fault causes.
    """

    def __init__(self, way: Way, seed: int = 0) -> None:
        self._way = way
        self.opened = self.sent = self.came = 0
        self.over = threading.Event()
        self._noise = random.Random(seed)  # noqa: S311 - the same noise in every run
        self.struck: Counter[WayFault] = Counter()
        self.trouble = None

    @property
    def trouble(self) -> Trouble | None:
        """The fault that affects connections from now on; ``None``: no fault."""
        return self._trouble

    @trouble.setter
    def trouble(self, trouble: Trouble | None) -> None:
        self._trouble = trouble
        self.left = trouble.after if trouble else 0

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Connect, unless the fault refuses connections."""
        self._welcome()
        return _FaultyStream(self, self._way.tcp(default_port, timeout_s))

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Open a subsystem, unless the fault refuses connections."""
        self._welcome()
        return _FaultyStream(self, self._way.subsystem(name, default_port, timeout_s))

    def noise(self, count: int) -> bytes:
        """Bytes without meaning."""
        return self._noise.randbytes(count)

    def strike(self, trouble: Trouble) -> None:
        """Count a fault that strikes now."""
        self.struck[trouble.fault] += 1
        if trouble.passes and trouble.fault is not WayFault.DRIPPING and self.trouble is trouble:
            self.trouble = None

    def _welcome(self) -> None:
        self.opened += 1
        if self.trouble is not None and self.trouble.fault is WayFault.REFUSED and self.left <= 0:
            self.strike(self.trouble)
            raise ConnectionRefusedError(111, "Connection refused")


class _FaultyStream:
    """A stream that applies the faults of its connection path and counts its bytes.

    An answer is spoilt only when it arrives: by then the device has either executed the request or never will.
    """

    def __init__(self, way: FaultyWay, stream: Stream) -> None:
        self._way = way
        self._stream = stream
        self._timeout: float | None = None
        self._dripped: Trouble | None = None
        self._held = b""
        self._ended = False
        self._broken = False

    def settimeout(self, seconds: float | None, /) -> None:
        self._timeout = seconds
        self._stream.settimeout(seconds)

    def sendall(self, data: bytes, /) -> None:
        self._require_whole()
        if (gone := self._now(WayFault.REFUSED)) is not None and self._way.left <= 0:
            self._break(gone)
        trouble = self._now(WayFault.CUT_SENDING)
        if trouble is not None:
            if len(data) > self._way.left:
                sent, self._way.left = data[: self._way.left], 0
                self._stream.sendall(sent)
                self._break(trouble)
            self._way.left -= len(data)
        self._way.sent += len(data)
        self._stream.sendall(data)

    def recv(self, count: int, /) -> bytes:
        if self._ended:
            return b""
        self._require_whole()
        if (lasting := self._way.trouble) is not None and lasting.lasts:
            return self._lasting(lasting, count)
        if (trouble := self._now(WayFault.DRIPPING)) is not None:
            if self._dripped is not trouble:
                self._dripped = trouble
                self._way.strike(trouble)
            return self._come(1)
        trouble = self._now(WayFault.CUT_ANSWER, WayFault.BROKEN_ANSWER, WayFault.SILENT, WayFault.GARBAGE)
        if trouble is None:
            return self._come(count)
        if self._way.left > 0:
            # Not a byte more, so that the fault strikes exactly where it was set.
            return self._come(min(count, self._way.left))
        return self._spoilt(trouble, count)

    def close(self) -> None:
        self._stream.close()

    def _lasting(self, trouble: Trouble, count: int) -> bytes:
        """Data received during a lasting fault: first what still passes, then endless bytes or nothing."""
        if self._way.left > 0:
            return self._come(min(count, self._way.left))
        self._way.strike(trouble)
        if trouble.fault is WayFault.DRIPPING:
            if self._way.over.wait(DRIP_S):
                self._break(trouble)
            return b"="
        if self._timeout == 0:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        if self._way.over.wait(self._timeout):
            self._break(trouble)
        raise TimeoutError("timed out")

    def _come(self, count: int) -> bytes:
        """Received bytes; bytes that were held back come first."""
        came, self._held = self._held[:count], self._held[count:]
        came = came or self._stream.recv(count)
        self._way.came += len(came)
        # That fault counts sent bytes only.
        if not self._now(WayFault.CUT_SENDING):
            self._way.left -= len(came)
        return came

    def _spoilt(self, trouble: Trouble, count: int) -> bytes:
        idle = self._timeout == 0  # the caller only checks whether bytes have arrived
        if not (idle and trouble.fault in {WayFault.CUT_ANSWER, WayFault.BROKEN_ANSWER}) and not self._held:
            self._held = self._stream.recv(count)
            if not self._held:
                return b""
        if trouble.fault is WayFault.BROKEN_ANSWER:
            self._break(trouble)
        self._way.strike(trouble)
        if trouble.fault is WayFault.SILENT:
            # At once, without the time that a reader would wait, so that a campaign is fast.
            raise TimeoutError("timed out")
        self._ended = True
        self._stream.close()
        if trouble.fault is WayFault.GARBAGE:
            return trouble.text[:count] or self._way.noise(min(count, 64))
        return b""

    def _now(self, *faults: WayFault) -> Trouble | None:
        trouble = self._way.trouble
        return trouble if trouble is not None and trouble.fault in faults else None

    def _require_whole(self) -> None:
        if self._broken or self._ended:
            raise ConnectionResetError(104, "Connection reset by peer")

    def _break(self, trouble: Trouble) -> None:
        self._way.strike(trouble)
        self._broken = True
        self._stream.close()
        self._require_whole()
