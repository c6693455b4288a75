"""One NETCONF session: the exchange of hellos, then one request and its reply at a time, each within a deadline."""

import itertools
import math
import time
from collections.abc import Callable
from xml.etree.ElementTree import Element

from lumctl.devices.netconf.framing import Frames, FramingError
from lumctl.devices.netconf.messages import (
    BASE_1_1,
    NS,
    MessageError,
    capabilities_of,
    hello,
    is_notification,
    parse,
    rpc,
)
from lumctl.devices.ways import Stream

Clock = Callable[[], float]
_PIECE = 64 * 1024
_NUDGE_AFTER_S = 0.1
_REPLY = f"{{{NS}}}rpc-reply"


class SessionError(Exception):
    """The session is of no use any more. ``sent``: the whole request had left, so that the device may have acted."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class Session:
    """A session over a stream that is its own. After a :class:`SessionError` it must be closed."""

    def __init__(self, stream: Stream, deadline: float, clock: Clock = time.monotonic) -> None:
        """Exchange hellos, until a moment of the clock.

        Raises:
            SessionError: no hello came in time, or one that is of no use.
        """
        self._stream = stream
        self._clock = clock
        self._frames = Frames()
        self._ids = itertools.count(1)
        self._nudge_after_s = math.inf
        self._send(hello(), deadline)
        try:
            self.capabilities = capabilities_of(self._message(deadline, sent=False))
        except MessageError as error:
            raise SessionError(str(error), sent=False) from None
        if BASE_1_1 in self.capabilities:
            self._frames.use_chunks()
        # netconfd 2.13, if it reads our hello and the first request at once, looks at the request when more comes.
        self._nudge_after_s = _NUDGE_AFTER_S

    def call(self, operation: str, deadline: float) -> Element:
        """Send a request and wait for its reply; notifications that come before it are dropped.

        Raises:
            SessionError: it could not be sent whole, or no reply to it came in time.
        """
        message_id = next(self._ids)
        self._send(rpc(message_id, operation), deadline)
        while is_notification(reply := self._message(deadline, sent=True)):
            pass
        self._nudge_after_s = math.inf
        if reply.tag != _REPLY:
            raise SessionError("something else than a reply came", sent=True)
        if reply.get("message-id") != str(message_id):
            raise SessionError("the reply to another request came", sent=True)
        return reply

    def alive(self) -> bool:
        """Whether the device has not hung up, as far as can be told without asking it."""
        try:
            self._stream.settimeout(0.0)
            piece = self._stream.recv(_PIECE)
        except (BlockingIOError, TimeoutError):
            return True
        except OSError:
            return False
        # A notification; whatever it is, it is looked at before the next reply.
        self._frames.feed(piece)
        return bool(piece)

    def close(self) -> None:
        """Hang up; for the device that is the end of the session, of its locks, and of what only it could confirm."""
        self._stream.close()

    def _send(self, text: str, deadline: float) -> None:
        # A message of which the end is missing is never acted on, so that a failure here means: not sent.
        try:
            self._stream.settimeout(self._left(deadline))
            self._stream.sendall(self._frames.encode(text))
        except OSError as error:
            raise SessionError(_reason(error), sent=False) from None

    def _message(self, deadline: float, *, sent: bool) -> Element:
        try:
            while (message := self._frames.next()) is None:
                piece = self._piece(deadline)
                if not piece:
                    raise SessionError("the device closed the session", sent=sent)
                self._frames.feed(piece)
            return parse(message)
        except (FramingError, MessageError) as error:
            raise SessionError(str(error), sent=sent) from None
        except OSError as error:
            raise SessionError(_reason(error), sent=sent) from None

    def _piece(self, deadline: float) -> bytes:
        while True:
            left_s = self._left(deadline)
            self._stream.settimeout(min(left_s, self._nudge_after_s))
            try:
                return self._stream.recv(_PIECE)
            except TimeoutError:
                if self._nudge_after_s >= left_s:
                    raise
            self._nudge_after_s *= 2
            self._stream.settimeout(self._left(deadline))
            self._stream.sendall(self._frames.ahead())

    def _left(self, deadline: float) -> float:
        left = deadline - self._clock()
        if left <= 0:
            raise TimeoutError
        return left


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror or str(error) or type(error).__name__).lower()
