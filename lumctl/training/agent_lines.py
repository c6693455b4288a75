"""The coordinator's lines to the agents of all hosts: one thread receives, and no caller waits for a slow host."""

import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from lumctl.errors import LumctlError
from lumctl.training.protocol import MOST_BYTES, BrokenLineError, Message, StreamLine, encoded
from lumctl.workers import Workers

if TYPE_CHECKING:
    from lumctl.devices.ways import CommandStream

Open = Callable[[str], StreamLine]
"""Opens the line to the agent of a host, and starts an agent if none runs. Raises ``OSError`` or ``LumctlError``."""
MOST_UNSENT_BYTES = 4 * MOST_BYTES
"""The most bytes that wait for a host; with more, its line counts as lost."""


class CommandLine(StreamLine):
    """A line to a command on a host."""

    def __init__(self, command: "CommandStream") -> None:
        super().__init__(command)
        self._command = command

    def fileno(self) -> int:
        """A descriptor that is readable when messages have arrived."""
        return self._command.fileno()

    def _receive_now(self, most: int) -> bytes:
        return self._command.recv_now(most)

    def why_ended(self) -> str:
        """Why the line has ended; if the command has started no agent, its error. Raises ``OSError``."""
        if self.spoke:
            return super().why_ended()
        return f"no agent starts there: {self._command.complaint() or 'its command ends at once'}"


@dataclass(eq=False)
class _HostLine:
    """An open line, and the bytes that its host has not taken yet."""

    host: str
    line: StreamLine
    unsent: bytearray = field(default_factory=bytearray)
    is_sending: bool = False
    """Whether a thread waits until the host takes the bytes."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class AgentLines:
    """A line to the agent of each host.

    Threads of this class call ``heard`` (host, message, why) with each message. For a lost line, the message is
    ``None`` and ``why`` is the reason; :meth:`open` opens the line again.
    """

    def __init__(self, open_line: Open, who: str, heard: Callable[[str, Message | None, str], None]) -> None:
        self._open_line = open_line
        self._who = who
        self._heard = heard
        self._lines: dict[str, _HostLine] = {}
        self._closed = False
        self._lock = threading.Lock()
        # They open lines, and wait for slow hosts; most of the time there are none.
        self._workers = Workers("lumctl-agent")
        self._selector = selectors.DefaultSelector()
        self._opened: SimpleQueue[_HostLine] = SimpleQueue()
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)  # noqa: FBT003 - the socket's own vocabulary
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._receive, name="lumctl-agents", daemon=True)
        self._thread.start()

    def open(self, host: str) -> None:
        """Start to open the line to a host's agent; a failure is reported as a lost line."""
        with self._lock:
            if not self._closed:
                self._workers.submit(lambda: self._serve(host))

    def ask(self, host: str, message: Mapping[str, object]) -> bool:
        """Send a request to an agent, without waiting for it; return whether its line is open.

        A line that breaks is reported as lost.
        """
        to = self._lines.get(host)
        if to is None:
            return False
        try:
            with to.lock:
                to.unsent += encoded(message)
                if not to.is_sending:
                    del to.unsent[: to.line.send_now(to.unsent)]
                    to.is_sending = bool(to.unsent)
                    if to.is_sending:
                        self._workers.submit(lambda: self._send(to))
                elif len(to.unsent) > MOST_UNSENT_BYTES:
                    raise TimeoutError("its host does not read")
        except (OSError, RuntimeError):  # a closed set of workers raises the latter
            to.line.hang_up()
            return False
        return True

    def close(self) -> None:
        """Close all lines; the agents continue to run."""
        with self._lock:
            self._closed = True
            self._lines = {}
        self._wake()
        self._thread.join()
        self._workers.close()

    def _serve(self, host: str) -> None:
        try:
            line = self._open_line(host)
        except (OSError, LumctlError) as error:
            self._report_lost(host, None, str(error) or type(error).__name__)
            return
        opened = _HostLine(host, line)
        try:
            line.send({"ask": "who", "who": self._who})
        except OSError as error:
            line.close()
            self._report_lost(host, None, str(error) or type(error).__name__)
            return
        with self._lock:
            if self._closed:
                line.close()
                return
            self._lines[host] = opened
            self._opened.put(opened)
        self._wake()

    def _send(self, to: _HostLine) -> None:
        """Send what waits for a host, as fast as the host takes it."""
        try:
            while True:
                with to.lock:
                    if not to.unsent:
                        to.is_sending = False
                        return
                    unsent = bytes(to.unsent)
                    to.unsent.clear()
                to.line.send_bytes(unsent)
        except OSError:
            to.line.hang_up()  # it stays `is_sending`, so nothing more is sent

    def _wake(self) -> None:
        with suppress(OSError):
            self._waker.send(b".")

    def _receive(self) -> None:
        """Receive messages until :meth:`close`."""
        while not self._closed:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._woken.recv(4096)
                    self._register_opened()
                else:
                    self._take(key.data)
        self._register_opened()
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                key.data.line.close()
        self._selector.close()
        self._waker.close()
        self._woken.close()

    def _register_opened(self) -> None:
        with suppress(Empty):
            while True:
                opened = self._opened.get_nowait()
                self._selector.register(opened.line, selectors.EVENT_READ, opened)

    def _take(self, of: _HostLine) -> None:
        """Take what has arrived on a line."""
        try:
            goes_on = of.line.read()
            while of.line.pending:
                self._heard(of.host, of.line.receive(), "")
            if goes_on:
                return
            why = ""
        except (OSError, BrokenLineError) as error:
            why = str(error) or type(error).__name__
        self._selector.unregister(of.line)
        with self._lock:
            if not self._closed:
                self._workers.submit(lambda: self._ended(of, why))  # to ask a command for its error may take a while

    def _ended(self, of: _HostLine, why: str) -> None:
        with suppress(OSError):
            why = why or of.line.why_ended()
        self._report_lost(of.host, of, why or "the line is broken")
        with suppress(OSError):
            of.line.close()

    def _report_lost(self, host: str, line: _HostLine | None, why: str) -> None:
        with self._lock:
            if self._closed:
                return
            # The line may have been opened again already.
            if self._lines.get(host) is line:
                self._lines.pop(host, None)
        self._heard(host, None, why)
