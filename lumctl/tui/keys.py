"""Every key of the dashboard, once: bindings, the line of keys at the foot and the help are all made from here."""

from collections.abc import Iterable
from dataclasses import dataclass

from textual.binding import Binding

from lumctl.tui.panes import PANES


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a key does.

    ``keys`` are Textual's names (empty: the words are typed into a line), ``shown`` how a person calls them, ``label``
    the word for the foot of the screen (empty: in the help only).
    """

    keys: str
    shown: str
    action: str
    label: str
    help: str


BACK = Action("escape", "esc", "back", "back", "Back to where you came from.")
QUIT = Action("q", "q", "app.quit", "quit", "Quit. While a plan is being applied it asks first.")

MAIN: tuple[Action, ...] = (
    *(
        Action(str(number), str(number), f"show_pane('{pane.id}')", "", pane.help)
        for number, pane in enumerate(PANES, start=1)
    ),
    Action("tab", "tab", "turn(1)", "", "The next pane; while going to something, complete the word."),
    Action("shift+tab", "shift+tab", "turn(-1)", "", "The pane before."),
    Action("j", "j", "move(1)", "", "One line down, as the arrow key does."),
    Action("k", "k", "move(-1)", "", "One line up."),
    Action("enter", "enter", "details", "details", "All that is known of the selected component."),
    Action("slash", "/", "filter", "filter", "Show only lines that hold these words."),
    Action("colon", ":", "go_to", "go to", "Go to a pane or a component by its name."),
    Action("p", "p", "plan_swap", "plan swap", "Plan a spare in the selected failed accelerator's place."),
    Action("r", "r", "refresh_now", "refresh", "Read everything again now."),
    Action("escape", "esc", "back", "", "Close the line that is open, else take the filter away."),
    Action("question_mark", "?", "app.help", "help", "These keys, and what the marks mean."),
    QUIT,
)

DETAIL: tuple[Action, ...] = (
    BACK,
    Action("p", "p", "plan_swap", "plan swap", "Plan a spare in this accelerator's place."),
    QUIT,
)

PLAN: tuple[Action, ...] = (
    Action("", "y enter", "", "apply", "Apply the plan: type y or yes, then enter."),
    Action("escape", "esc", "back", "leave", "Leave without applying. Not while it is being applied."),
    Action("up", "up", "scroll_plan(-1)", "", "Scroll the plan up; pgup by a page."),
    Action("down", "down", "scroll_plan(1)", "", "Scroll it down; pgdn by a page."),
    Action("pageup", "", "scroll_plan(-10)", "", ""),
    Action("pagedown", "", "scroll_plan(10)", "", ""),
    Action("q", "q", "app.quit", "", "Quit, once nothing more is to be typed."),
)

HELP: tuple[Action, ...] = (BACK, QUIT)

LEAVING: tuple[Action, ...] = (
    Action("y", "y", "answer(True)", "quit when it has ended", "Quit as soon as the apply has ended."),
    Action("n,escape", "esc", "answer(False)", "stay", "Stay."),
)


def bindings(actions: Iterable[Action]) -> list[Binding]:
    """The actions as Textual binds them."""
    return [
        Binding(action.keys, action.action, action.label or action.help, show=False)
        for action in actions
        if action.keys
    ]
