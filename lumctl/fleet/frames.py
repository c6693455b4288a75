"""Split the output of a host's loop into answers as it arrives."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lumctl.fleet.loop import GREETING

MAX_ANSWER_BYTES = 32 * 1024 * 1024
_MAX_LINE_BYTES = 64 * 1024
_MAX_PREAMBLE_BYTES = 1024 * 1024
"""A limit, because a login script that prints without end never lets the loop begin."""
_KEPT_PREAMBLE_BYTES = 1024
_NEWLINE = ord("\n")


class NonsenseError(Exception):
    """The input does not follow the loop's protocol; the message shows the received text."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """The loop is ready. ``boot_id`` changes with each start of the host; ``uptime_s`` counts from that start."""

    boot_id: str | None
    uptime_s: float | None


class FrameMark(StrEnum):
    """How an answer relates to the previous one."""

    WHOLE = "="
    MORE = "+"
    SAME = "~"
    LOST = "!"
    """There is no answer: the request that ran in a lane (``probe`` is the lane's index) ended the lane's shell."""


class Frame(NamedTuple):
    """One answer: its probe, its request, the exit status, and what was printed."""

    mark: FrameMark
    probe: int
    request: int
    status: int
    body: bytes = b""


class Frames:
    """Takes bytes as they arrive and returns complete frames.

    Any text before the greeting is skipped: login scripts may print.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        # Until more bytes than this are there, no answer can be complete, so the buffer is not searched.
        self._wanted = 0
        self._greeted = False
        self._skipped = 0
        self._preamble = bytearray()

    @property
    def preamble(self) -> bytes:
        """The beginning of the text that came instead of a greeting; empty once a greeting has come."""
        return b"" if self._greeted else bytes(self._preamble + self._buffer[:_KEPT_PREAMBLE_BYTES])

    def feed(self, data: bytes) -> Iterator[Greeting | Frame]:
        """Process more bytes.

        Raises:
            NonsenseError: the bytes cannot be an answer.
        """
        self._buffer += data
        while len(self._buffer) > self._wanted:
            end = self._buffer.find(b"\n", 0, _MAX_LINE_BYTES)
            if end < 0:
                if len(self._buffer) >= _MAX_LINE_BYTES:
                    raise NonsenseError("a line without an end")
                return
            line = bytes(self._buffer[:end])
            if not self._greeted:
                del self._buffer[: end + 1]
                if line.startswith(GREETING):
                    self._greeted = True
                    yield _greeting(line)
                    continue
                self._skip(line)
                continue
            mark, probe, request, status, length = _header(line)
            if length is None:
                del self._buffer[: end + 1]
                yield Frame(mark, probe, request, status)
                continue
            whole = end + 1 + length + 1
            if len(self._buffer) < whole:
                self._wanted = whole - 1
                return
            self._wanted = 0
            # A view saves a copy. It is gone before the buffer is cut: Python refuses that while a view exists.
            body = bytes(memoryview(self._buffer)[end + 1 : whole - 1])
            if self._buffer[whole - 1] != _NEWLINE:
                raise NonsenseError(f"an answer that exceeds its stated length: {line[:80]!r}")
            del self._buffer[:whole]
            yield Frame(mark, probe, request, status, body)

    def _skip(self, line: bytes) -> None:
        self._skipped += len(line) + 1
        if len(self._preamble) < _KEPT_PREAMBLE_BYTES:
            self._preamble += line[:_KEPT_PREAMBLE_BYTES] + b"\n"
        if self._skipped > _MAX_PREAMBLE_BYTES:
            raise NonsenseError("much output, but no greeting")


def _greeting(line: bytes) -> Greeting:
    words = line[len(GREETING) :].decode("ascii", "replace").split()
    boot_id, uptime = (*words, "-", "-")[:2]
    uptime_s = float(uptime) if _SECONDS.fullmatch(uptime) else None
    return Greeting(None if boot_id == "-" else boot_id, uptime_s)


def _header(line: bytes) -> tuple[FrameMark, int, int, int, int | None]:
    header = _HEADER.fullmatch(line)
    # Only the marks ~ and ! have no length, because no output follows them.
    if header is None or (header[5] is None) != (header[1] in b"~!"):
        raise NonsenseError(f"expected an answer, found: {line[:80]!r}")
    length = None if header[5] is None else int(header[5])
    if length is not None and length > MAX_ANSWER_BYTES:
        raise NonsenseError(f"an answer of more than {MAX_ANSWER_BYTES // 2**20} MiB")
    return _MARKS[header[1]], int(header[2]), int(header[3]), int(header[4]), length


_SECONDS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_NUMBER = rb" (0|[1-9][0-9]{0,14})"
_HEADER = re.compile(rb"([=+~!])" + 3 * _NUMBER + b"(?:" + _NUMBER + b")?")
_MARKS = {mark.value.encode(): mark for mark in FrameMark}
