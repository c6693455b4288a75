"""The connections to the agents of a job, one for each host; reopened when an agent dies."""

import shlex
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lumctl.errors import LumctlError
from lumctl.site import Site
from lumctl.training.wire import BrokenLineError, Message, StreamLine

if TYPE_CHECKING:
    from lumctl.devices.ways import CommandStream

WHO_WITHIN_S = 5.0
"""How long an agent may take to come up and answer."""


class AgentLine(Protocol):
    """A line to an agent; one thread receives while others send."""

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. Raises ``OSError``."""
        ...

    def receive(self) -> Message | None:
        """The next message, ``None`` at the end. Raises ``OSError`` or ``BrokenLineError``."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


Open = Callable[[str], AgentLine]
"""Opens the line to the agent of a host, and starts that agent if none lives. Raises ``OSError`` or ``LumctlError``."""


def on_this_machine(folder: Path, *, take: bool, who: str) -> Open:
    """Open agents of all hosts as processes of this machine, as for a simulated rack; each has its own folder."""
    from lumctl.training.agent import open_agent  # noqa: PLC0415 - a rack's agents are elsewhere

    def opened(host: str) -> AgentLine:
        return open_agent(folder / host, take=take, who=who)

    return opened


def over_ssh(site: Site, agent: Iterable[str], folder: str, *, take: bool, who: str) -> Open:
    """Open agents on the hosts over SSH; ``folder`` is a path there."""
    words = [*agent, "bridge", folder, *(["--take"] if take else []), "--who", who]
    command = shlex.join(words)

    def opened(host: str) -> AgentLine:
        stream = site.fleet.stream(host, command, within_s=WHO_WITHIN_S)
        stream.settimeout(None)
        return _CommandLine(stream)

    return opened


class _CommandLine(StreamLine):
    """A line to a command on a host; the command may fail to start an agent, and then its error is raised."""

    def __init__(self, command: "CommandStream") -> None:
        super().__init__(command)
        self._command = command
        self._spoke = False

    def receive(self) -> Message | None:
        """The next message, ``None`` at the end. Raises ``OSError``, also where there never was a message."""
        message = super().receive()
        if message is None and not self._spoke:
            raise ConnectionError(f"no agent starts there: {self._command.complaint() or 'its command ends at once'}")
        self._spoke = True
        return message


class AgentLines:
    """A line to the agent of each host.

    Threads of this class call ``heard`` (host, message, why) with each message. A lost line is reported as ``None``
    with the reason; :meth:`open` opens it again.
    """

    def __init__(self, open_line: Open, who: str, heard: Callable[[str, Message | None, str], None]) -> None:
        self._open_line = open_line
        self._who = who
        self._heard = heard
        self._lines: dict[str, AgentLine] = {}
        self._closed = False
        self._lock = threading.Lock()

    def open(self, host: str) -> None:
        """Open the line to a host's agent in a thread of its own; a failure is reported as a lost line."""
        threading.Thread(target=self._serve, args=(host,), name=f"lumctl-agent-{host}", daemon=True).start()

    def ask(self, host: str, message: Mapping[str, Any]) -> bool:
        """Send a request to an agent; whether it could be sent. A broken line is reported as lost."""
        line = self._lines.get(host)
        if line is None:
            return False
        try:
            line.send(message)
        except OSError:
            line.close()
            return False
        return True

    def close(self) -> None:
        """Close all lines; the agents live on."""
        with self._lock:
            self._closed = True
            lines, self._lines = list(self._lines.values()), {}
        for line in lines:
            line.close()

    def _serve(self, host: str) -> None:
        why = "it closed the line"
        try:
            line = self._open_line(host)
        except (OSError, LumctlError) as error:
            self._lost(host, None, str(error) or type(error).__name__)
            return
        with self._lock:
            if self._closed:
                line.close()
                return
            self._lines[host] = line
        try:
            line.send({"ask": "who", "who": self._who})
            while (message := line.receive()) is not None:
                self._heard(host, message, "")
        except (OSError, BrokenLineError) as error:
            why = str(error) or type(error).__name__
        self._lost(host, line, why)

    def _lost(self, host: str, line: AgentLine | None, why: str) -> None:
        with self._lock:
            if self._closed:
                return
            if self._lines.get(host) is line:
                self._lines.pop(host, None)
        if line is not None:
            with suppress(OSError):
                line.close()
        self._heard(host, None, why)
