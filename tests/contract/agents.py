"""Real agents for tests and measurements: a coordinator that waits for what it is told, and a small worker."""

import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from lumctl.training.agent import open_agent
from lumctl.training.agent.folder import Folder, holder
from lumctl.training.protocol import MessageLine

HEARTBEAT_S = 1.0
"""Long enough for a machine that is busy."""
WORKER = Path(__file__).with_name("agent_worker.py")


class Coordinator:
    """A coordinator's end of a line. ``heard`` is all that it was told."""

    def __init__(self, line: MessageLine) -> None:
        self.line = line
        self.heard: list[dict] = []

    def ask(self, word: str, **more) -> None:
        self.line.send({"ask": word, **more})

    def start(self, worker: str, *argv: str, **more) -> None:
        self.ask("start", worker=worker, accelerator=worker.partition("#")[0], argv=list(argv), **more)

    def start_worker(self, worker: str, **more) -> None:
        """Start the small worker of these tests and wait until it is ready; afterwards it beats."""
        self.start(worker, sys.executable, "-I", "-S", str(WORKER), heartbeat_s=HEARTBEAT_S, **more)
        self.until("said", worker=worker, say="ready")

    def do(self, worker: str, **message) -> None:
        self.ask("tell", worker=worker, message=message)

    def until(self, word: str, *, say: str | None = None, **wanted) -> dict:
        """Wait for a message of this kind and with these values."""
        while (message := self.line.receive()) is not None:
            self.heard.append(message)
            fits = message["tell"] == word and all(message.get(key) == value for key, value in wanted.items())
            if fits and (say is None or message["message"]["say"] == say):
                return message
        raise AssertionError(f"hung up before {word}, {say}, {wanted}; heard {self.heard[-5:]}")

    def told(self, word: str) -> list[dict]:
        """What it has heard of one kind so far."""
        return [message for message in self.heard if message["tell"] == word]

    def worker(self, name: str) -> dict:
        """What the agent says of one worker now."""
        self.ask("list")
        return listed(self.until("list"), name)

    def hung_up(self) -> bool:
        """Wait for the other end to hang up; what it still says is heard."""
        with suppress(ConnectionResetError):
            while (message := self.line.receive()) is not None:
                self.heard.append(message)
        return True


def listed(told: dict, name: str) -> dict:
    return next(each for each in told["workers"] if each["worker"] == name)


class Agents:
    """Agents in folders of their own with short paths; all that they have started ends with the test."""

    def __init__(self) -> None:
        self._folders: list[Path] = []
        self._open: list[MessageLine] = []

    def folder(self) -> Path:
        self._folders.append(Path(tempfile.mkdtemp(prefix="agent-")))
        return self._folders[-1]

    def coordinator(self, folder: Path, **how) -> Coordinator:
        """A line to the agent of a folder; its first message is still to be read."""
        return self.line(open_agent(folder, **how))

    def line(self, line: MessageLine) -> Coordinator:
        self._open.append(line)
        return Coordinator(line)

    def raw(self, folder: Path) -> socket.socket:
        """A connection that says nothing by itself."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(Folder(folder).socket))
        return connection

    def pid(self, folder: Path) -> int:
        found = holder(Folder(folder))
        assert found is not None
        return found

    def close(self) -> None:
        for line in self._open:
            line.close()
        for folder in self._folders:
            records = Folder(folder).records
            pids = [each["pid"] for each in json.loads(records.read_text())["workers"]] if records.exists() else []
            for pid in [holder(Folder(folder)), *pids]:
                if pid is not None and str(folder) in _environment_and_command(pid):
                    end(pid)
            shutil.rmtree(folder)


def end(pid: int, how: int = signal.SIGKILL) -> None:
    """End a process and wait until it has ended."""
    with suppress(ProcessLookupError):
        watched = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(watched, how)
            assert select.select([watched], [], [], 10)[0]
        finally:
            os.close(watched)


def _environment_and_command(pid: int) -> str:
    with suppress(OSError):
        place = Path(f"/proc/{pid}")
        return (place / "environ").read_text() + (place / "cmdline").read_text()
    return ""
