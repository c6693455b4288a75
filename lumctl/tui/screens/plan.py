"""The screen of a swap.

The plan is made, read, confirmed by the operator and applied; its outcome stays on the screen.
"""

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Input, Static

from lumctl.errors import RolledBackError
from lumctl.health.states import State
from lumctl.tui.actions import ApplyView, PlanView
from lumctl.tui.look.marks import HEADING_STYLE, STATE_STYLES
from lumctl.tui.screens.main import Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.light import light_text, powers_of
from lumctl.tui.views.steps import AT_WORK, Stand, StepView, steps_text
from lumctl.tui.widgets.bars import KeyBar, TopBar
from lumctl.tui.widgets.changes import NO_CHANGE, ChangePicture
from lumctl.tui.widgets.prompt import YesLine

_TOOK = re.compile(r"([0-9.]+) s")


class Following:
    """The steps of one plan, updated by each line; other lines are kept unchanged.

    The engine reports a step when the next one has begun, so the next step is in progress then.
    """

    def __init__(self, steps: Iterable[StepView] = ()) -> None:
        self._steps = {step.id: step for step in steps}
        self.lines: list[str] = []

    @property
    def steps(self) -> tuple[StepView, ...]:
        """Each step with its state."""
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
        """No more lines come: unreached steps are not done, and rolled-back ones are undone."""
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
        """Of several steps in progress at the same time, the failed one is not known yet."""
        at_work = [step for step in self.steps if step.stand in AT_WORK]
        for step in at_work:
            stand = Stand.FAILED if len(at_work) == 1 else Stand.NOT_KNOWN
            self._steps[step.id] = replace(step, stand=stand)


class Phase(Enum):
    """The phase of a swap on its screen."""

    PLANNING = auto()
    ASKING = auto()
    APPLYING = auto()
    ENDED = auto()


@dataclass
class Planned(Message):
    """The plan was made."""

    plan: PlanView


@dataclass
class Progressed(Message):
    """One more line of progress."""

    line: str


@dataclass
class PlanEnded(Message):
    """Nothing more will happen: it was applied, it failed, or there is no plan."""

    view: ApplyView


class ApplyEnded(Message):
    """For the dashboard: the rack has changed, and nothing is being applied any more."""


class PlanScreen(KeyedScreen[None], keys="plan"):
    """Planning and applying block, so each runs in a thread that does nothing but post messages to this screen."""

    def __init__(self, title: str, plan: Callable[[], PlanView], context: ScreenContext) -> None:
        super().__init__()
        self.phase = Phase.PLANNING
        self._title = title
        self.shared = context
        self._make_plan = plan
        self._plan: PlanView | None = None
        self._following = Following()
        self._powers: dict[str, float | None] = {}
        """What arrived when the plan was made."""
        self._ended_at: float | None = None
        self._run = ""
        """What was done here, once it is."""

    def compose(self) -> ComposeResult:
        """The plan and what becomes of it, one under the other; the question below."""
        yield TopBar(self._title, self.shared.target)
        with VerticalScroll():
            yield Static(f"planning a {self._title}", id="plan", markup=False)
            yield Static(id="progress", markup=False)
            yield Static(id="outcome")
        yield ChangePicture(id="change")
        yield Static(id="question")
        yield YesLine("answer", keys="v?")
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Begin to plan."""
        self.query_one(VerticalScroll).focus()
        # A daemon, since Textual's own workers would hold the terminal until the last host has answered.
        self.set_interval(1.0, self._show_progress)
        threading.Thread(target=self._plan_in_thread, name="lumctl-plan", daemon=True).start()

    def on_screen_resume(self) -> None:
        """Show an outcome that arrived while another screen was in front."""
        if self.phase is Phase.ENDED:
            self.query_one(VerticalScroll).scroll_end(animate=False)

    def action_scroll_plan(self, lines: int) -> None:
        """Scroll while the answer has the keys."""
        seen = self.query_one(ChangePicture) if self.has_class("-viewing") else self.query_one(VerticalScroll)
        seen.scroll_relative(y=lines, animate=False)

    def action_view(self) -> None:
        """Show the meshes with what the plan makes of them, or its text again."""
        if self._plan is None or self.phase is Phase.APPLYING:
            return
        if not self._plan.changes:
            self.query_one("#question", Static).update(NO_CHANGE)
            return
        self.query_one(ChangePicture).draw(self._plan.changes, self.size.width, self.shared.marks)
        self.toggle_class("-viewing")

    def action_back(self) -> None:
        """Leave, unless the plan is being applied."""
        if self.phase is Phase.APPLYING:
            self.query_one("#question", Static).update(
                "it is being applied and continues to its end; wait for the outcome"
            )
        else:
            self.dismiss()

    def action_runbook(self) -> None:
        """Open the runbook of what was done here."""
        if self._run:
            self.post_message(Wanted("runbook", self._run))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Apply after a typed yes; anything else does nothing, with a message."""
        event.stop()
        if self.phase is not Phase.ASKING or self._plan is None:
            return
        if event.value.strip().lower() in {"y", "yes"}:
            self._begin(self._plan)
        else:
            event.input.value = ""
            self._ask("that was not a yes; nothing was done.  ")

    def on_planned(self, event: Planned) -> None:
        """Show the plan and ask."""
        event.stop()
        self._plan = event.plan
        self._following = Following(event.plan.steps)
        self._powers = powers_of(self.shared.seen(), event.plan.receivers)
        text = Text(f"{event.plan.title}\n\n", style=HEADING_STYLE)
        text.append("\n".join(event.plan.lines), style="not bold")
        self.query_one("#plan", Static).update(text)
        self.phase = Phase.ASKING
        self.add_class("-asking")
        self._ask()
        self.query_one(Input).focus()

    def on_progressed(self, event: Progressed) -> None:
        """Add a line, and keep the newest one in sight."""
        event.stop()
        self._following.told(event.line, self.shared.now())
        self._show_progress()
        self.query_one(VerticalScroll).scroll_end(animate=False)

    def on_plan_ended(self, event: PlanEnded) -> None:
        """Show the outcome."""
        event.stop()
        was_applying = self.phase is Phase.APPLYING
        self.phase = Phase.ENDED
        if was_applying:
            self._ended_at = self.shared.now()
            self._following.end(event.view)
            self._show_progress()
        state = State.OK if event.view.done else State.FAILED
        text = Text()
        text.append(f"\n{event.view.outcome}\n", style=STATE_STYLES[state])
        text.append("\n".join(event.view.lines))
        self.query_one("#outcome", Static).update(text)
        self._run = event.view.run
        self.query_one("#question", Static).update("b: its runbook   esc: back" if self._run else "esc: back")
        self.query_one(VerticalScroll).scroll_end(animate=False)
        if was_applying:
            self.post_message(ApplyEnded())

    def _ask(self, before: str = "") -> None:
        target = self._plan.target if self._plan else self.shared.target
        question = f"{before}Apply this plan to TARGET {target}? Type yes (or y) and press enter; esc leaves."
        self.query_one("#question", Static).update(question)

    def _begin(self, plan: PlanView) -> None:
        self.phase = Phase.APPLYING
        self.remove_class("-asking", "-viewing")
        self.query_one("#question", Static).update(f"applying to TARGET {plan.target}")
        self.query_one(VerticalScroll).focus()
        self._following.begin(self.shared.now())
        self._show_progress()
        self.query_one(VerticalScroll).scroll_end(animate=False)
        self.shared.applying.begin(plan, self._progress_in_thread, lambda view: self.post_message(PlanEnded(view)))

    def _show_progress(self) -> None:
        """The steps with their states, other lines, and the light at the plan's receivers."""
        if self._plan is None or self.phase not in {Phase.APPLYING, Phase.ENDED}:
            return
        marks, seen, now = self.shared.marks, self.shared.seen(), self.shared.now()
        text = Text("\n")
        text.append_text(steps_text(self._following.steps, marks, now))
        text.append("\n".join(self._following.lines))
        if self._plan.receivers:
            text.append("\n\n" if self._following.lines else "\n")
            text.append_text(light_text(self._plan.receivers, self._powers, seen, marks, now, self._ended_at))
        self.query_one("#progress", Static).update(text)
        scroll = self.query_one(VerticalScroll)
        # Lines that were laid out after the last scroll to the end must not push the outcome out of sight. An anchor
        # leaves a person who scrolls alone; it would move a text that fits to the bottom.
        if scroll.max_scroll_y > 0 and not scroll.is_anchored:
            scroll.anchor()

    def _plan_in_thread(self) -> None:
        try:
            self.post_message(Planned(self._make_plan()))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(PlanEnded(ApplyView(f"no plan: {one_line(error)}", done=False)))

    def _progress_in_thread(self, line: str) -> None:
        self.post_message(Progressed(line))
