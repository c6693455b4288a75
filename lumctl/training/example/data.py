"""The training text (the sources of Python's standard library as bytes), and a file with the loss of each step."""

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
        UsageError: this Python has no sources of its library.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = bytearray()
    for path in sorted(folder.glob("*.py")):
        text += path.read_bytes()
        if len(text) >= most:
            break
    if not text:
        raise UsageError(f"{folder} contains no source to train on", hint="give a text with --text FILE")
    return bytes(text[:most])


class Windows:
    """Cuts a text into sequences. The sequences of a rank are a function of seed, step, rank and world.

    The sequences of a step, over all ranks, do not depend on the number of ranks: a job that shrinks neither loses nor
    repeats any. In each epoch every token is a target once; each epoch has its own order of windows. The last window
    is moved back if the text does not fill it; its first targets then occur twice.

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
        """The start of each window in the text, in ascending order."""
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
            raise UsageError(f"{world} ranks cannot divide {self._sequences} sequences of a step")
        starts = self.share(step, rank, world)
        return torch.stack([self._tokens[start : start + self._context + 1] for start in starts]).long()

    def _start(self, number: int) -> int:
        epoch, position = divmod(number, len(self.starts))
        if self._order[0] != epoch:
            source = torch.Generator().manual_seed(self._seed * EPOCHS + epoch)
            self._order = (epoch, torch.randperm(len(self.starts), generator=source))
        return self.starts[int(self._order[1][position])]


REMEMBERED = 8
"""The number of steps whose losses every rank stores; the ranks of a job are at most one step apart."""


class Losses:
    """A file of lines ``step loss``, the loss as a hexadecimal float, which keeps every bit.

    Rank 0 writes. After a failure, another process may be rank 0. Then a repeated step may already be in the file, in
    whole or in part; or a step may be missing that the dead rank 0 had done but not written. So every rank keeps the
    losses, and they are part of the state that a spare loads.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._next: int | None = None
        self._recent: dict[int, float] = {}

    def note(self, step: int, loss: float) -> None:
        """Keep a loss; called on every rank before the optimiser steps."""
        self._recent = {number: old for number, old in self._recent.items() if step - REMEMBERED < number < step}
        self._recent[step] = loss

    def write(self) -> None:
        """Write the stored losses; called on rank 0 after the optimiser has stepped.

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
        """Remove this step, later ones and a broken line from the file; return the first step that is missing."""
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
    """The losses in a file, by step."""
    pairs = (line.split() for line in path.read_text().splitlines())
    return {int(step): float.fromhex(loss) for step, loss in pairs}
