r"""One NETCONF session: the framing of messages (RFC 6242), the hellos, then one request and its reply at a time.

Base 1.0 ends each message with ``]]>]]>``. Base 1.1 sends chunks: ``\n#COUNT\n`` and that many bytes, and ``\n##\n``
at the end of the message. Every request has a deadline.
"""

import itertools
import math
import re
import time
from collections.abc import Callable
from xml.etree.ElementTree import Element

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

MARK = b"]]>]]>"
MESSAGE_LIMIT = 8 * 1024 * 1024
"""Bytes of the largest message that is read; a tree of the worst such message takes some 20 times as much memory."""
_END = b"\n##\n"
_AHEAD = b"\n#1\n<"
"""How every message may begin: its first character, as a chunk of its own."""
_HEADER = re.compile(rb"\n#(?:(#)|([1-9][0-9]{0,9}))\n")
_HEADER_START = re.compile(rb"\n(?:#(?:#|[1-9][0-9]{0,9})?)?")
_LONGEST_HEADER = 13
_TRIMMED = 64 * 1024
"""A consumed head of this size is cut off the buffer; cutting at each chunk would copy the rest each time."""


class FramingError(Exception):
    """What came is framed otherwise than agreed, or is too large. The message says which."""


class NetconfFrames:
    """Finds messages in the bytes of one session, and frames those to send. It begins with the mark."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._chunked = False
        self._buffer = bytearray()
        self._at = 0
        self._body = bytearray()
        self._ahead = 0

    def use_chunks(self) -> None:
        """Go over to chunks, in both directions, from the next message on."""
        self._chunked = True

    def encode(self, text: str) -> bytes:
        """A message as it is sent. It must not hold the mark."""
        data = text.encode()
        if not self._chunked:
            return data + MARK
        begun = b""
        if self._ahead:
            begun, data = _AHEAD[self._ahead :], data[1:]
            self._ahead = 0
        return b"%b\n#%d\n%b%b" % (begun, len(data), data, _END)

    def ahead(self) -> bytes:
        """The next byte of the message that will be sent next, to be sent now; none where no more is known of it."""
        if not self._chunked:
            return b"\n"
        byte = _AHEAD[self._ahead : self._ahead + 1]
        self._ahead += len(byte)
        return byte

    def feed(self, data: bytes) -> None:
        """Take what arrived, in pieces of any size."""
        self._buffer += data

    def next(self) -> bytes | None:
        """The next whole message; ``None`` if its end has not arrived.

        Raises:
            FramingError: no message can come of this any more.
        """
        return self._next_chunked() if self._chunked else self._next_marked()

    def _next_marked(self) -> bytes | None:
        end = self._buffer.find(MARK, self._at)
        self._refuse_beyond(end if end >= 0 else len(self._buffer) - len(MARK) + 1)
        if end < 0:
            # What was searched is not searched again; the mark itself may be half there.
            self._at = max(0, len(self._buffer) - len(MARK) + 1)
            return None
        message = bytes(self._buffer[:end])
        del self._buffer[: end + len(MARK)]
        self._at = 0
        return message

    def _next_chunked(self) -> bytes | None:
        while (header := _HEADER.match(self._buffer, self._at)) is not None:
            if header[1]:
                return self._finished(header.end())
            size = int(header[2])
            self._refuse_beyond(len(self._body) + size)
            end = header.end() + size
            if len(self._buffer) < end:
                return None
            self._body += self._buffer[header.end() : end]
            self._at = end
            if end > _TRIMMED:
                del self._buffer[:end]
                self._at = 0
        rest = bytes(self._buffer[self._at : self._at + _LONGEST_HEADER])
        if rest and not _HEADER_START.fullmatch(rest):
            raise FramingError("what came is not framed in chunks")
        return None

    def _finished(self, end: int) -> bytes:
        if not self._body:
            raise FramingError("a message without a chunk came")
        message = bytes(self._body)
        self._body.clear()
        del self._buffer[:end]
        self._at = 0
        return message

    def _refuse_beyond(self, size: int) -> None:
        if size > self._limit:
            raise FramingError(f"a message of more than {self._limit} bytes came")


Clock = Callable[[], float]
_PIECE = 64 * 1024
_NUDGE_AFTER_S = 0.1
_REPLY = f"{{{NS}}}rpc-reply"


class SessionError(Exception):
    """The session is of no use any more. ``sent``: the whole request had left, so that the device may have acted."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class NetconfSession:
    """A session over a stream that is its own. After a :class:`SessionError` it must be closed."""

    def __init__(self, stream: Stream, deadline: float, clock: Clock = time.monotonic) -> None:
        """Exchange hellos, until a moment of the clock.

        Raises:
            SessionError: no hello came in time, or one that is of no use.
        """
        self._stream = stream
        self._clock = clock
        self._frames = NetconfFrames()
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
