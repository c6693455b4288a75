"""The screen of a plan that waits for approval: the plan is read first, then approved or rejected by a typed yes."""

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
from lumctl.tui.look.marks import HEADING_STYLE, STALE_STYLE, duration
from lumctl.tui.screens.confirmation import AskingScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.changes import NO_CHANGE, ChangePicture
from lumctl.tui.widgets.prompt import Question


@dataclass
class PlanRead(Message):
    """The plan was read, or why it was not."""

    plan: PlanView | None
    trouble: str = ""


class ApprovalScreen(AskingScreen, keys="approval"):
    """No answer is possible before the plan is shown."""

    FAILED = "not answered"

    def __init__(self, rack: str, plan: str, context: ScreenContext) -> None:
        super().__init__(context)
        self._rack, self._plan_id = rack, plan
        self._plan: PlanView | None = None
        self._approve = False
        self._settled = False

    def compose(self) -> ComposeResult:
        """How long it waits yet, the plan, and the question below it."""
        yield TopBar(f"approval of {self._plan_id}", self.context.target)
        yield Static(id="waits", markup=False)
        with VerticalScroll():
            yield Static("reading the plan", id="plan")
        yield ChangePicture(id="change")
        yield AnswerLine()
        yield Question()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Begin to read; count down the time that is left."""
        self.query_one(VerticalScroll).focus()
        self._tick()
        self.set_interval(1.0, self._tick)
        threading.Thread(target=self._read, name="lumctl-asked-plan", daemon=True).start()

    def action_view(self) -> None:
        """Show the meshes with what the plan makes of them, or its text again."""
        if self._plan is None or not self._plan.changes:
            self.say(NO_CHANGE if self._plan else _NOT_READ)
            return
        self.query_one(ChangePicture).draw(self._plan.changes, self.size.width, self.context.marks)
        self.toggle_class("-viewing")
        if not self.query_one(Question).opened:
            self.text().focus()

    def action_answer(self, approve: bool) -> None:
        """Ask for a yes to the answer."""
        if reason := self.context.acts.forbidden:
            self.say(reason)
        elif self._plan is None:
            self.say(_NOT_READ)
        elif self._settled or self._asked() is None:
            self.say("it waits for no answer any more")
        else:
            self._approve = approve
            self.ask()

    def on_plan_read(self, event: PlanRead) -> None:
        """Show the plan."""
        event.stop()
        self._plan = event.plan
        text = Text()
        if event.plan is not None:
            text.append(f"{event.plan.title}\n\n", style=HEADING_STYLE)
            text.append("\n".join(event.plan.lines))
        self.query_one("#plan", Static).update(text)
        self.say(f"not read: {event.trouble}" if event.trouble else "")

    def question(self) -> str:
        """What is approved or rejected, and what follows."""
        plan = f"{self._plan_id} ({self._plan.title if self._plan else ''})"
        how = "Type yes (and why, if you like) and press enter; esc leaves."
        if not self._approve:
            return f"Reject {plan} for TARGET {self.context.target}? It is not applied. {how}"
        asked = self._asked()
        by_itself = asked is not None and str(asked["made_by"]).startswith("autopilot:")
        then = "the autopilot applies it at once if the fault still stands" if by_itself else "it may then be applied"
        return f"Approve {plan} for TARGET {self.context.target}, in your own name? Then {then}. {how}"

    def order(self) -> tuple[str, Callable[[str], ApplyView]]:
        """Write the answer down."""
        answer = partial(self.context.acts.answer_plan, self._rack, self._plan_id, approve=self._approve)
        return "writing the answer down", answer

    def done(self, view: ApplyView) -> None:
        """End the wait after an answer."""
        self._settled = view.done
        self._tick()

    def text(self) -> VerticalScroll | ScrollView:
        """The plan, or the picture of its meshes."""
        return self.query_one(ChangePicture) if self.has_class("-viewing") else super().text()

    def _asked(self) -> Mapping[str, Any] | None:
        """The question as the store has it, while it is open."""
        seen, now = self.context.seen(), self.context.now()
        waiting = [asked for each in (seen.records.autopilots if seen else ()) if each["rack"] == self._rack
                   for asked in each["waiting"]]  # fmt: skip
        return next((asked for asked in waiting if asked["plan"] == self._plan_id and asked["expires_at"] > now), None)

    def _tick(self) -> None:
        asked, waits = self._asked(), Text()
        if self._settled or asked is None:
            waits.append("It waits for no answer any more.", style=STALE_STYLE)
        else:
            left = duration(asked["expires_at"] - self.context.now())
            waits.append(
                f"policy {asked['policy']} asks; made by {asked['made_by'] or 'nobody known'}; lapses in {left}"
            )
        self.query_one("#waits", Static).update(waits)

    def _read(self) -> None:
        try:
            self.post_message(PlanRead(self.context.sources.asked_plan(self._rack, self._plan_id)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(PlanRead(None, one_line(error)))


_NOT_READ = "the plan was not read yet: nothing can be said to what is not seen"
