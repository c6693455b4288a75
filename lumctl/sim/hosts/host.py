"""One simulated host as its own shell sees it: its tools, its files, and its boot."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from lumctl.sim.hosts import sysfs
from lumctl.sim.hosts.commands import CommandAnswer, answer, answer_words, slowness
from lumctl.sim.hosts.shell import Kind, ProbeRow
from lumctl.sim.world.world import World

_CLASSES = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "A-Fa-f0-9",
}
_BRACKETS = re.compile(r"\\.|\[(\^?)(\]?(?:\[:\w+:\]|[^\]])*)\]", re.DOTALL)
# Also & ~ and |: Python warns of these in a set if they are doubled, because they may become operators.
_IN_BRACKETS = re.compile(r"\[:(\w+):\]|[\\\[\]&~|]")


class BadPatternError(Exception):
    """The text is not a valid regular expression."""


def matching(pattern: str, text: str) -> str:
    """The lines of a text that match.

    Raises:
        BadPatternError: the pattern is not valid.
    """
    wanted = _compiled(pattern)
    return "".join(f"{line}\n" for line in text.removesuffix("\n").split("\n") if text and wanted.search(line))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_BRACKETS.sub(_bracket, pattern))
    except re.error as error:
        raise BadPatternError(str(error)) from None


def _bracket(found: re.Match[str]) -> str:
    """Translate a POSIX bracket expression to Python. In POSIX a backslash in brackets has no special meaning."""
    if found[2] is None:
        return found[0]
    return f"[{found[1]}{_IN_BRACKETS.sub(_in_bracket, found[2])}]"


def _in_bracket(found: re.Match[str]) -> str:
    if found[1] is None:
        return f"\\{found[0]}"
    if found[1] not in _CLASSES:
        raise BadPatternError(f"no class {found[1]}")
    return _CLASSES[found[1]]


_NOT_FOUND, _TROUBLE = 127, 2


@dataclass(frozen=True, slots=True)
class HostOutput:
    """The output of one row of the program, and the seconds until it ends (``inf``: never)."""

    status: int
    content: bytes
    delay_s: float = 0.0
    grows: bool = False


class SimHost:
    """A host of a world; ``now`` returns epoch seconds."""

    def __init__(self, world: World, name: str, *, now: Callable[[], float] = time.time) -> None:
        self.name = name
        self._world = world
        self._now = now

    def answer(self, command: str) -> CommandAnswer:
        """Run one command line."""
        return answer(self._world, self.name, command, now=self._now())

    def hello(self) -> bytes:
        """The first line of the loop: the id of this boot, and the seconds since the boot."""
        boot = self._world.boots[self.name]
        return f"lumctl-loop 2 {boot.id} {self._now() - boot.at:.2f}\n".encode()

    def output(self, row: ProbeRow | None) -> HostOutput:
        """Run one row of the program's table; ``None`` (no row of that number) gives "not found"."""
        if row is None:
            return HostOutput(_NOT_FOUND, b"")
        now = self._now()
        if row.kind is Kind.FILES:
            text = sysfs.first_lines(sysfs.Files(self._world, self.name, now), row.words)
            return HostOutput(0, _stripped(text), slowness(self._world, self.name))
        if row.kind is Kind.RUN:
            given = answer_words(self._world, self.name, row.words, now=now)
            return HostOutput(given.exit_status, _stripped(given.stdout + given.stderr), given.delay_s)
        pattern, *words = row.words or ("",)
        given = answer_words(self._world, self.name, words, now=now)
        try:
            text, status = matching(pattern, given.stdout), given.exit_status
        except BadPatternError:
            text, status = "", _TROUBLE
        return HostOutput(status, _stripped(given.stderr + text), given.delay_s, grows=True)


def _stripped(text: str) -> bytes:
    """An output without the newlines at its end, as a shell captures it."""
    return text.rstrip("\n").encode()
