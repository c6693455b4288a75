"""The Unix socket at which a coordinator answers status, pause, resume and stop requests."""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lumctl.sockets import listening
from lumctl.training.coordinator.requests import LEFT
from lumctl.training.coordinator.state import Reply
from lumctl.training.wire import BrokenLineError, Message, MessageLine

Ask = Callable[[Message, Reply], None]
WAITING = 16
"""How many connections may wait to be accepted."""


class ControlSocket:
    """Calls ``ask`` with each request and the function that sends its answer."""

    def __init__(self, path: Path, ask: Ask) -> None:
        self._path = path
        self._ask = ask
        self._unanswered: Counter[MessageLine] = Counter()
        """The number of answers that each connection waits for."""
        self._closed = False
        self._lock = threading.Lock()
        self._listening = listening(path, WAITING, hint="set $XDG_RUNTIME_DIR to a private folder with a short path")
        threading.Thread(target=self._accept, name="lumctl-job-control", daemon=True).start()

    def close(self) -> None:
        """Stop answering: open requests are told that this coordinator has ended, and all connections are closed."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            self._closed = True
            unanswered, self._unanswered = self._unanswered, Counter()
        for line, answers in unanswered.items():
            for _ in range(answers):
                with suppress(OSError):
                    line.send(LEFT)
            line.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            line = MessageLine(connection)
            with self._lock:
                if self._closed:
                    line.close()
                    return
                self._unanswered[line] = 0
            threading.Thread(target=self._serve, args=(line,), name="lumctl-job-ask", daemon=True).start()

    def _serve(self, line: MessageLine) -> None:
        def answer(found: Mapping[str, Any]) -> None:
            with self._lock:
                if self._unanswered[line] == 0:  # it was told that nobody is here
                    return
                self._unanswered[line] -= 1
            with suppress(OSError):  # whoever asked has gone
                line.send(found)

        with suppress(OSError, BrokenLineError):
            while (request := line.receive()) is not None:
                with self._lock:
                    if self._closed:
                        break
                    self._unanswered[line] += 1
                self._ask(request, answer)
        with self._lock:
            self._unanswered.pop(line, None)
        line.close()
