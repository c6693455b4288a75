"""A plan on its screens: its text around the steps, and the states of its steps while it is applied.

The states are taken from the lines that the engine reports.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from rich.text import Text

from lumctl.errors import RolledBackError
from lumctl.health.states import State
from lumctl.tui.actions import ApplyView, PlanView
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks
from lumctl.tui.views.steps import AT_WORK, Stand, StepView, steps_text

_TOOK = re.compile(r"([0-9.]+) s")


def head_text(view: PlanView, *, confirmed: bool = False) -> Text:
    """The text above the steps: the title, the warnings, and the summary. What was ``confirmed`` is no warning now."""
    text = Text(f"{view.title}\n", style=HEADING_STYLE)
    for warning in view.warnings:
        if confirmed:
            text.append(f"confirmed: {warning}\n", style=QUIET_STYLE)
        else:
            text.append(f"! {warning}\n", style=STATE_STYLES[State.DEGRADED])
    # Rich applies the style of the title to all that is appended.
    text.append("\n".join(view.summary), style="not bold")
    text.rstrip()
    return text


def details_text(view: PlanView) -> Text:
    """The text below the steps: all other details."""
    return Text("\n".join(view.lines).strip("\n"))


def whole_text(view: PlanView, marks: Marks, now: float) -> Text:
    """The whole plan with its steps, for a screen that does not apply it."""
    text = head_text(view)
    if view.steps:
        text.append("\n\nsteps\n", style=HEADING_STYLE)
        text.append_text(steps_text(view.steps, marks, now))
    text.rstrip()
    return text.append("\n\n").append_text(details_text(view))


class StepProgress:
    """The steps of one plan, updated by each line about a step; other lines are kept unchanged.

    The engine reports a step when the next one has begun, so the next step is then in progress.
    """

    def __init__(self, steps: Iterable[StepView] = ()) -> None:
        self._steps = {step.id: step for step in steps}
        self.lines: list[str] = []

    @property
    def steps(self) -> tuple[StepView, ...]:
        """Each step with its state."""
        return tuple(self._steps.values())

    @property
    def at(self) -> int:
        """The index of the step that is in progress or failed; else of the last step that was reached."""
        reached = 0
        for number, step in enumerate(self.steps):
            if step.stand in {*AT_WORK, Stand.FAILED}:
                return number
            if step.stand not in {Stand.WAITING, Stand.NOT_DONE}:
                reached = number
        return reached

    def begin(self, now: float) -> None:
        """Mark the first stage as in progress."""
        self._next(now)

    def told(self, line: str, now: float) -> None:
        """Update the steps by a line of the engine."""
        # By its beginning: a title may hold colons of its own.
        step = next((step for step in self.steps if line.startswith(f"{step.id}. {step.title}: ")), None)
        if step is None:
            self.lines.append(line)
            if line.startswith("failed: "):
                self._failed()
            return
        said = line.removeprefix(f"{step.id}. {step.title}: ")
        took = _TOOK.fullmatch(said)
        if took:
            self._steps[step.id] = replace(step, stand=Stand.DONE, seconds=float(took[1]))
        else:
            why = said.removeprefix("skipped (").removesuffix(")")
            self._steps[step.id] = replace(step, stand=Stand.PASSED_OVER, why=why)
        self._next(now)

    def end(self, view: ApplyView) -> None:
        """Set the final states: steps not reached are not done, and after a rollback the done steps are undone."""
        back = isinstance(view.error, RolledBackError)
        for step in self.steps:
            stand = Stand.NOT_DONE if step.stand in {Stand.WAITING, *AT_WORK} else step.stand
            if back and step.stand in {Stand.DONE, Stand.FAILED, Stand.NOT_KNOWN}:
                stand = Stand.UNDONE
            self._steps[step.id] = replace(step, stand=stand)

    def _next(self, now: float) -> None:
        """Mark the next stage as in progress, unless a step still is."""
        if any(step.stand in AT_WORK for step in self.steps):
            return
        first = next((step for step in self.steps if step.stand is Stand.WAITING), None)
        for step in self.steps:
            if first is not None and (step is first or (first.stage and step.stage == first.stage)):
                self._steps[step.id] = replace(step, stand=Stand.UNDER_WAY, since=now)

    def _failed(self) -> None:
        """Mark the step in progress as failed; if several are, as unknown, because any of them may have failed."""
        at_work = [step for step in self.steps if step.stand in AT_WORK]
        for step in at_work:
            stand = Stand.FAILED if len(at_work) == 1 else Stand.NOT_KNOWN
            self._steps[step.id] = replace(step, stand=stand)
