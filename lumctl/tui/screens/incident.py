"""The screen of an incident: its cause, members and findings, with keys to swap and to acknowledge."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.message import Message
from textual.widget import Widget

from lumctl.process_exit import FinishingThread
from lumctl.tui.panes.incidents import members_pane
from lumctl.tui.panes.rows import Row
from lumctl.tui.screens.list import ListingScreen
from lumctl.tui.screens.requests import PlanWanted, RefreshWanted, Wanted
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.incidents import (
    accelerators_of,
    case_of,
    consequences,
    head_text,
    more_text,
    no_accelerator,
    to_acknowledge,
)
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.subject import WorkSubject
from lumctl.tui.views.swap_choice import swaps_of_incident
from lumctl.tui.widgets.prompt import Question

TIMELINE_KIND = "timeline"
"""The kind of the screen with an incident's timeline."""


@dataclass
class Acknowledged(Message):
    """The result of an acknowledgement in one line; ``done`` if it was recorded."""

    line: str
    done: bool


class IncidentScreen(ListingScreen, keys="incident"):
    """Shows one incident; when it has ended, a message reports that."""

    def __init__(self, key: str, context: ScreenContext) -> None:
        super().__init__(f"incident {key.partition(':')[2]}", members_pane(key), context)
        self._key = key
        self._asked_of: tuple[str, ...] = ()

    def head(self, seen: RecordedLook) -> Text:
        """The cause, its duration, the acknowledgements, and what to do."""
        return head_text(seen, case_of(seen, self._key), self.shared.marks, self.shared.now())

    def more(self, seen: RecordedLook, row: Row | None) -> Text:
        """The findings of the member under the cursor."""
        return more_text(seen, case_of(seen, self._key), row, self.shared.marks, self.shared.now())

    def replaced(self, seen: RecordedLook, row: Row | None) -> Sequence[str]:  # noqa: ARG002 - it is of the whole incident
        """The accelerators whose replacement repairs the incident."""
        return swaps_of_incident(seen, self._key)

    def questions(self) -> Iterable[Widget]:
        """The line for the reason of an acknowledgement."""
        yield Question()

    def subject(self) -> WorkSubject:
        """This incident."""
        return WorkSubject(incident=self._key)

    def action_plan_swap(self) -> None:
        """Ask for a swap of the accelerators whose replacement repairs the incident."""
        seen = self.shared.seen()
        if seen is None or (case := case_of(seen, self._key)) is None:
            self.say("it has ended: there is nothing to swap")
        elif seen.forbidden:
            self.say(seen.forbidden)
        elif accelerators := accelerators_of(seen, case):
            self.post_message(PlanWanted(accelerators[0], accelerators[1:]))
        else:
            self.say(no_accelerator(seen, case))

    def action_timeline(self) -> None:
        """Open the timeline of the incident."""
        self.post_message(Wanted(TIMELINE_KIND, self._key))

    def action_acknowledge(self) -> None:
        """Ask for a reason, or report why nothing can be acknowledged."""
        seen = self.shared.seen()
        case = case_of(seen, self._key) if seen is not None else None
        if reason := self.shared.acts.forbidden:
            self.say(reason)
        elif seen is None or case is None:
            self.say("it has ended: there is nothing to acknowledge")
        elif not (components := to_acknowledge(seen, case)):
            self.say("every finding is already acknowledged; to withdraw that: lumctl health ack --clear")
        else:
            # The components that the question is about; those found by the time of the answer may be others.
            self._asked_of = components
            self.say("")
            self.query_one(Question).ask(f"{consequences(seen, case)} Type a reason and press enter; esc cancels.")

    def action_back(self) -> None:
        """Close an open question, else go back."""
        question = self.query_one(Question)
        if question.opened:
            question.close()
            self.table.focus()
            self.say("nothing was acknowledged")
        else:
            super().action_back()

    def on_question_answered(self, event: Question.Answered) -> None:
        """Acknowledge the findings if a reason was typed."""
        event.stop()
        question = self.query_one(Question)
        # Two quick enters post two answers: the first one closes the question.
        if not question.opened:
            return
        if not event.text:
            self.say("an acknowledgement needs a reason; nothing was done")
            return
        question.close()
        self.table.focus()
        self.say("acknowledging")
        arguments = (self._asked_of, event.text)
        # Confirmed, so it is recorded even if the operator quits at once.
        FinishingThread(target=self._in_thread, args=arguments, name="lumctl-ack").start()

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
