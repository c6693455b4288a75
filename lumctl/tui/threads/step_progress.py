"""What is known of the steps of a plan while it is applied, from the lines that the engine tells."""

import re
from collections.abc import Iterable
from dataclasses import replace

from lumctl.errors import RolledBackError
from lumctl.tui.actions import ApplyView
from lumctl.tui.views.steps import AT_WORK, Stand, StepView

_TOOK = re.compile(r"([0-9.]+) s")


class Following:
    """The steps of one plan, moved on by each line; lines that are of no step are kept as they are.

    The engine tells of a step when the one behind it has begun, so what comes next is under way then.
    """

    def __init__(self, steps: Iterable[StepView] = ()) -> None:
        self._steps = {step.id: step for step in steps}
        self.lines: list[str] = []

    @property
    def steps(self) -> tuple[StepView, ...]:
        """Each step as it stands."""
        return tuple(self._steps.values())

    def begin(self, now: float) -> None:
        """It is applied from now on."""
        self._next(now)

    def told(self, line: str, now: float) -> None:
        """Take in a line."""
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
        """Nothing more is told: what was not reached is not done, and what was rolled back is undone."""
        back = isinstance(view.error, RolledBackError)
        for step in self.steps:
            stand = Stand.NOT_DONE if step.stand in {Stand.WAITING, *AT_WORK} else step.stand
            if back and step.stand in {Stand.DONE, Stand.FAILED, Stand.NOT_KNOWN}:
                stand = Stand.UNDONE
            self._steps[step.id] = replace(step, stand=stand)

    def _next(self, now: float) -> None:
        """Have the next stage under way, once none is."""
        if any(step.stand in AT_WORK for step in self.steps):
            return
        first = next((step for step in self.steps if step.stand is Stand.WAITING), None)
        for step in self.steps:
            if first is not None and (step is first or (first.stage and step.stage == first.stage)):
                self._steps[step.id] = replace(step, stand=Stand.UNDER_WAY, since=now)

    def _failed(self) -> None:
        """Of several at work side by side nobody has said yet which one failed."""
        at_work = [step for step in self.steps if step.stand in AT_WORK]
        for step in at_work:
            stand = Stand.FAILED if len(at_work) == 1 else Stand.NOT_KNOWN
            self._steps[step.id] = replace(step, stand=stand)
