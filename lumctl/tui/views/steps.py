"""The steps of a change with their states: from a plan, from a journal, and as text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from rich.text import Text

from lumctl.health.states import State
from lumctl.store import JournalEntry
from lumctl.tui.look.marks import QUIET_STYLE, STATE_STYLES, Marks


class Stand(StrEnum):
    """The state of a step, as shown to operators."""

    WAITING = "waiting"
    UNDER_WAY = "under way"
    DONE = "done"
    PASSED_OVER = "passed over"
    FAILED = "failed"
    UNDOING = "being undone"
    UNDONE = "undone"
    NOT_DONE = "not done"
    NOT_KNOWN = "not known"


_STATES: Mapping[Stand, State] = {
    Stand.DONE: State.OK,
    Stand.PASSED_OVER: State.DEGRADED,
    Stand.FAILED: State.FAILED,
    Stand.UNDOING: State.DEGRADED,
    Stand.UNDONE: State.DEGRADED,
    Stand.NOT_KNOWN: State.UNKNOWN,
}
AT_WORK = frozenset({Stand.UNDER_WAY, Stand.UNDOING})


@dataclass(frozen=True, slots=True)
class StepView:
    """One step. ``since`` is its start (seconds since the epoch), ``seconds`` its duration, ``why`` why it is not done.

    ``expected`` is the expected duration (seconds), if known. Steps of one ``stage`` are done at the same time; a step
    of stage 0 is done alone.
    """

    id: str
    title: str
    required: bool = True
    stage: int = 0
    stand: Stand = Stand.WAITING
    since: float | None = None
    seconds: float | None = None
    why: str = ""
    expected: float | None = None


def planned_steps(plan: Mapping[str, Any]) -> tuple[StepView, ...]:
    """The steps of a plan's document, all waiting."""
    return tuple(
        StepView(
            str(step["id"]),
            str(step["title"]),
            step.get("required", True),
            step.get("stage", 0),
            expected=step.get("expected_seconds") or None,
        )
        for step in plan.get("steps", ())
    )


def journalled(planned: Iterable[StepView], entries: Iterable[JournalEntry], *, over: bool) -> tuple[StepView, ...]:
    """The steps with their states from the journal of a run; ``over``: no engine works on the run any longer."""
    steps = {step.id: step for step in planned}
    for entry in entries:
        if (step := steps.get(entry.step)) is not None:
            steps[entry.step] = _after(step, entry)
    return tuple(_over(step) if over else step for step in steps.values())


def _after(step: StepView, entry: JournalEntry) -> StepView:
    data, failed = entry.data, str(entry.data.get("failed", ""))
    match entry.kind:
        case "intent":
            # A run that is resumed does a step again: what the first attempt left no longer holds.
            return replace(step, stand=Stand.UNDER_WAY, since=entry.at, seconds=None, why="")
        case "outcome":
            # Older journals do not record the duration; use the time until the outcome was written.
            seconds = None if step.since is None else max(entry.at - step.since, 0.0)
            seconds = seconds if entry.seconds is None else entry.seconds
            stand = Stand.DONE if data.get("done") else Stand.FAILED if step.required else Stand.PASSED_OVER
            return replace(step, stand=stand, seconds=seconds, why=failed)
        case "undo-intent":
            return replace(step, stand=Stand.UNDOING, since=entry.at)
        case "undo-outcome":
            if data.get("undone"):
                return replace(step, stand=Stand.UNDONE)
            return replace(step, stand=Stand.FAILED, why=f"it could not be undone: {failed}")
        case _:  # a remark changes no step
            return step


def _over(step: StepView) -> StepView:
    if step.stand in AT_WORK:
        return replace(step, stand=Stand.NOT_KNOWN, why="it was interrupted before it could report")
    return replace(step, stand=Stand.NOT_DONE) if step.stand is Stand.WAITING else step


def steps_text(steps: Iterable[StepView], marks: Marks, now: float) -> Text:
    """One line for each step, numbered as in ``swap plan``, with its state."""
    text = Text()
    for step in steps:
        state = _STATES.get(step.stand)
        glyph = ">" if step.stand is Stand.UNDER_WAY else marks.glyphs.get(state, " ") if state else " "
        style = STATE_STYLES[state] if state else "bold" if step.stand is Stand.UNDER_WAY else QUIET_STYLE
        text.append(f"{glyph} ", style=style)
        text.append(f"{step.id}. {step.title}: ", style=QUIET_STYLE if step.stand is Stand.WAITING else "")
        text.append(f"{_told(step, now)}\n", style=style)
    return text


def _told(step: StepView, now: float) -> str:
    if step.stand is Stand.DONE:
        return "done" if step.seconds is None else f"done in {step.seconds:.2f} s"
    if step.stand is Stand.WAITING and step.expected is not None:
        return f"about {step.expected:.2f} s"
    if step.stand in AT_WORK and step.since is not None:
        return f"{step.stand} for {max(now - step.since, 0.0):.0f} s"
    if step.stand is Stand.UNDONE and step.why:
        return f"failed: {step.why}; undone"
    return f"{step.stand}: {step.why}" if step.why else str(step.stand)
