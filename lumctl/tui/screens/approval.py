"""The screen of a plan that waits for approval: the plan is read first, then approved or rejected by a typed yes."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from lumctl.tui.actions import ApplyView, PlanView
from lumctl.tui.keys import APPROVAL, bindings
from lumctl.tui.look.marks import HEADING_STYLE, STALE_STYLE, duration
from lumctl.tui.screens.main import RefreshWanted
from lumctl.tui.sources import Context
from lumctl.tui.threads.collector import one_line
from lumctl.tui.typed import NO_YES, typed_yes
from lumctl.tui.widgets.bars import Answer, KeyBar, TopBar
from lumctl.tui.widgets.question import Question


@dataclass
class PlanRead(Message):
    """The plan was read, or why it was not."""

    plan: PlanView | None
    trouble: str = ""


@dataclass
class PlanAnswered(Message):
    """The answer was given, or was not."""

    view: ApplyView


class ApprovalScreen(Screen[None]):
    """Nothing can be answered before the plan is to be seen."""

    BINDINGS = bindings(APPROVAL)  # type: ignore[assignment]

    def __init__(self, rack: str, plan: str, context: Context) -> None:
        super().__init__()
        self._rack, self._plan_id = rack, plan
        self.context = context
        self._plan: PlanView | None = None
        self._approve = False
        self._settled = False

    def compose(self) -> ComposeResult:
        """How long it waits yet, the plan, and the question below it."""
        yield TopBar(f"approval of {self._plan_id}", self.context.target)
        yield Static(id="waits", markup=False)
        with VerticalScroll():
            yield Static("reading the plan", id="plan")
        yield Answer()
        yield Question()
        yield KeyBar(APPROVAL)

    def on_mount(self) -> None:
        """Begin to read; count down the time that is left."""
        self.query_one(VerticalScroll).focus()
        self._tick()
        self.set_interval(1.0, self._tick)
        threading.Thread(target=self._read, name="lumctl-asked-plan", daemon=True).start()

    def action_back(self) -> None:
        """Close the question, else leave without an answer."""
        question = self.query_one(Question)
        if not question.opened:
            self.dismiss()
            return
        question.close()
        self.query_one(VerticalScroll).focus()

    def action_answer(self, approve: bool) -> None:
        """Ask for a yes to the answer."""
        if reason := self.context.acts.forbidden:
            self._say(reason)
        elif self._plan is None:
            self._say("the plan was not read yet: nothing can be said to what is not seen")
        elif self._settled or self._asked() is None:
            self._say("it waits for no answer any more")
        else:
            self._approve = approve
            self._say("")
            self.query_one(Question).ask(self._question())

    def on_question_answered(self, event: Question.Answered) -> None:
        """Answer on a typed yes; anything else does nothing and says so."""
        event.stop()
        agreed, comment = typed_yes(event.text)
        if not agreed:
            self.query_one(Question).ask(f"{NO_YES}  {self._question()}")
            return
        self.query_one(Question).close()
        self.query_one(VerticalScroll).focus()
        self._say("writing the answer down")
        # No daemon: an answer that was given is written down, even if the screen is closed meanwhile.
        threading.Thread(target=self._answer, args=(self._approve, comment), name="lumctl-answer").start()

    def on_plan_read(self, event: PlanRead) -> None:
        """Show the plan."""
        event.stop()
        self._plan = event.plan
        text = Text()
        if event.plan is not None:
            text.append(f"{event.plan.title}\n\n", style=HEADING_STYLE)
            text.append("\n".join(event.plan.lines))
        self.query_one("#plan", Static).update(text)
        self._say(f"not read: {event.trouble}" if event.trouble else "")

    def on_plan_answered(self, event: PlanAnswered) -> None:
        """Say what came of it, and look again."""
        event.stop()
        self._settled = event.view.done
        self._say("\n".join((event.view.outcome, *event.view.lines)))
        self._tick()
        self.post_message(RefreshWanted())

    def _say(self, text: str) -> None:
        self.query_one(Answer).say(text)

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

    def _question(self) -> str:
        plan = f"{self._plan_id} ({self._plan.title if self._plan else ''})"
        how = "Type yes (and why, if you like) and press enter; esc leaves."
        if not self._approve:
            return f"Reject {plan} for TARGET {self.context.target}? It is not applied. {how}"
        asked = self._asked()
        by_itself = asked is not None and str(asked["made_by"]).startswith("autopilot:")
        then = "the autopilot applies it at once if the fault still stands" if by_itself else "it may then be applied"
        return f"Approve {plan} for TARGET {self.context.target}, in your own name? Then {then}. {how}"

    def _read(self) -> None:
        try:
            self.post_message(PlanRead(self.context.sources.asked_plan(self._rack, self._plan_id)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(PlanRead(None, one_line(error)))

    def _answer(self, approve: bool, comment: str) -> None:
        try:
            view = self.context.acts.answer_plan(self._rack, self._plan_id, comment, approve=approve)
        except Exception as error:  # noqa: BLE001 - as above
            view = ApplyView(f"not answered: {one_line(error)}", done=False, error=error)
        self.post_message(PlanAnswered(view))
