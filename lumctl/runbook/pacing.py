"""When the steps of a recorded run began, and how long a replay that is watched waits for each."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

LONGEST_S = 20.0
"""A longer wait is shortened: nobody watches an approval being waited for. With two of these a device that reverts by
itself, which is given a minute, does not."""
SHORTENED_S = 5.0


@dataclass(frozen=True, slots=True)
class Wait:
    """How long is waited (seconds), and how long it was when it was recorded."""

    seconds: float
    recorded: float

    @property
    def shortened(self) -> bool:
        """Whether it was too long to be waited for."""
        return self.recorded > LONGEST_S


def wait_of(recorded_s: float, speed: float) -> Wait:
    """A recorded wait as it is played so many times as fast."""
    recorded_s = max(0.0, recorded_s)
    seconds = SHORTENED_S if recorded_s > LONGEST_S else recorded_s
    return Wait(min(LONGEST_S, seconds / speed), recorded_s)


def waits(document: Mapping[str, Any], speed: float) -> dict[str, Wait]:
    """For each step of a runbook that was begun the wait since the one before; for the first, since the run began."""
    before, found = _seconds(document["recorded"].get("at")), {}
    for step in document["steps"]:
        at = _seconds(step.get("at"))
        if at is None:
            continue
        found[str(step["id"])] = wait_of(0.0 if before is None else at - before, speed)
        before = at
    return found


def _seconds(moment: object) -> float | None:
    """A moment as a runbook writes it; ``None`` where there is none, or what nobody can read was put in its place."""
    try:
        return datetime.fromisoformat(str(moment)).timestamp() if moment else None
    except ValueError:
        return None
