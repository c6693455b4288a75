"""What tools print straight into a channel, cut into answers as it arrives."""

import re
import secrets
from collections.abc import Iterator

from lumctl.fleet.frames import MAX_ANSWER_BYTES, Frame, Mark, NonsenseError
from lumctl.fleet.loop import MOST_BYTES

_LONGEST_END = 64
_LINE = re.compile(rb"\w+ (0|[1-9]\d{0,14}) (0|[1-9]\d{0,14}) (\d{1,3})")


class Direct:
    """The output of one channel's tools.

    An answer's length is known only when its tool has ended, so its end is a line that begins with ``token``: random,
    and known to nobody whose words a tool may print.
    """

    def __init__(self) -> None:
        self.token = secrets.token_hex(8)
        self._end = f"\n{self.token} ".encode()
        self._buffer = bytearray()
        self._seen = 0

    def drop(self) -> bool:
        """Forget what came behind the last answer that somebody waits for; whether there was something."""
        was_there = bool(self._buffer)
        self._buffer.clear()
        self._seen = 0
        return was_there

    def feed(self, data: bytes, *, last: bool) -> Iterator[Frame]:
        """Take more bytes; ``last``: only one answer is missing, so that its end is looked for at the end first.

        Raises:
            NonsenseError: a tool prints without end.
        """
        self._buffer += data
        if last and (at := self._buffer.rfind(self._end, max(self._seen, len(self._buffer) - _LONGEST_END))) >= 0:
            self._seen = at
        while (at := self._buffer.find(self._end, self._seen)) >= 0:
            self._seen = at
            end = self._buffer.find(b"\n", at + 1)
            if end < 0:
                break
            line = bytes(self._buffer[at + 1 : end])
            body = bytes(memoryview(self._buffer)[:at])
            del self._buffer[: end + 1]
            self._seen = 0
            yield _frame(line, body)
        else:
            self._seen = max(0, len(self._buffer) - len(self._end))
        if len(self._buffer) > MAX_ANSWER_BYTES:
            raise NonsenseError(f"an answer of more than {MAX_ANSWER_BYTES // 2**20} MiB")


def _frame(line: bytes, body: bytes) -> Frame:
    """The answer as the host's shell would have told it: it holds no NUL, and takes off the ends of the last lines."""
    end = _LINE.fullmatch(line)
    if end is None:
        raise NonsenseError(f"not the end of an answer: {line[:80]!r}")
    probe, request, status = map(int, end.groups())
    body = body.replace(b"\0", b"").rstrip(b"\n")
    if len(body) > MOST_BYTES:
        return Frame(Mark.WHOLE, probe, request, 1, b"it printed more than %d bytes" % MOST_BYTES)
    return Frame(Mark.WHOLE, probe, request, status, body)
