r"""Where a message ends (RFC 6242): at the mark ``]]>]]>``, or, once both ends said base:1.1, by counted chunks.

A chunk is ``\n#COUNT\n`` and that many bytes; ``\n##\n`` ends the message.
"""

import re

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


class Frames:
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
