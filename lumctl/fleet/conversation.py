"""An open loop on a host: requests go out, answers are handed on by the thread that received them."""

import contextlib
import threading
from collections.abc import Callable, Iterable

import paramiko

from lumctl.devices.formats.complaint import first_line
from lumctl.fleet.frames import Frame, Frames, Greeting, NonsenseError

_CHUNK = 1024 * 1024
_LOST = (OSError, paramiko.SSHException, EOFError)


class Conversation:
    """One channel with the loop behind it.

    ``hear`` is called with the greeting and with each answer, ``over`` once when there will be no more, with the
    reason. Both are called by the connection's own thread and must return soon.
    """

    def __init__(
        self,
        transport: paramiko.Transport,
        channel: paramiko.Channel,
        hear: Callable[[Greeting | Frame], None],
        over: Callable[[str], None],
    ) -> None:
        self._transport = transport
        self._channel = channel
        self._hear = hear
        self._over = over
        self._frames = Frames()
        self._reading = threading.Lock()
        self._sending = threading.Lock()
        self._unsent = bytearray()
        self._is_over = False

    def begin(self, program: bytes) -> None:
        """Send the program of the loop. The channel's time limit holds for that; from then on nothing waits."""
        self._channel.sendall(program)
        self._channel.settimeout(0.0)

    def ask(self, request: int, probes: Iterable[int]) -> None:
        """Send a request, at once or when the host takes it. A connection that is lost is told by ``over``."""
        with self._sending:
            self._unsent += f"{request} {' '.join(map(str, probes))}\n".encode()
        self._send()

    def _send(self) -> None:
        """Send what the host takes now. While new keys are agreed on it takes nothing, and may never again.

        Whoever asks has other hosts to ask. What is left is sent by :meth:`drain`, for a host that takes more says so.
        """
        try:
            with self._sending:
                while self._unsent and self._transport.clear_to_send.is_set():
                    del self._unsent[: self._channel.send(bytes(self._unsent))]
        except TimeoutError:
            return
        except _LOST:
            self.end("the connection was lost")

    def drain(self) -> None:
        """Take in what has arrived. Never waits: called whenever the connection falls quiet."""
        channel = self._channel
        ended = channel.eof_received or channel.exit_status_ready()
        if self._is_over or not (self._unsent or ended or channel.recv_ready()):
            return
        if not self._transport.clear_to_send.is_set():
            # New keys are being agreed on by this very thread: what reading sends (more window, a further request)
            # would wait for it for ever.
            return
        if self._unsent:
            self._send()
        with self._reading:
            try:
                while channel.recv_ready():
                    for said in self._frames.feed(channel.recv(_CHUNK)):
                        self._hear(said)
            except NonsenseError as error:
                self.end(f"its shell answers what nobody asked: {error}")
                return
        if ended:
            complaint = channel.recv_stderr(_CHUNK) if channel.recv_stderr_ready() else b""
            said_last = first_line(complaint.decode("utf-8", "replace"))
            self.end(f"its shell ended: {said_last}" if said_last else "its shell ended")

    def end(self, reason: str) -> None:
        """Have it over, once."""
        if not self._is_over:
            self._is_over = True
            with contextlib.suppress(*_LOST):
                self._channel.close()
            self._over(reason)
