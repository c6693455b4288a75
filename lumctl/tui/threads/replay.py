"""A replay in a thread of its own, which continues one step at a time, or to its end, or stops."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

Gate = Callable[[str], bool]
"""Called with a step's id before the step; waits until the step may be done, and returns whether to continue."""


@dataclass(frozen=True, slots=True)
class ReplayView:
    """How a replay ended, in a line. ``identical`` is ``None`` if it was stopped or there is nothing to compare.

    If it differs, ``step`` is a step's id or ``start`` or ``end``, and the texts are both sides of the difference.
    """

    outcome: str
    identical: bool | None
    step: str = ""
    recorded: str = ""
    replayed: str = ""


class Replayer(Protocol):
    """Replays the runbook of a run, by its key ``RACK/RUN``, on a simulator of its own."""

    def __call__(self, key: str, progress: Callable[[str], None], gate: Gate, /) -> ReplayView:
        """Replay; ``progress`` gets a line for each step. Both are called from any thread.

        Raises:
            LumctlError: the run cannot be replayed with this inventory, or no simulator starts.
        """
        ...


class Stepper:
    """The gate of a replay, opened by the keys of a screen."""

    def __init__(self, reached: Callable[[str], object]) -> None:
        self._reached = reached
        self._turns = threading.Semaphore(0)
        self._to_the_end = threading.Event()
        self._stopped = threading.Event()

    def gate(self, step: str) -> bool:
        """Report that a step is reached, wait for its turn, return whether to continue. Called by the replay thread."""
        if not self._stopped.is_set():
            self._reached(step)
            if not self._to_the_end.is_set():
                self._turns.acquire()
        return not self._stopped.is_set()

    @property
    def running_on(self) -> bool:
        """Whether steps are done without waiting."""
        return self._to_the_end.is_set()

    @property
    def stopped(self) -> bool:
        """Whether the replay must stop."""
        return self._stopped.is_set()

    def go_on(self) -> None:
        """Let the waiting step run."""
        # Call it only while a step waits: a turn is kept, and would let a later step run without being asked.
        self._turns.release()

    def to_the_end(self) -> None:
        """Do the remaining steps without waiting."""
        self._to_the_end.set()
        self._turns.release()

    def stop(self) -> None:
        """Do no further step; the engine undoes the steps so far."""
        # In this order: the step that the turn wakes looks at once whether it was stopped.
        self._stopped.set()
        self._turns.release()
