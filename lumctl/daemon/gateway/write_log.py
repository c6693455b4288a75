"""The log of a gateway: one JSON line for each write sent or refused, in the order in which they ended."""

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FILE = "gateway.log"
MOST_BYTES = 4 * 1024 * 1024
"""A log that is longer is begun anew; the one before is kept beside it."""


class WriteLog:
    """Appends to a file. A disk that is full is told once, and keeps no write from its device."""

    def __init__(self, path: Path, say: Callable[[str], None], most_bytes: int = MOST_BYTES) -> None:
        self._path = path
        self._say = say
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._told = False
        self.sent = 0
        self.refused = 0

    def add(self, line: Mapping[str, Any], *, refused: bool) -> None:
        """Note a write."""
        text = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            self.sent, self.refused = self.sent + (not refused), self.refused + refused
            try:
                self._append(text)
                self._told = False
            except OSError as error:
                if not self._told:
                    self._say(f"{self._path} cannot be written: {error.strerror}")
                self._told = True

    def _append(self, text: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        try:
            size = os.fstat(file).st_size
            os.write(file, text)
        finally:
            os.close(file)
        if size + len(text) > self._most_bytes:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
