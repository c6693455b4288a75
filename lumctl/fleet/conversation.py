"""An open loop on a host: requests go out, answers are handed on by the thread that received them."""

import contextlib
import re
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import paramiko

from lumctl.devices.formats.complaint import first_line
from lumctl.fleet.frames import MAX_ANSWER_BYTES, Frame, FrameMark, Frames, Greeting, NonsenseError
from lumctl.fleet.loop import MOST_BYTES

if TYPE_CHECKING:
    from lumctl.fleet.ssh.connection import ChannelService

_LONGEST_END = 64
_LINE = re.compile(rb"\w+ (0|[1-9]\d{0,14}) (0|[1-9]\d{0,14}) (\d{1,3})")


class DirectCommand:
    """The output of one channel's tools.

    An answer's length is known only when its tool has ended, so its end is a line that begins with ``token``: random,
    and unknown to anything that a tool may print.
    """

    def __init__(self) -> None:
        self.token = secrets.token_hex(8)
        self._end = f"\n{self.token} ".encode()
        self._buffer = bytearray()
        self._seen = 0

    def drop(self) -> bool:
        """Drop bytes after the last expected answer; return whether there were any."""
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
    """The answer as the host's shell would return it: without NUL, and without the newlines at its end."""
    end = _LINE.fullmatch(line)
    if end is None:
        raise NonsenseError(f"not the end of an answer: {line[:80]!r}")
    probe, request, status = map(int, end.groups())
    body = body.replace(b"\0", b"").rstrip(b"\n")
    if len(body) > MOST_BYTES:
        return Frame(FrameMark.WHOLE, probe, request, 1, b"it printed more than %d bytes" % MOST_BYTES)
    return Frame(FrameMark.WHOLE, probe, request, status, body)


_CHUNK = 1024 * 1024
_LOST = (OSError, paramiko.SSHException, EOFError)


class Conversation:
    """One channel with the loop behind it.

    ``hear`` is called with the greeting and with each answer, ``over`` once at the end, with the reason. The thread
    that serves the link calls both; they must return soon.
    """

    def __init__(
        self,
        link: "ChannelService",
        channel: paramiko.Channel,
        hear: Callable[[Greeting | Frame], None],
        over: Callable[[str], None],
    ) -> None:
        self.soon = link.call_soon
        self._link = link
        self._can_send = link.can_send
        self._has_ended = link.has_ended
        self._channel = channel
        self._hear = hear
        self._over = over
        self._frames = Frames()
        self._direct = DirectCommand()
        self._expected: set[tuple[int, int]] = set()
        self._greeted = self._mixed = False
        self._reading = threading.Lock()
        self._sending = threading.Lock()
        # Apart from it, for the plain client's thread may wait for the host while it sends.
        self._queueing = threading.Lock()
        self._unsent = bytearray()
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether there will be no more answers."""
        return self._is_over

    @property
    def has_unsent(self) -> bool:
        """Whether a part of a request is left that the host has not taken yet."""
        return bool(self._unsent)

    def begin(self, program: bytes) -> None:
        """Send the program of the loop. The channel's time limit holds for that; from then on nothing waits."""
        self._channel.sendall(program)
        self._channel.settimeout(0.0)

    def ask(self, request: int, probes: Iterable[int], direct: Collection[int] = ()) -> None:
        """Send a request, at once or when the host accepts it. ``over`` reports a lost connection.

        The answers of the ``direct`` probes come straight from their tools, if the host supports it.
        """
        direct = () if self._mixed else direct
        words = (f"{number}>{self._direct.token}" if number in direct else str(number) for number in probes)
        with self._queueing:
            self._expected.update((number, request) for number in direct)
            self._unsent += f"{request} {' '.join(words)}\n".encode()
        self._send()

    def _send(self) -> None:
        """Send what the host accepts now. During a key exchange it accepts nothing, and may never again.

        The caller has other hosts to read, so it does not wait. :meth:`drain` sends the rest when the host accepts
        more.
        """
        if not self._can_send():
            return
        try:
            with self._sending:
                while self._unsent and self._can_send():
                    sent = self._channel.send(bytes(self._unsent))
                    with self._queueing:
                        del self._unsent[:sent]
        except TimeoutError:
            return
        except _LOST:
            self.end("the connection was lost")

    def drain(self) -> None:
        """Take in what has arrived. Never waits: called whenever the connection falls quiet."""
        channel = self._channel
        if self._is_over:
            self._close()
            return
        ended = self._has_ended()
        with self._reading:
            printed, said = channel.recv_ready(), channel.recv_stderr_ready()
            if not (printed or said or self._unsent or ended):
                return
            if not self._can_send():
                # New keys are being agreed on by this very thread: what reading sends (more window, a further request)
                # would wait for it for ever.
                return
            if self._unsent:
                self._send()
            try:
                while printed:
                    self._take_direct(data := channel.recv(_CHUNK))
                    printed = len(data) == _CHUNK and channel.recv_ready()
                while said:
                    self._take_said(data := channel.recv_stderr(_CHUNK))
                    said = len(data) == _CHUNK and channel.recv_stderr_ready()
            except NonsenseError as error:
                self.end(f"its shell answers what nobody asked: {error}")
                return
        if ended:
            if self._link.is_lost():
                self.end("the connection was lost")
                return
            complaint = first_line(self._frames.preamble.decode("utf-8", "replace"))
            self.end(f"its shell ended: {complaint}" if complaint else "its shell ended")

    def _take_direct(self, data: bytes) -> None:
        """Handle output that was not requested: it comes from a login script, or from a process that it or a tool left.

        After the greeting the channel is given up: later output could appear inside an answer.
        """
        if not self._expected:
            self._mixed |= self._greeted
            return
        for said in self._direct.feed(data, last=len(self._expected) == 1):
            self._expected.discard((said.probe, said.request))
            if not self._expected:
                self._mixed |= self._direct.drop()
            self._hear(said)

    def _take_said(self, data: bytes) -> None:
        for said in self._frames.feed(data):
            if isinstance(said, Greeting):
                self._greeted = True
            else:
                # The host may answer so as well. What is lost stays expected: its tool may still print.
                self._expected.discard((said.probe, said.request))
            self._hear(said)

    def end(self, reason: str) -> None:
        """Report the end once."""
        if not self._is_over:
            self._is_over = True
            self._close()
            self._over(reason)

    def _close(self) -> None:
        """Close the channel. During a key exchange the host is informed only when that has ended."""
        if self._can_send():
            with contextlib.suppress(*_LOST):
                self._channel.close()
