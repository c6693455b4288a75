"""The training text, the sources of Python's standard library as bytes; and the loss of each step, on disk."""

import sysconfig
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lumctl.errors import UsageError

MOST_BYTES = 2 * 1024 * 1024
EPOCHS = 1_000_003
"""More epochs than are ever trained, so that no two seeds share an order."""


def own_text(most: int = MOST_BYTES) -> bytes:
    """Sources of the standard library, in the order of their names, until there are ``most`` bytes.

    Raises:
        UsageError: this Python came without its sources.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = bytearray()
    for path in sorted(folder.glob("*.py")):
        text += path.read_bytes()
        if len(text) >= most:
            break
    if not text:
        raise UsageError(f"{folder} holds no source to learn from", hint="name a text with --text FILE")
    return bytes(text[:most])


class Windows:
    """Cuts a text into sequences; those of a rank are a function of seed, step, rank and world.

    All ranks together get the same sequences for a step however many ranks there are, so a job that shrinks neither
    loses nor repeats any. Each epoch holds every token as a target once, in an order of its own; the last
    window is moved back where the text does not fill it.

    Raises:
        UsageError: the text is shorter than one sequence.
    """

    def __init__(self, text: bytes, *, context: int, sequences: int, seed: int) -> None:
        if len(text) <= context:
            raise UsageError(f"a text of {len(text)} bytes is shorter than one sequence of {context + 1}")
        self._tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self._context = context
        self._sequences = sequences
        self._seed = seed
        self._order = (-1, torch.empty(0))

    @cached_property
    def starts(self) -> list[int]:
        """The start of each window of an epoch, in the order of the text."""
        last = len(self._tokens) - self._context - 1
        starts = list(range(0, last, self._context))
        return [*starts, last]

    def share(self, step: int, rank: int, world: int) -> list[int]:
        """The starts of one rank's sequences."""
        first = step * self._sequences
        return [self._start(first + index) for index in range(rank, self._sequences, world)]

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Tensor:
        """The sequences of one rank: (sequences, context + 1) tokens.

        Raises:
            UsageError: there are more ranks than sequences.
        """
        if world > self._sequences:
            raise UsageError(f"{world} ranks cannot share {self._sequences} sequences of a step")
        starts = self.share(step, rank, world)
        return torch.stack([self._tokens[start : start + self._context + 1] for start in starts]).long()

    def _start(self, number: int) -> int:
        epoch, position = divmod(number, len(self.starts))
        if self._order[0] != epoch:
            source = torch.Generator().manual_seed(self._seed * EPOCHS + epoch)
            self._order = (epoch, torch.randperm(len(self.starts), generator=source))
        return self.starts[int(self._order[1][position])]


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
        """Note a loss, on every rank before the optimiser steps."""
        self._recent = {number: old for number, old in self._recent.items() if step - REMEMBERED < number < step}
        self._recent[step] = loss

    def write(self) -> None:
        """Write the noted losses, on rank 0 after the optimiser has stepped.

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
        """The newest losses."""
        return {"recent": dict(self._recent)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the losses of an earlier state, or of another rank."""
        self._recent = {int(step): float(loss) for step, loss in state["recent"].items()}

    @staticmethod
    def _cut(path: Path, step: int) -> int:
        """Remove this step, later ones and a broken line from the file; the first step that is missing."""
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
