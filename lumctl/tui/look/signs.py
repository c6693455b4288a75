"""The meaning of every sign of the dashboard, for the help and for the line above the picture of the racks; pure."""

from collections.abc import Collection, Mapping

from rich.text import Text

from lumctl.health.states import SEVERITY, State
from lumctl.tui.look.marks import STATE_STYLES, Marks

_MEANINGS: Mapping[State, str] = {
    State.OK: "Read, and nothing is wrong; of a step: done.",
    State.DEGRADED: "Works, but needs attention, or a change is in progress; of a step: skipped or undone.",
    State.FAILED: "Does not work; of a step: failed.",
    State.UNKNOWN: "Not read, or its state is not proved by any evidence.",
    State.DISABLED: "Taken out of service; of a receiver in a change: it hears its old transmitter so far.",
}
_SIGNS: tuple[tuple[str, str, str], ...] = (
    (">", ">", "The selected accelerator; of a step: in progress."),
    ("*", "*", "Light joins this accelerator, or this link, to the selected one; of a plan's spares: chosen."),
    ("s", "s", "A spare."),
    ("-", "-", "No reading; of a plan: a circuit that it removes."),
    ("+  ~", "+  ~", "Of a plan: a circuit that it adds; an accelerator that it replaces."),
    ("!", "!", "Of a plan: a warning; in the links: a receiver hears a transmitter that it should not hear."),
    ("dark", "dark", "No light at all; x in a curve."),
    ("↔  →", "<->  ->", "Between two ends: each sends to the other; only the first sends, to the second."),
    ("->", "->", "Between two powers: before the change, and now."),
    ("12 s !", "12 s !", "The reading is too old to rely on."),
    ("▌", "*", "At the left of a line: it is marked for p, a, w, d and h."),
    ("▾  ▸", "-  +", "Lines below this one are shown; they are folded away."),
    ("▲  ▼", "^  v", "The table is sorted by this column, in ascending order; in descending order."),
    ("…", ".. ~", "The text is cut here."),
    ("│", "|", "In a bar: a limit."),
    ("┊", "!", "In a curve: an event at this time; the list below explains it by its digit."),
    ("─●", "--o", "In a timeline: when it happened, between the first and the last event."),
)
"""Each sign, its form in ASCII, and its meaning. The pictures of meshes and tori have legends of their own."""


def state_signs(marks: Marks) -> list[tuple[Text, str]]:
    """The sign and word of each state, with its meaning."""
    return [(Text(marks.state(state), STATE_STYLES[state]), told) for state, told in _MEANINGS.items()]


def other_signs(marks: Marks) -> list[tuple[Text, str]]:
    """Each other sign, with its meaning."""
    return [(Text(plain if marks.ascii_only else sign), told) for sign, plain, told in _SIGNS]


def with_states(
    line: str, marks: Marks, shown: Collection[State], width: int, words: Mapping[State, str] | None = None
) -> tuple[str, bool]:
    """The line with the signs of the states that are shown, without ok, the worst first, and whether all fit.

    ``words`` replaces the names of some states.
    """
    words = words or {}
    for state in sorted(set(shown) - {State.OK}, key=SEVERITY.index, reverse=True):
        longer = f"{line}, {marks.glyphs.get(state, '?')} {words.get(state, state)}"
        if len(longer) > width:
            return line, False
        line = longer
    return line, True
