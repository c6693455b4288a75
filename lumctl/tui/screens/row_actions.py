"""Actions on the marked rows of a table, or on the selected one: acknowledge, open maintenance, drain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from textual.message import Message

from lumctl.errors import UsageError
from lumctl.time_text import length_s
from lumctl.tui.panes.rows import Pane, Row
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.incidents import case_of, named, to_acknowledge
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.widgets.prompt import Question


class RowAct(StrEnum):
    """An action on rows."""

    ACKNOWLEDGE = "acknowledge"
    MAINTAIN = "maintain"
    DRAIN = "drain"


@dataclass
class ActWanted(Message):
    """Acknowledge or maintain components for the user's reason; ``for_s`` is the duration of maintenance (seconds)."""

    act: RowAct
    components: tuple[str, ...]
    comment: str
    for_s: float = 0.0


@dataclass
class ActEnded(Message):
    """The result of an action on rows, in one line; ``done`` if it was recorded."""

    line: str
    done: bool


@dataclass
class DrainWanted(Message):
    """Plan to move every rank of some components to spares, whatever their health."""

    components: tuple[str, ...]


class RowActions:
    """Asks for the reason, and for maintenance for the duration, before an action on rows."""

    def __init__(
        self,
        question: Callable[[], Question],
        say: Callable[[str], None],
        post: Callable[[Message], object],
    ) -> None:
        self._question = question
        self._say = say
        self._post = post
        self._asked: tuple[RowAct, tuple[str, ...]] | None = None

    @property
    def asks(self) -> bool:
        """Whether a question is open."""
        return self._asked is not None

    def begin(self, act: RowAct, seen: RecordedLook | None, pane: Pane, rows: Sequence[Row]) -> None:
        """Ask for the reason, or request the plan of a drain; report why if nothing can be done to these rows."""
        if seen is None or seen.forbidden:
            self._say(seen.forbidden if seen else "nothing has been read yet")
        elif not pane.can_act:
            self._say(f"{pane.noun} are not components: choose from the accelerators (2) or the incidents (5)")
        elif not rows:
            self._say("no line is selected")
        elif act is RowAct.DRAIN:
            self._post(DrainWanted(tuple(dict.fromkeys(row.component for row in rows))))
        elif components := _components_of(act, seen, pane, rows):
            self._ask(act, components, _already_acknowledged(seen, rows) if _by_incidents(act, pane) else ())
        else:
            self._say("every finding is already acknowledged; to withdraw that: lumctl health ack --clear")

    def _ask(self, act: RowAct, components: tuple[str, ...], left_out: tuple[str, ...]) -> None:
        # Kept from the question to the answer: the rows may change while the operator types.
        self._asked = (act, components)
        self._say(f"left out, because it is already acknowledged: {named(left_out)}" if left_out else "")
        names = named(self._asked[1])
        if act is RowAct.ACKNOWLEDGE:
            asked = f"Acknowledge the findings of {names}? Type a reason and press enter; esc cancels."
        else:
            asked = f"Maintenance of {names}? Type the duration and a reason, such as: 2h new fans; esc cancels."
        self._question().ask(asked)

    def leave(self) -> None:
        """Close the question without doing anything."""
        self._asked = None
        self._question().close()
        self._say("nothing was done")

    def answered(self, text: str) -> bool:
        """Request the action if the answer is complete; return whether the question is closed."""
        if self._asked is None:
            return True
        act, components = self._asked
        for_s = 0.0
        try:
            if act is RowAct.MAINTAIN:
                duration, _, text = text.partition(" ")
                for_s = length_s(duration)
        except UsageError as error:
            self._say(one_line(error))
            return False
        if not text.strip():
            self._say("a reason is needed; nothing was done")
            return False
        # Before the request: a second enter then finds no question, and records nothing twice.
        self._asked = None
        self._question().close()
        self._say("recording")
        self._post(ActWanted(act, components, text.strip(), for_s))
        return True


def _components_of(act: RowAct, seen: RecordedLook, pane: Pane, rows: Sequence[Row]) -> tuple[str, ...]:
    """The components of rows; to acknowledge incidents, their members with faults that are not acknowledged."""
    if _by_incidents(act, pane):
        cases = (case_of(seen, row.key) for row in rows)
        found = [each for case in cases if case is not None for each in to_acknowledge(seen, case)]
    else:
        found = [row.component for row in rows]
    return tuple(dict.fromkeys(found))


def _by_incidents(act: RowAct, pane: Pane) -> bool:
    """Whether an action on the rows of a pane is one on the members of incidents."""
    return act is RowAct.ACKNOWLEDGE and pane.opens == "incident"


def _already_acknowledged(seen: RecordedLook, rows: Sequence[Row]) -> tuple[str, ...]:
    """The incidents among rows that have nothing left to acknowledge."""
    cases = ((row, case_of(seen, row.key)) for row in rows)
    return tuple(row.component for row, case in cases if case is None or not to_acknowledge(seen, case))
