"""One step of a plan, and which of them are done at the same time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any


class Do(StrEnum):
    """What a step does."""

    CHECK = "check"
    """An accelerator must be healthy by a fresh reading; changes nothing."""
    TRANSMIT = "transmit"
    """Switch a transponder's transmitter on or off."""
    PROGRAM = "program"
    """Write PUC states or joins of one device."""
    VERIFY = "verify"
    """Each receiver of the named circuits must be shown to hear its intended transmitter."""
    CONFIRM = "confirm"
    """Tell devices with a revert timer of their own to keep the change."""
    ASSIGN = "assign"
    """Write down who runs where."""
    SET = "set"
    """Set one setting of one component: a port, a transponder, a machine's power."""
    JOB = "job"
    """Have a job pause before light moves, or go on afterwards, by its hook."""
    RECORD = "record"
    """Write down what a person said: an acknowledgement, maintenance, a policy. Touches no device."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``data`` is what the engine needs for it; ``required`` false lets the run go on when it fails.

    Steps of the same ``stage`` above 0 that stand side by side in their plan are done at the same time.
    """

    id: str
    do: Do
    title: str
    data: Mapping[str, Any]
    precondition: str = ""
    verification: str = ""
    undo: str = ""
    required: bool = True
    expected_seconds: float = 0.0
    stage: int = 0


def stages(steps: Iterable[Step]) -> tuple[tuple[Step, ...], ...]:
    """Steps as they are done: those of one stage together, each other one alone."""
    numbered = enumerate(steps)
    # A step without a stage is told from its neighbours by its own place.
    grouped = groupby(numbered, key=lambda at: (at[1].stage, 0 if at[1].stage else at[0]))
    return tuple(tuple(step for _, step in group) for _, group in grouped)
