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
from lumctl.tcp import reason

MARK = b"]]>]]>"
MESSAGE_LIMIT = 8 * 1024 * 1024
"""Maximum size of a received message in bytes; its XML tree may take some 20 times as much memory."""
_END = b"\n##\n"
_BEGINNING = b"<?xml"
"""The beginning of every message that we send; nothing may stand before it, not even a newline (XML 1.0, 2.8)."""
_AHEAD = b"\n#1\n<"
"""The possible beginning of every message in chunks: its first character in a chunk of its own."""
_HEADER = re.compile(rb"\n#(?:(#)|([1-9][0-9]{0,9}))\n")
_HEADER_START = re.compile(rb"\n(?:#(?:#|[1-9][0-9]{0,9})?)?")
# The header of a chunk (RFC 6242, section 4.2) has up to ten digits between a newline and a hash, and a newline.
_LONGEST_HEADER = 13
_TRIMMED = 64 * 1024
"""Consumed bytes are removed from the buffer only at this size: removing each chunk would copy the rest each time."""


class FramingError(Exception):
    """The framing of received bytes is wrong, or a message is too large; the error's message states which."""


class NetconfFrames:
    """Finds messages in the received bytes of a session and frames messages to send; at first with ``]]>]]>``."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._chunked = False
        self._buffer = bytearray()
        self._at = 0
        self._body = bytearray()
        self._ahead = 0

    def use_chunks(self) -> None:
        """Switch to chunks, in both directions, from the next message on."""
        self._chunked = True

    def encode(self, text: str) -> bytes:
        """A framed message. Its text must begin with an XML declaration and must not contain ``]]>]]>``."""
        data = text.encode()
        # The nudge has sent the beginning of this message; the rest of it, and of its chunk, follows.
        ahead, self._ahead = self._ahead, 0
        if not self._chunked:
            return data[ahead:] + MARK
        begun = b""
        if ahead:
            begun, data = _AHEAD[ahead:], data[1:]
        return b"%b\n#%d\n%b%b" % (begun, len(data), data, _END)

    def ahead(self) -> bytes:
        """A byte of the next message that may be sent before the message is known; empty if no further byte is."""
        byte = (_AHEAD if self._chunked else _BEGINNING)[self._ahead : self._ahead + 1]
        self._ahead += len(byte)
        return byte

    def feed(self, data: bytes) -> None:
        """Add received bytes, in pieces of any size."""
        self._buffer += data

    def next(self) -> bytes | None:
        """The next complete message; ``None`` if its end has not arrived.

        Raises:
            FramingError: the received bytes cannot become a message.
        """
        return self._next_chunked() if self._chunked else self._next_marked()

    def _next_marked(self) -> bytes | None:
        end = self._buffer.find(MARK, self._at)
        self._refuse_beyond(end if end >= 0 else len(self._buffer) - len(MARK) + 1)
        if end < 0:
            # Bytes are searched once only, except the last few, which may be the beginning of the mark.
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
            # By the size in the header, before the bytes are collected.
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
            raise FramingError("received data that is not framed in chunks")
        return None

    def _finished(self, end: int) -> bytes:
        if not self._body:
            raise FramingError("received a message without a chunk")
        message = bytes(self._body)
        self._body.clear()
        del self._buffer[:end]
        self._at = 0
        return message

    def _refuse_beyond(self, size: int) -> None:
        if size > self._limit:
            raise FramingError(f"received a message of more than {self._limit} bytes")


Clock = Callable[[], float]
_PIECE = 64 * 1024
_NUDGE_AFTER_S = 0.1
_REPLY = f"{{{NS}}}rpc-reply"


class SessionError(Exception):
    """The session can no longer be used. ``sent``: the whole request was sent, so the device may have acted."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class NetconfSession:
    """A session that owns its stream. After a :class:`SessionError` it must be closed."""

    def __init__(self, stream: Stream, deadline: float, clock: Clock = time.monotonic) -> None:
        """Exchange hellos before the deadline, which is a time of ``clock``.

        Raises:
            SessionError: no hello came in time, or it cannot be used.
        """
        self._stream = stream
        self._clock = clock
        self._frames = NetconfFrames()
        self._ids = itertools.count(1)
        self._nudge_after_s = math.inf
        # RFC 6241 (8.1) forbids to wait for the other side's hello first: both sides would wait for ever.
        self._send(hello(), deadline)
        try:
            self.capabilities = capabilities_of(self._message(deadline, sent=False))
        except MessageError as error:
            raise SessionError(str(error), sent=False) from None
        if BASE_1_1 in self.capabilities:
            self._frames.use_chunks()
        # If netconfd 2.13 reads our hello and the first request at once, it handles the request only when more bytes
        # arrive.
        self._nudge_after_s = _NUDGE_AFTER_S

    def call(self, operation: str, deadline: float) -> Element:
        """Send a request and wait for its reply; notifications that come first are dropped.

        Raises:
            SessionError: the request could not be sent completely, or no reply to it came in time.
        """
        message_id = next(self._ids)
        self._send(rpc(message_id, operation), deadline)
        while is_notification(reply := self._message(deadline, sent=True)):
            pass
        # Only the first request can be left unhandled, and it has been answered.
        self._nudge_after_s = math.inf
        if reply.tag != _REPLY:
            raise SessionError("received something other than a reply", sent=True)
        if reply.get("message-id") != str(message_id):
            raise SessionError("received the reply to another request", sent=True)
        return reply

    def alive(self) -> bool:
        """Whether the connection is still open, as far as can be known without a request."""
        try:
            self._stream.settimeout(0.0)
            piece = self._stream.recv(_PIECE)
        except (BlockingIOError, TimeoutError):
            return True
        except OSError:
            return False
        # Probably a notification; these bytes are parsed before the next reply.
        self._frames.feed(piece)
        return bool(piece)

    def close(self) -> None:
        """Close the stream; the device then ends the session, its locks, and a commit that only it could confirm."""
        self._stream.close()

    def _send(self, text: str, deadline: float) -> None:
        # A device never acts on an incomplete message, so a failure here means: not sent.
        try:
            self._stream.settimeout(self._left(deadline))
            self._stream.sendall(self._frames.encode(text))
        except OSError as error:
            raise SessionError(reason(error), sent=False) from None

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
            raise SessionError(reason(error), sent=sent) from None

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
