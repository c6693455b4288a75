"""What the dashboard asks of the rest of the program to plan a swap and to apply it.

``lumctl.cli.top`` connects these to ``lumctl.swap``. Both calls block; the dashboard makes them in threads of their
own and shows any :class:`~lumctl.errors.LumctlError` they raise as one line with its hint.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan as it is shown before a person says yes. ``plan`` is handed back to the :class:`Applier` untouched."""

    title: str
    target: str
    lines: tuple[str, ...]
    plan: Any


@dataclass(frozen=True, slots=True)
class ApplyView:
    """How an apply ended: one line, whether it did what was planned, and where to read on (the run, its runbook).

    ``error`` is what it failed with, for whoever reports it after the screen is closed.
    """

    outcome: str
    done: bool
    lines: tuple[str, ...] = ()
    error: Exception | None = None


class Planner(Protocol):
    """Plans the replacement of one accelerator."""

    def __call__(self, job: str, failed: str, /) -> PlanView:
        """Plan; changes nothing.

        Raises:
            LumctlError: there is no such plan, and why.
        """
        ...


class Applier(Protocol):
    """Applies a plan that a person has confirmed."""

    def __call__(self, plan: PlanView, progress: Callable[[str], None], /) -> ApplyView:
        """Apply; ``progress`` takes a line for each thing done and may be called from any thread.

        Raises:
            LumctlError: it was refused, rolled back, or left half done.
        """
        ...
