"""What the next daemon must know of this one: which receivers were told what. The rest is in the store."""

import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SCHEMA = "lumctl/daemon-notes/v1"
FILE = "watch.json"


class Notes:
    """A small file beside the store, written whole or not at all. May be used from any thread."""

    def __init__(self, path: Path) -> None:
        """Read what an earlier daemon left; nonsense is passed over, for nobody can mend it."""
        self._path = path
        self._lock = threading.Lock()
        self._unsaved = False
        self._told: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            found = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(found, dict) and found.get("schema") == SCHEMA and isinstance(found.get("told"), dict):
                self._told = found["told"]

    @property
    def told(self) -> Mapping[str, Any]:
        """What receivers were told, by case; see :class:`lumctl.daemon.ledger.Ledger`."""
        return self._told

    def note(self, told: Mapping[str, Any]) -> None:
        """Note something new, without writing it yet."""
        with self._lock:
            self._told = dict(told)
            self._unsaved = True

    def save(self) -> bool:
        """Write what is new; whether there was anything.

        Raises:
            OSError: there is no room, or no leave; it is tried again with the next call.
        """
        with self._lock:
            if not self._unsaved:
                return False
            made = self._path.with_name(f".{self._path.name}.new")
            try:
                made.unlink(missing_ok=True)  # a killed daemon's
                with os.fdopen(
                    os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8"
                ) as file:
                    json.dump({"schema": SCHEMA, "told": self._told}, file)
                    file.flush()
                    os.fsync(file.fileno())
                made.replace(self._path)
            except OSError:
                with suppress(OSError):
                    made.unlink(missing_ok=True)
                raise
            self._unsaved = False
            return True
