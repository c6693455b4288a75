"""The loss of each step, on disk: exact, one line a step, whoever dies when."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

REMEMBERED = 8
"""Steps whose losses every rank keeps; the ranks of a job are never more than one step apart."""


class Losses:
    """A file of lines ``step loss``, the loss as a hexadecimal float, which keeps every bit.

    Rank 0 writes. It may be another process after a failure: then a step that is done again is in the file already,
    whole or in part, or one is missing that the dead rank 0 had done and not yet written. So every rank notes the
    losses, and they are part of the state that is handed to a spare.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._next: int | None = None
        self._recent: dict[int, float] = {}

    def note(self, step: int, loss: float) -> None:
        """On every rank, before the optimiser steps."""
        self._recent = {number: old for number, old in self._recent.items() if step - REMEMBERED < number < step}
        self._recent[step] = loss

    def write(self) -> None:
        """On rank 0, after the optimiser has stepped.

        Raises:
            OSError: the file cannot be written.
        """
        if self._path is None or not self._recent:
            return
        step = max(self._recent)
        first = step if step == self._next else self._cut(self._path, step)
        with self._path.open("ab") as file:
            lines = (f"{number} {loss.hex()}\n" for number, loss in self._recent.items() if number >= first)
            file.write("".join(lines).encode())
        self._next = step + 1

    def state_dict(self) -> dict[str, Any]:
        """What was noted last."""
        return {"recent": dict(self._recent)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back, or take over from another rank."""
        self._recent = {int(step): float(loss) for step, loss in state["recent"].items()}

    @staticmethod
    def _cut(path: Path, step: int) -> int:
        """Drop what was written of this step and of later ones, and a broken line; the first step that is not there."""
        data = path.read_bytes() if path.exists() else b""
        kept, following = 0, 0
        for line in data.splitlines(keepends=True):
            number = line.split(b" ", 1)[0]
            if not line.endswith(b"\n") or not number.isdigit() or int(number) >= step:
                break
            kept += len(line)
            following = int(number) + 1
        if kept < len(data):
            with path.open("r+b") as file:
                file.truncate(kept)
        return following


def read_losses(path: Path) -> dict[int, float]:
    """Loss by step."""
    pairs = (line.split() for line in path.read_text().splitlines())
    return {int(step): float.fromhex(loss) for step, loss in pairs}
