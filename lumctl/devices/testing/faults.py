"""Faults on the way to a device, below its protocol: what a network, a firewall or a dying controller does to bytes."""

import random
import threading
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from lumctl.devices.ways import Stream, Way

DRIP_S = 0.02
"""Seconds between two bytes of an endless answer."""


class WayFault(StrEnum):
    """What befalls the bytes of a connection."""

    REFUSED = "refused"
    """The device is gone when so many bytes came: who is connected is cut off by the next request, nobody gets in."""
    CUT_SENDING = "cut-sending"
    """The connection breaks in a request, when so many bytes were sent."""
    CUT_ANSWER = "cut-answer"
    """The far end closes in good order in an answer, when so many bytes came."""
    BROKEN_ANSWER = "broken-answer"
    """The connection breaks in an answer, when so many bytes came."""
    SILENT = "silent"
    """So many bytes come, and then nothing more, until the reader has waited for as long as it wanted."""
    DRIPPING = "dripping"
    """Every byte comes alone. Nothing is lost: a driver must not notice."""
    GARBAGE = "garbage"
    """What comes after so many bytes is noise, and then the end."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault and the number of bytes, over all connections, after which it strikes; only once if it ``passes``.

    With ``lasts`` it takes real time: a silent device makes its reader wait, a dripping one sends bytes endlessly.
    ``text`` replaces the noise.
    """

    fault: WayFault
    after: int = 0
    passes: bool = False
    lasts: bool = False
    text: bytes = b""


class FaultyWay:
    """A route with faults: while :attr:`trouble` is set, it affects open connections as well as new ones.

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
        """What befalls bytes from now on."""
        return self._trouble

    @trouble.setter
    def trouble(self, trouble: Trouble | None) -> None:
        self._trouble = trouble
        self.left = trouble.after if trouble else 0

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Connect, or be refused."""
        self._welcome()
        return _FaultyStream(self, self._way.tcp(default_port, timeout_s))

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Open a subsystem, or be refused."""
        self._welcome()
        return _FaultyStream(self, self._way.subsystem(name, default_port, timeout_s))

    def noise(self, count: int) -> bytes:
        """Bytes that mean nothing."""
        return self._noise.randbytes(count)

    def strike(self, trouble: Trouble) -> None:
        """The trouble is met now."""
        self.struck[trouble.fault] += 1
        if trouble.passes and trouble.fault is not WayFault.DRIPPING and self.trouble is trouble:
            self.trouble = None

    def _welcome(self) -> None:
        self.opened += 1
        if self.trouble is not None and self.trouble.fault is WayFault.REFUSED and self.left <= 0:
            self.strike(self.trouble)
            raise ConnectionRefusedError(111, "Connection refused")


class _FaultyStream:
    """A stream that counts what passes for its way.

    An answer is spoilt when it comes, and not before: what it answers was done by then, or will never be.
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
        """What is there, first what was held back."""
        came, self._held = self._held[:count], self._held[count:]
        came = came or self._stream.recv(count)
        self._way.came += len(came)
        if not self._now(WayFault.CUT_SENDING):
            self._way.left -= len(came)
        return came

    def _spoilt(self, trouble: Trouble, count: int) -> bytes:
        idle = self._timeout == 0  # it is only looked whether something came in between
        if not (idle and trouble.fault in {WayFault.CUT_ANSWER, WayFault.BROKEN_ANSWER}) and not self._held:
            self._held = self._stream.recv(count)
            if not self._held:
                return b""
        if trouble.fault is WayFault.BROKEN_ANSWER:
            self._break(trouble)
        self._way.strike(trouble)
        if trouble.fault is WayFault.SILENT:
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
