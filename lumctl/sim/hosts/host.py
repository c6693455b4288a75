"""One simulated host as its own shell sees it: the tools, the files, and when it was booted."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from lumctl.sim.hosts import sysfs
from lumctl.sim.hosts.commands import Answer, answer, answer_words, slowness
from lumctl.sim.hosts.patterns import BadPatternError, matching
from lumctl.sim.hosts.shell import Kind, Row
from lumctl.sim.world.world import World

_NOT_FOUND, _TROUBLE = 127, 2


@dataclass(frozen=True, slots=True)
class Output:
    """What a row of the program printed, and after how many seconds (``inf``: it never ends)."""

    status: int
    content: bytes
    delay_s: float = 0.0
    grows: bool = False


class SimHost:
    """A host of a world; ``now`` gives epoch seconds."""

    def __init__(self, world: World, name: str, *, now: Callable[[], float] = time.time) -> None:
        self.name = name
        self._world = world
        self._now = now

    def answer(self, command: str) -> Answer:
        """What one command line prints."""
        return answer(self._world, self.name, command, now=self._now())

    def hello(self) -> bytes:
        """The first line of the loop: the id of this boot, and the seconds since it."""
        boot = self._world.boots[self.name]
        return f"lumctl-loop 2 {boot.id} {self._now() - boot.at:.2f}\n".encode()

    def output(self, row: Row | None) -> Output:
        """What one row of the program's table prints; a number without a row is not found."""
        if row is None:
            return Output(_NOT_FOUND, b"")
        now = self._now()
        if row.kind is Kind.FILES:
            text = sysfs.first_lines(sysfs.Files(self._world, self.name, now), row.words)
            return Output(0, _stripped(text), slowness(self._world, self.name))
        if row.kind is Kind.RUN:
            given = answer_words(self._world, self.name, row.words, now=now)
            return Output(given.exit_status, _stripped(given.stdout + given.stderr), given.delay_s)
        pattern, *words = row.words or ("",)
        given = answer_words(self._world, self.name, words, now=now)
        try:
            text, status = matching(pattern, given.stdout), given.exit_status
        except BadPatternError:
            text, status = "", _TROUBLE
        return Output(status, _stripped(given.stderr + text), given.delay_s, grows=True)


def _stripped(text: str) -> bytes:
    """What a shell keeps of an output: its newlines at the end are gone."""
    return text.rstrip("\n").encode()
