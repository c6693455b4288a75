"""The two framings of NETCONF over SSH (RFC 6242) from the server's side."""

import re

END = b"]]>]]>"
_CHUNK = re.compile(rb"\n#([1-9][0-9]{0,9})\n")
_CHUNKS_END = b"\n##\n"
_LONGEST_HEADER = 16
_MOST_BYTES = 4 * 1024 * 1024


class FramingError(Exception):
    """The client does not keep to the framing, or sends a message that is too large."""


class Reader:
    """Takes bytes as they come and gives whole messages. It begins with the end marker, as every session does."""

    def __init__(self) -> None:
        self.chunked = False
        self._came = bytearray()

    def feed(self, data: bytes) -> None:
        """More has come.

        Raises:
            FramingError: a message has grown too large.
        """
        self._came += data
        if len(self._came) > _MOST_BYTES:
            raise FramingError("a message is too large")

    def next(self) -> bytes | None:
        """The next whole message, if it is there.

        Raises:
            FramingError: what is there is no chunk.
        """
        return self._chunks() if self.chunked else self._marked()

    def _marked(self) -> bytes | None:
        at = self._came.find(END)
        if at < 0:
            return None
        message = bytes(self._came[:at])
        del self._came[: at + len(END)]
        return message

    def _chunks(self) -> bytes | None:
        """A message of chunks, looked for from its start each time: requests are small."""
        at, pieces = 0, bytearray()
        while True:
            if self._came.startswith(_CHUNKS_END, at):
                del self._came[: at + len(_CHUNKS_END)]
                return bytes(pieces)
            header = _CHUNK.match(self._came, at)
            if header is None:
                if len(self._came) - at >= _LONGEST_HEADER:
                    raise FramingError("what came is no chunk")
                return None
            size, start = int(header[1]), header.end()
            if size > _MOST_BYTES:
                raise FramingError("a chunk is too large")
            if len(self._came) < start + size:
                return None
            pieces += self._came[start : start + size]
            at = start + size


def framed(message: bytes, *, chunked: bool) -> bytes:
    """A message as it goes out."""
    return b"\n#%d\n%b%b" % (len(message), message, _CHUNKS_END) if chunked else message + END
