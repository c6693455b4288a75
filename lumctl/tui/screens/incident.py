"""The screen of an incident: its cause, what it touches, every finding; a swap and an acknowledgement from here."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from rich.text import Text
from textual.message import Message
from textual.widget import Widget

from lumctl.tui.panes.incidents import members_pane
from lumctl.tui.panes.rows import Row
from lumctl.tui.screens.list import ListingScreen
from lumctl.tui.screens.main import PlanWanted, RefreshWanted
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.incidents import (
    accelerator_of,
    case_of,
    consequences,
    head_text,
    more_text,
    no_accelerator,
    to_acknowledge,
)
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.widgets.prompt import Question


@dataclass
class Acknowledged(Message):
    """The result of an acknowledgement in a line; ``done`` if it was recorded."""

    line: str
    done: bool


class IncidentScreen(ListingScreen, keys="incident"):
    """One incident, for as long as it lasts."""

    def __init__(self, key: str, context: ScreenContext) -> None:
        super().__init__(f"incident {key.partition(':')[2]}", members_pane(key), context)
        self._key = key
        self._asked_of: tuple[str, ...] = ()

    def head(self, seen: RecordedLook) -> Text:
        """Cause, since when, who knows of it, what to do."""
        return head_text(seen, case_of(seen, self._key), self.shared.marks, self.shared.now())

    def more(self, seen: RecordedLook, row: Row | None) -> Text:
        """The findings of the member under the cursor."""
        return more_text(seen, case_of(seen, self._key), row, self.shared.marks, self.shared.now())

    def questions(self) -> Iterable[Widget]:
        """Why a person acknowledges it."""
        yield Question()

    def action_plan_swap(self) -> None:
        """Plan a swap of the accelerator that is at fault."""
        seen = self.shared.seen()
        if seen is None or (case := case_of(seen, self._key)) is None:
            self.say("it is over: there is nothing to swap")
        elif seen.forbidden:
            self.say(seen.forbidden)
        elif (accelerator := accelerator_of(seen, case)) is not None:
            self.post_message(PlanWanted(accelerator))
        else:
            self.say(no_accelerator(seen, case))

    def action_acknowledge(self) -> None:
        """Ask for a comment, or report why nothing can be acknowledged."""
        seen = self.shared.seen()
        case = case_of(seen, self._key) if seen is not None else None
        if reason := self.shared.acts.forbidden:
            self.say(reason)
        elif seen is None or case is None:
            self.say("it is over: there is nothing to acknowledge")
        elif not (components := to_acknowledge(seen, case)):
            self.say("a person knows of every finding already; it is undone by: lumctl health ack --clear")
        else:
            self._asked_of = components
            self.say("")
            self.query_one(Question).ask(f"{consequences(seen, case)} Type why and press enter; esc leaves it.")

    def action_back(self) -> None:
        """Close the question, else go back."""
        question = self.query_one(Question)
        if question.opened:
            question.close()
            self.table.focus()
            self.say("nothing was acknowledged")
        else:
            super().action_back()

    def on_question_answered(self, event: Question.Answered) -> None:
        """Acknowledge, once there is a reason."""
        event.stop()
        question = self.query_one(Question)
        if not event.text:
            self.say("an acknowledgement needs a reason; nothing was done")
            return
        question.close()
        self.table.focus()
        self.say("acknowledging")
        arguments = (self._asked_of, event.text)
        threading.Thread(target=self._in_thread, args=arguments, name="lumctl-ack", daemon=True).start()

    def on_acknowledged(self, event: Acknowledged) -> None:
        """Show the result, and read again."""
        event.stop()
        self.say(event.line)
        if event.done:
            self.post_message(RefreshWanted())

    def _in_thread(self, components: tuple[str, ...], comment: str) -> None:
        try:
            self.post_message(Acknowledged(self.shared.acts.acknowledge(components, comment), done=True))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(Acknowledged(f"not acknowledged: {one_line(error)}", done=False))
