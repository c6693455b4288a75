"""A user's choices for the dashboard, stored in a file of that user."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from lumctl.files import make_private, write_whole
from lumctl.store import state_folder

SCHEMA = "lumctl/top-preferences/v1"
FILE = "top.json"
_MOST_BYTES = 65536


class Preferences:
    """The theme, the hidden columns of each pane, and whether a bell rings for new incidents.

    Without a path they are forgotten at the end.

    An unreadable file counts as empty, so that preferences never prevent the dashboard from starting.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        document = _read(path)
        self._hidden: dict[str, list[str]] = _hidden_in(document)
        theme = document.get("theme")
        self.theme: str | None = theme if isinstance(theme, str) else None
        self.bell = document.get("bell") is True

    def hidden(self, pane: str) -> frozenset[str]:
        """The keys of the columns that are hidden in a pane."""
        return frozenset(self._hidden.get(pane, ()))

    def hide(self, pane: str, columns: Collection[str]) -> str:
        """Remember the hidden columns of a pane; return why they could not be remembered, or an empty text."""
        self._hidden[pane] = sorted(columns)
        return self._write()

    def remember_theme(self, theme: str) -> str:
        """Remember the theme; return why it could not be remembered, or an empty text."""
        self.theme = theme
        return self._write()

    def remember_bell(self, *, rings: bool) -> str:
        """Remember whether the bell rings; return why it could not be remembered, or an empty text."""
        self.bell = rings
        return self._write()

    def _write(self) -> str:
        if self._path is None:
            return ""
        document = {"schema": SCHEMA, "theme": self.theme, "bell": self.bell, "hidden_columns": self._hidden}
        text = json.dumps(document, indent=1, sort_keys=True)
        try:
            make_private(self._path.parent)
            write_whole(self._path, f"{text}\n")
        except OSError as error:
            return f"the choice is not saved: {self._path} cannot be written: {error.strerror or error}"
        return ""


def own_preferences() -> Preferences:
    """The preferences of the user who runs this process; nothing is saved for a user without a home."""
    try:
        return Preferences(state_folder() / FILE)
    except RuntimeError:
        return Preferences()


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            # A longer file is cut here, is then no valid JSON, and counts as empty.
            document = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _hidden_in(document: dict[str, Any]) -> dict[str, list[str]]:
    hidden = document.get("hidden_columns")
    if not isinstance(hidden, dict):
        return {}
    return {str(pane): [str(key) for key in keys] for pane, keys in hidden.items() if isinstance(keys, list)}
