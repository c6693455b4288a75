"""A conversation with a host's loop: requests go out; the thread that receives answers passes them on."""

import contextlib
import re
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol

import paramiko

from lumctl.devices.formats.complaint import first_line
from lumctl.fleet.frames import MAX_ANSWER_BYTES, Frame, FrameMark, Frames, Greeting, NonsenseError
from lumctl.fleet.loop import MOST_BYTES

# The line that ends an answer has at most 53 bytes: the token of 16, and three numbers of 15, 15 and 3 digits.
_LONGEST_END = 64
_LINE = re.compile(rb"\w+ (0|[1-9]\d{0,14}) (0|[1-9]\d{0,14}) (\d{1,3})")


class DirectCommand:
    """The output of one channel's tools.

    An answer's length is known only when its tool has ended. So a line that begins with ``token`` marks its end. The
    token is random, so no tool prints it by chance.
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
        """Take more bytes, and yield the complete answers.

        ``last`` means that only one answer is missing: its end is then searched for at the end of the bytes first.

        Raises:
            NonsenseError: an answer is too long, or the line at its end is malformed.
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
            # A view saves a copy. It is gone before the buffer is cut: Python refuses that while a view exists.
            body = bytes(memoryview(self._buffer)[:at])
            del self._buffer[: end + 1]
            self._seen = 0
            yield _frame(line, body)
        else:
            # The first bytes of the line may be there already, so the next search begins before them.
            self._seen = max(0, len(self._buffer) - len(self._end))
        if len(self._buffer) > MAX_ANSWER_BYTES:
            raise NonsenseError(f"an answer of more than {MAX_ANSWER_BYTES // 2**20} MiB")


def _frame(line: bytes, body: bytes) -> Frame:
    """The answer as the host's shell would return it: without NUL, and without the newlines at its end."""
    end = _LINE.fullmatch(line)
    if end is None:
        raise NonsenseError(f"expected the end of an answer, found: {line[:80]!r}")
    probe, request, status = map(int, end.groups())
    body = body.replace(b"\0", b"").rstrip(b"\n")
    if len(body) > MOST_BYTES:
        return Frame(FrameMark.WHOLE, probe, request, 1, b"it printed more than %d bytes" % MOST_BYTES)
    return Frame(FrameMark.WHOLE, probe, request, status, body)


_CHUNK = 1024 * 1024
CHANNEL_ERRORS = (OSError, paramiko.SSHException, EOFError)
"""What paramiko raises on a channel that is refused, or whose connection is lost."""


class ChannelService(Protocol):
    """Serves a conversation's channel: reports that something arrived, and that the conversation may send."""

    def attach(self, conversation: "Conversation") -> None:
        """Set the conversation; called before its command is started."""

    def start(self) -> None:
        """Call :meth:`Conversation.drain` from now on whenever something arrived."""

    def close(self) -> None:
        """Stop calling."""

    def call_soon(self, call: Callable[[], None]) -> None:
        """Make a call that sends; in the thread that serves the channel if other threads would compete with it."""

    def can_send(self) -> bool:
        """Whether this thread may send now. If not, the conversation is drained again when sending is possible."""

    def has_ended(self) -> bool:
        """Whether the host has closed the channel, or sends no more on it."""

    def is_lost(self) -> bool:
        """Whether the channel has ended because the connection was lost."""


class Conversation:
    """One channel to a host's loop.

    ``hear`` is called with the greeting and with each answer. ``over`` is called once at the end, with the reason. The
    thread that serves the link calls both, so they must return soon.
    """

    def __init__(
        self,
        link: ChannelService,
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
        # A lock apart from `_sending`, because the plain client's thread may wait for the host while it sends.
        self._queueing = threading.Lock()
        self._unsent = bytearray()
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether there will be no more answers."""
        return self._is_over

    @property
    def has_unsent(self) -> bool:
        """Whether the host has not taken all of the requests yet."""
        return bool(self._unsent)

    def begin(self, program: bytes) -> None:
        """Send the program of the loop within the channel's time limit. After that, no call on the channel waits."""
        self._channel.sendall(program)
        self._channel.settimeout(0.0)

    def ask(self, request: int, probes: Iterable[int], direct: Collection[int] = ()) -> None:
        """Send a request, at once or when the host accepts it. ``over`` reports a lost connection.

        The answers of the ``direct`` probes come straight from their tools, unless stray output could mix with them.
        """
        direct = () if self._mixed else direct
        words = (f"{number}>{self._direct.token}" if number in direct else str(number) for number in probes)
        with self._queueing:
            # Before it is sent: another thread may receive the answer at once.
            self._expected.update((number, request) for number in direct)
            self._unsent += f"{request} {' '.join(words)}\n".encode()
        self._send()

    def _send(self) -> None:
        """Send what the host accepts now. During a key exchange it accepts nothing, and the exchange may never end.

        The caller has other hosts to read, so this does not wait. :meth:`drain` sends the rest when the host accepts
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
        except CHANNEL_ERRORS:
            self.end("the connection was lost")

    def drain(self) -> None:
        """Read what has arrived; never wait. Called whenever the connection has nothing more to read."""
        channel = self._channel
        if self._is_over:
            self._close()
            return
        # Asked before reading: what came before the end is then read below, and not lost.
        ended = self._has_ended()
        with self._reading:
            printed, said = channel.recv_ready(), channel.recv_stderr_ready()
            if not (printed or said or self._unsent or ended):
                return
            if not self._can_send():
                # This thread is in the middle of a key exchange. Reading may send (more window, a further request), and
                # sending would wait for this thread for ever.
                return
            if self._unsent:
                self._send()
            try:
                while printed:
                    self._take_direct(data := channel.recv(_CHUNK))
                    # A short read has emptied the stream; asking again would take a lock for nothing.
                    printed = len(data) == _CHUNK and channel.recv_ready()
                while said:
                    self._take_said(data := channel.recv_stderr(_CHUNK))
                    said = len(data) == _CHUNK and channel.recv_stderr_ready()
            except NonsenseError as error:
                self.end(f"its shell sent an answer without a request: {error}")
                return
        if ended:
            if self._link.is_lost():
                self.end("the connection was lost")
                return
            complaint = first_line(self._frames.preamble.decode("utf-8", "replace"))
            self.end(f"its shell ended: {complaint}" if complaint else "its shell ended")

    def _take_direct(self, data: bytes) -> None:
        """Handle output that was not requested: it comes from a login script, or from a process left behind.

        After the greeting, tools no longer print straight to the channel: stray output could appear in an answer.
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
                # The host may also answer a direct probe on the error stream. A lost answer stays expected: its tool
                # may still print.
                self._expected.discard((said.probe, said.request))
            self._hear(said)

    def end(self, reason: str) -> None:
        """Close the channel, and report the end once."""
        if not self._is_over:
            self._is_over = True
            self._close()
            self._over(reason)

    def _close(self) -> None:
        """Close the channel. During a key exchange this is put off until the exchange has ended."""
        if self._can_send():
            with contextlib.suppress(*CHANNEL_ERRORS):
                self._channel.close()
