"""The screen of a swap: make a plan, show it, ask the operator to confirm it, apply it, and show the outcome."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.message import Message
from textual.widgets import Input, Static

from lumctl.health.states import State
from lumctl.tui.actions import ApplyView, PlanView
from lumctl.tui.look.marks import STATE_STYLES
from lumctl.tui.screens.requests import Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.light import heard_by, light_text, powers_of
from lumctl.tui.views.plans import StepProgress, details_text, head_text
from lumctl.tui.views.steps import steps_text
from lumctl.tui.widgets.bars import KeyBar, TopBar
from lumctl.tui.widgets.changes import NO_CHANGE, ChangePicture
from lumctl.tui.widgets.prompt import YesLine


class Phase(Enum):
    """The phase of a swap on its screen."""

    PLANNING = auto()
    ASKING = auto()
    APPLYING = auto()
    ENDED = auto()


_KEYS: Mapping[Phase, Mapping[str, str]] = {
    Phase.PLANNING: {"": "", "view": "", "app.quit": "quit"},
    Phase.ASKING: {},
    Phase.APPLYING: {
        "": "",
        "view": "",
        "back": "",
        "scroll_plan(1)": "scroll",
        "app.quit": "quit when it has ended",
    },
}
"""The labels of keys that differ in a phase, by action; a key that does nothing in it is not shown."""


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
    """The plan was applied or failed, or there is no plan; nothing follows."""

    view: ApplyView


class ApplyEnded(Message):
    """Tells the dashboard that an apply has ended and the rack may have changed."""


class PlanScreen(KeyedScreen[None], keys="plan"):
    """Plans and applies in threads, because both block; the threads only post messages to this screen.

    The steps are one list that is updated in place. The outcome is below the scrolling text, so that it is always
    visible.
    """

    def __init__(
        self, title: str, plan: Callable[[], PlanView], context: ScreenContext, left_out: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._left_out = left_out
        """Sentences about marked components that are not part of the plan."""
        self.phase = Phase.PLANNING
        self._title = title
        self.shared = context
        self._make_plan = plan
        self._plan: PlanView | None = None
        self._following = StepProgress()
        self._powers: dict[str, float | None] = {}
        """The power (dBm) at the plan's receivers when the plan was made."""
        self._heard: dict[str, str | None] = {}
        """The transmitters that the plan's receivers heard when the plan was made."""
        self._ended_at: float | None = None
        self._end = ApplyView("", done=False)

    def compose(self) -> ComposeResult:
        """Create the plan with its steps and details; below it, the outcome and the question."""
        yield TopBar(self._title, self.shared.target)
        with VerticalScroll():
            yield Static(f"planning a {self._title}", id="plan", markup=False)
            yield Static(id="steps", markup=False)
            yield Static(id="light", markup=False)
            yield Static(id="details", markup=False)
        yield ChangePicture(id="change")
        yield Static(id="outcome", markup=False)
        yield Static(id="question")
        yield YesLine("answer", keys="v?")
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Start planning."""
        self.query_one(VerticalScroll).focus()
        self._turn_to(Phase.PLANNING)
        self.set_interval(1.0, self._show_progress)
        # The thread is a daemon: Textual's own workers would keep the terminal until the last host has answered.
        threading.Thread(target=self._plan_in_thread, name="lumctl-plan", daemon=True).start()

    def action_scroll_plan(self, lines: int) -> None:
        """Scroll the plan while the input line has the focus."""
        seen = self.query_one(ChangePicture) if self.has_class("-viewing") else self.query_one(VerticalScroll)
        seen.scroll_relative(y=lines, animate=False)

    def action_view(self) -> None:
        """Switch between the text of the plan and the picture of the meshes that it changes."""
        if self._plan is None or self.phase is Phase.APPLYING:
            return
        if not self._plan.changes:
            self.query_one("#question", Static).update(NO_CHANGE)
            return
        self.query_one(ChangePicture).draw(self._plan.changes, self.size.width, self.shared.marks)
        self.toggle_class("-viewing")

    def action_back(self) -> None:
        """Go back from the picture to the plan; else leave, unless the plan is being applied."""
        if self.has_class("-viewing"):
            self.remove_class("-viewing")
        elif self.phase is Phase.APPLYING:
            self.query_one("#question", Static).update(
                "it is being applied and continues to its end; wait for the outcome"
            )
        else:
            self.dismiss()

    def action_runbook(self) -> None:
        """Open the runbook of the run that was done here."""
        if self._end.run:
            self.post_message(Wanted("runbook", self._end.run))

    def action_undo(self) -> None:
        """Plan to undo the run that was done here."""
        if self._can_undo:
            undo = partial(self.shared.acts.undo, self._end.run)
            title = f"undo of {self._end.run.rpartition('/')[2]}"
            # In place of this screen: esc on the new one then does not lead back to a plan that is undone.
            self.app.switch_screen(PlanScreen(title, undo, self.shared))

    def action_again(self) -> None:
        """Plan the same again, for the rack as it is now, after a refusal or a failure."""
        if self._may_plan_again:
            self.app.switch_screen(PlanScreen(self._title, self._make_plan, self.shared, self._left_out))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Apply after a typed yes; anything else does nothing, with a message."""
        event.stop()
        # After a yes the phase is another: a second enter does not apply the plan twice.
        if self.phase is not Phase.ASKING or self._plan is None:
            return
        if event.value.strip().lower() in {"y", "yes"}:
            self._begin(self._plan)
        else:
            event.input.value = ""
            self._ask("the answer was not yes; nothing was done.  ")

    def on_planned(self, event: Planned) -> None:
        """Show the plan and ask."""
        event.stop()
        self._plan = replace(event.plan, warnings=(*self._left_out, *event.plan.warnings))
        self._following = StepProgress(event.plan.steps)
        self._powers = powers_of(self.shared.seen(), event.plan.receivers)
        self._heard = heard_by(self.shared.seen(), event.plan.receivers)
        self.query_one("#plan", Static).update(head_text(self._plan))
        self.query_one("#details", Static).update(Text("\n").append_text(details_text(self._plan)))
        self._turn_to(Phase.ASKING)
        self._show_progress()
        self.add_class("-asking")
        self._ask()
        self.query_one(Input).focus()

    def on_progressed(self, event: Progressed) -> None:
        """Update the step that has ended, and keep the next one visible."""
        event.stop()
        self._following.told(event.line, self.shared.now())
        self._show_progress()
        self._bring_step()

    def on_plan_ended(self, event: PlanEnded) -> None:
        """Show the outcome."""
        event.stop()
        was_applying = self.phase is Phase.APPLYING
        self.phase = Phase.ENDED
        self._end = event.view
        if was_applying:
            self._ended_at = self.shared.now()
            self._following.end(event.view)
            self._show_progress()
        else:
            self.query_one("#plan", Static).update("")
        state = State.OK if event.view.done else State.FAILED
        text = Text()
        text.append(f"{self.shared.sources.aimed(event.view.outcome)}\n", style=STATE_STYLES[state])
        text.append("\n".join(event.view.lines))
        self.query_one("#outcome", Static).update(text)
        self.add_class("-ended")
        keys = (
            (self._can_undo, "u: undo it"),
            (self._may_plan_again, "p: plan again"),
            (bool(self._end.run), "b: its runbook"),
            (True, "esc: back"),
        )
        self.query_one("#question", Static).update("   ".join(key for is_offered, key in keys if is_offered))
        if was_applying:
            self._bring_step()
            self.post_message(ApplyEnded())

    def _turn_to(self, phase: Phase) -> None:
        """Enter a phase in which the key bar is shown, and show the keys that work in it."""
        self.phase = phase
        self.query_one(KeyBar).rename(_KEYS[phase])

    @property
    def _can_undo(self) -> bool:
        return self._end.done and bool(self._end.run) and not self.shared.acts.forbidden

    @property
    def _may_plan_again(self) -> bool:
        return self.phase is Phase.ENDED and not self._end.done and not self.shared.acts.forbidden

    def _ask(self, before: str = "") -> None:
        target = self._plan.target if self._plan else self.shared.target
        question = f"{before}Apply this plan to TARGET {target}? Type yes (or y) and press enter; esc cancels."
        self.query_one("#question", Static).update(question)

    def _begin(self, plan: PlanView) -> None:
        self._turn_to(Phase.APPLYING)
        self.remove_class("-asking", "-viewing")
        self.query_one("#plan", Static).update(head_text(plan, confirmed=True))
        self.query_one("#question", Static).update(
            f"applying to TARGET {plan.target}; it goes on to its end, even if this terminal closes"
        )
        self.query_one(VerticalScroll).focus()
        self._following.begin(self.shared.now())
        self._show_progress()
        self._bring_step()
        self.shared.applying.begin(plan, self._progress_in_thread, lambda view: self.post_message(PlanEnded(view)))

    def _show_progress(self) -> None:
        """Show the steps with their states, other lines, and from the apply on the light at the plan's receivers."""
        if self._plan is None or self.phase is Phase.PLANNING:
            return
        marks, now = self.shared.marks, self.shared.now()
        text = Text("\n")
        text.append_text(steps_text(self._following.steps, marks, now))
        text.append("\n".join(self._following.lines))
        text.rstrip()
        self.query_one("#steps", Static).update(text)
        if self.phase is not Phase.ASKING and self._plan.receivers:
            seen, proved = self.shared.seen(), self._end.proved
            light = light_text(
                self._plan.receivers,
                self._powers,
                seen,
                marks,
                now,
                settled_at=self._ended_at,
                proved=proved,
                unchanged=self._heard if self._end.is_unchanged else None,
            )
            light.rstrip()
            self.add_class("-lit")
            self.query_one("#light", Static).update(Text("\n").append_text(light))

    def _bring_step(self) -> None:
        """Scroll to the step that is in progress or failed; at the end also to the light, as far as there is room."""
        self.call_after_refresh(self._bring)

    def _bring(self) -> None:
        if not self.is_mounted:
            return
        scroll, steps, light = (self.query_one(each) for each in (VerticalScroll, "#steps", "#light"))
        last = steps.virtual_region.bottom
        # One line down, because the text of the steps begins with an empty line.
        top = min(steps.virtual_region.y + 1 + self._following.at, last) if self._following.steps else last - 1
        bottom = light.virtual_region.bottom if self.phase is Phase.ENDED else top + 1
        height = max(1, min(bottom - top, scroll.size.height))
        scroll.scroll_to_region(Region(0, top, 1, height), animate=False, force=True)

    def _plan_in_thread(self) -> None:
        try:
            self.post_message(Planned(self._make_plan()))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(PlanEnded(ApplyView(f"no plan: {one_line(error)}", done=False)))

    def _progress_in_thread(self, line: str) -> None:
        self.post_message(Progressed(line))
