"""The texts by which what we did in Slurm is known to be ours, by whom, and of which run: who looks there sees them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

_REASON = re.compile(r"lumctl (\S+): (\S+) replaced by (\S+)")
_HELD = re.compile(r"(?:; )?lumctl (\S+): (held|requeued)")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why we have drained a node: run ``run`` replaces ``failed`` on it."""

    run: str
    failed: Sequence[str]
    spares: Sequence[str]

    def __str__(self) -> str:
        return f"lumctl {self.run}: {','.join(self.failed)} replaced by {','.join(self.spares)}"

    @classmethod
    def read(cls, text: str) -> Self | None:
        """A reason that Slurm gives; ``None`` if it is not ours."""
        found = _REASON.fullmatch(text.strip())
        return cls(found[1], found[2].split(","), found[3].split(",")) if found else None


@dataclass(frozen=True, slots=True)
class Held:
    """Which run holds a job back; ``requeued``: it ran until then, else it only waited."""

    run: str
    requeued: bool

    @classmethod
    def read(cls, comment: str) -> Self | None:
        """What an administrator's comment says; ``None`` where none of us has held the job."""
        found = _HELD.search(comment)
        return cls(found[1], found[2] == "requeued") if found else None

    def added_to(self, comment: str) -> str:
        """A comment that says so too; what others wrote stays."""
        theirs = without(comment)
        mark = f"lumctl {self.run}: {'requeued' if self.requeued else 'held'}"
        return f"{theirs}; {mark}" if theirs else mark


def without(comment: str) -> str:
    """A comment without what we wrote."""
    return _HELD.sub("", comment).strip()
