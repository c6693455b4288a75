"""Playback of a recorded run: when each step began, and what stopped a run that did not reach its end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lumctl.change.engine import Gate, Progress
from lumctl.change.plan import Do, Step, stages
from lumctl.errors import RefusedError
from lumctl.inventory.model import Inventory
from lumctl.runbook.document import RecordedStep, Runbook

TO_THE_END = frozenset({"done", "undone"})
"""The outcomes of runs in which every step was done."""
LONGEST_S = 20.0
"""A longer wait is shortened (seconds).

Waits for an approval are not worth watching. Revert timers run for a minute, so a device does not revert within two
such waits.
"""
SHORTENED_S = 5.0


class PlayedStopError(RefusedError):
    """The replay stops before a step that failed when it was recorded."""


def stopped_at(runbook: Runbook) -> RecordedStep | None:
    """The step that stopped a run that did not finish."""
    if runbook.outcome in TO_THE_END:
        return None
    for recorded in runbook.steps:
        if recorded.step.required and (recorded.outcome is None or "failed" in recorded.outcome):
            return recorded
    return None


def played(stop: RecordedStep, before_step: Gate, progress: Progress) -> Gate:
    """A gate that ends the replay, with a message, before the step that failed in the recording; other steps pass."""

    def gate(step: Step) -> None:
        if step.id == stop.step.id:
            why = (stop.outcome or {}).get("failed", "it was not reached")
            progress(f"{step.id}. {step.title}: in the recording, {why}; so this replay ends here")
            raise PlayedStopError(f"step {step.id} did not succeed in the recording: {why}")
        before_step(step)

    return gate


def compared(runbook: Runbook, stop: RecordedStep | None) -> tuple[RecordedStep, ...]:
    """The steps that a replay reaches: all steps of the stages before the stage with ``stop``."""
    if stop is None:
        return runbook.steps
    reached: list[RecordedStep] = []
    by_id = {recorded.step.id: recorded for recorded in runbook.steps}
    for stage in stages(recorded.step for recorded in runbook.steps):
        if stop.step in stage:
            break
        reached += [by_id[step.id] for step in stage]
    return tuple(reached)


def dark_then(runbook: Runbook, inventory: Inventory) -> tuple[str, ...]:
    """The transmitters that were off when the run began, as far as the run recorded that."""
    seen: dict[str, bool] = {}
    for recorded in runbook.steps:
        outcome = recorded.outcome or {}
        found = dict(outcome.get("transmitting") or {})
        if recorded.step.do is Do.TRANSMIT and isinstance(outcome.get("was"), bool):
            found[recorded.step.data["transponder"]] = outcome["was"]
        for lane, sends in found.items():
            # The earliest reading counts: later ones may show what the run itself has switched.
            seen.setdefault(lane, bool(sends))
    return tuple(lane for lane, sends in seen.items() if not sends and lane in inventory.transponders)


def unreachable_then(runbook: Runbook, inventory: Inventory) -> tuple[str, ...]:
    """The hosts on which a transmitter could not be switched off when this was recorded."""
    hosts = [
        inventory.transponders[recorded.step.data["transponder"]].host
        for recorded in runbook.steps
        if recorded.step.do is Do.TRANSMIT and not recorded.step.required and "failed" in (recorded.outcome or {})
    ]
    return tuple(dict.fromkeys(hosts))


def lost_then(runbook: Runbook, inventory: Inventory) -> tuple[str, ...]:
    """The failed accelerators that a swap replaced; a rank that moves back to its own place left a healthy one."""
    if (runbook.document.get("recorded") or {}).get("kind") != "swap":
        return ()
    return tuple(
        each.failed for each in runbook.replacements if inventory.jobs[each.job].ranks[each.rank] != each.spare
    )


@dataclass(frozen=True, slots=True)
class Wait:
    """The length of a wait in playback and in the recording, in seconds."""

    seconds: float
    recorded: float

    @property
    def shortened(self) -> bool:
        """Whether the recorded wait was so long that it is shortened."""
        return self.recorded > LONGEST_S


def wait_of(recorded_s: float, speed: float) -> Wait:
    """A recorded wait, scaled by the playback speed."""
    recorded_s = max(0.0, recorded_s)
    seconds = SHORTENED_S if recorded_s > LONGEST_S else recorded_s
    return Wait(min(LONGEST_S, seconds / speed), recorded_s)


def waits(document: Mapping[str, Any], speed: float) -> dict[str, Wait]:
    """For each begun step, the wait since the previous step began; for the first step, since the run began."""
    before, found = _seconds(document["recorded"].get("at")), {}
    for step in document["steps"]:
        at = _seconds(step.get("at"))
        if at is None:
            continue
        found[str(step["id"])] = wait_of(0.0 if before is None else at - before, speed)
        before = at
    return found


def _seconds(moment: object) -> float | None:
    """A time as a runbook writes it; ``None`` if it is missing or unreadable."""
    try:
        return datetime.fromisoformat(str(moment)).timestamp() if moment else None
    except ValueError:
        return None
