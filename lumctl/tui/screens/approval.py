"""The screen of a plan that waits for approval: read the plan, then approve or reject it with a typed yes."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.widgets import Static

from lumctl.tui.actions import ApplyView, PlanView
from lumctl.tui.look.marks import STALE_STYLE, duration
from lumctl.tui.screens.confirmation import AskingScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.plans import whole_text
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.changes import NO_CHANGE, ChangePicture
from lumctl.tui.widgets.prompt import Question


@dataclass
class PlanRead(Message):
    """The plan was read, or could not be; then ``trouble`` is the reason."""

    plan: PlanView | None
    trouble: str = ""


class ApprovalScreen(AskingScreen, keys="approval"):
    """Shows a plan that waits for approval; it cannot be answered before it is shown."""

    FAILED = "not answered"

    def __init__(self, rack: str, plan: str, context: ScreenContext) -> None:
        super().__init__(context)
        self._rack, self._plan_id = rack, plan
        self._plan: PlanView | None = None
        self._approve = False
        self._settled = False

    def compose(self) -> ComposeResult:
        """Create the remaining time, the plan, and the question below it."""
        yield TopBar(f"approval of {self._plan_id}", self.context.target)
        yield Static(id="waits", markup=False)
        with VerticalScroll():
            yield Static("reading the plan", id="plan")
        yield ChangePicture(id="change")
        yield AnswerLine()
        yield Question()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Start reading the plan, and count down the remaining time."""
        self.query_one(VerticalScroll).focus()
        self._tick()
        self.set_interval(1.0, self._tick)
        threading.Thread(target=self._read, name="lumctl-asked-plan", daemon=True).start()

    def action_view(self) -> None:
        """Switch between the text of the plan and the picture of the meshes that it changes."""
        if self._plan is None or not self._plan.changes:
            self.say(NO_CHANGE if self._plan else _NOT_READ)
            return
        self.query_one(ChangePicture).draw(self._plan.changes, self.size.width, self.context.marks)
        self.toggle_class("-viewing")
        # An open question keeps the focus: the operator may be typing the answer while looking at the picture.
        if not self.query_one(Question).opened:
            self.text().focus()

    def action_back(self) -> None:
        """Close an open question, else go back from the picture to the plan, else leave."""
        if self.has_class("-viewing") and not self.query_one(Question).opened:
            self.action_view()
        else:
            super().action_back()

    def action_answer(self, approve: bool) -> None:
        """Ask the operator to confirm the approval or rejection."""
        if reason := self.context.acts.forbidden:
            self.say(reason)
        elif self._plan is None:
            self.say(_NOT_READ)
        elif self._settled or self._asked() is None:
            self.say("it no longer waits for an answer")
        else:
            self._approve = approve
            self.ask()

    def on_plan_read(self, event: PlanRead) -> None:
        """Show the plan."""
        event.stop()
        self._plan = event.plan
        text = Text() if event.plan is None else whole_text(event.plan, self.context.marks, self.context.now())
        self.query_one("#plan", Static).update(text)
        self.say(f"not read: {event.trouble}" if event.trouble else "")

    def question(self) -> str:
        """The question that names the plan and the consequences of the answer."""
        plan = f"{self._plan_id} ({self._plan.title if self._plan else ''})"
        how = "Type yes (and a reason, if you like) and press enter; esc cancels."
        if not self._approve:
            return f"Reject {plan} for TARGET {self.context.target}? Then it is not applied. {how}"
        asked = self._asked()
        by_itself = asked is not None and str(asked["made_by"]).startswith("autopilot:")
        then = "the autopilot applies it at once if the fault persists" if by_itself else "it may then be applied"
        return f"Approve {plan} for TARGET {self.context.target} under your own name? Then {then}. {how}"

    def order(self) -> tuple[str, Callable[[str], ApplyView]]:
        """Record the answer."""
        answer = partial(self.context.acts.answer_plan, self._rack, self._plan_id, approve=self._approve)
        return "recording the answer", answer

    def done(self, view: ApplyView) -> None:
        """Stop offering answers once one is recorded."""
        self._settled = view.done
        self._tick()

    def text(self) -> VerticalScroll | ScrollView:
        """The plan, or the picture of its meshes."""
        return self.query_one(ChangePicture) if self.has_class("-viewing") else super().text()

    def _asked(self) -> Mapping[str, Any] | None:
        """The open request for approval in the store; ``None`` if it was answered or has expired."""
        seen, now = self.context.seen(), self.context.now()
        waiting = [asked for each in (seen.records.autopilots if seen else ()) if each["rack"] == self._rack
                   for asked in each["waiting"]]  # fmt: skip
        return next((asked for asked in waiting if asked["plan"] == self._plan_id and asked["expires_at"] > now), None)

    def _tick(self) -> None:
        asked, waits = self._asked(), Text()
        if self._settled or asked is None:
            waits.append("It no longer waits for an answer.", style=STALE_STYLE)
        else:
            left = duration(asked["expires_at"] - self.context.now())
            waits.append(
                f"policy {asked['policy']} requires it; made by {asked['made_by'] or 'unknown'}; expires in {left}"
            )
        self.query_one("#waits", Static).update(waits)

    def _read(self) -> None:
        try:
            self.post_message(PlanRead(self.context.sources.asked_plan(self._rack, self._plan_id)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(PlanRead(None, self.context.sources.aimed(one_line(error))))


_NOT_READ = "the plan has not been read yet: it cannot be answered before it is shown"
