"""Every key of the dashboard, once: bindings, the line of keys at the foot and the help are all made from here."""

from collections.abc import Iterable
from dataclasses import dataclass

from textual.binding import Binding

from lumctl.tui.panes import PANES


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a key does.

    ``keys`` are Textual's names (empty: the words are typed into a line), ``shown`` how a person calls them, ``label``
    the word for the foot of the screen (empty: in the help only). A key with ``priority`` is no letter for a line.
    """

    keys: str
    shown: str
    action: str
    label: str
    help: str
    priority: bool = False


@dataclass(frozen=True, slots=True)
class ScreenKeys:
    """The keys of one screen; ``where`` is how the help calls it (empty: the main screen, which comes first)."""

    where: str
    actions: tuple[Action, ...]


_FOOT = {"incidents": "incidents"}
"""The panes that the foot of the screen names too: where the way to a fault's end begins."""

BACK = Action("escape", "esc", "back", "back", "Back to where you came from.")
QUIT = Action("q", "q", "app.quit", "quit", "Quit. While a plan is being applied it asks first.")

MAIN: tuple[Action, ...] = (
    *(
        Action(str(number % 10), str(number % 10), f"show_pane('{pane.id}')", _FOOT.get(pane.id, ""), pane.help)
        for number, pane in enumerate(PANES, start=1)
    ),
    Action("tab", "tab", "turn(1)", "", "The next pane; while going to something, complete the word."),
    Action("shift+tab", "shift+tab", "turn(-1)", "", "The pane before."),
    Action("j", "j", "move(1)", "", "One line down, as the arrow key does."),
    Action("k", "k", "move(-1)", "", "One line up."),
    Action("enter", "enter", "details", "details", "All that is known of the selected component."),
    Action("space", "space", "fold", "", "Fold the rack of the selected line away, or unfold it."),
    Action("slash", "/", "filter", "filter", "Show only lines that hold these words."),
    Action("colon", ":", "go_to", "go to", "Go to a pane or a component by its name."),
    Action("p", "p", "plan_swap", "plan swap", "Plan a spare in the selected failed accelerator's place."),
    Action("r", "r", "refresh_now", "", "Read everything again now."),
    Action("escape", "esc", "back", "", "Close the line that is open, else take the filter away."),
    Action("ctrl+p", "ctrl+p", "app.command_palette", "", "Find any action or name by typing a part of it."),
    Action("question_mark", "?", "app.help", "help", "These keys, and what the marks mean."),
    QUIT,
)

DETAIL: tuple[Action, ...] = (
    BACK,
    Action("h", "h", "plot", "history", "Its readings over time, as a plot."),
    Action("p", "p", "plan_swap", "plan swap", "Plan a spare in this accelerator's place."),
    QUIT,
)

PLAN: tuple[Action, ...] = (
    Action("", "y enter", "", "apply", "Apply the plan: type y or yes, then enter."),
    Action("v", "v", "view", "view", "The change of the meshes as a picture, or the plan's text again.", priority=True),
    Action("escape", "esc", "back", "leave", "Leave without applying. Not while it is being applied."),
    Action("up", "up", "scroll_plan(-1)", "", "Scroll the plan up; pgup by a page."),
    Action("down", "down", "scroll_plan(1)", "", "Scroll it down; pgdn by a page."),
    Action("pageup", "", "scroll_plan(-10)", "", ""),
    Action("pagedown", "", "scroll_plan(10)", "", ""),
    Action("q", "q", "app.quit", "", "Quit, once nothing more is to be typed."),
)

MOVING: tuple[Action, ...] = (
    Action("j", "j", "move(1)", "", "One line down, as the arrow key does."),
    Action("k", "k", "move(-1)", "", "One line up."),
)

INCIDENT: tuple[Action, ...] = (
    BACK,
    Action("enter", "enter", "open", "details", "All that is known of the selected member."),
    Action("p", "p", "plan_swap", "plan swap", "Plan a spare in the place of the accelerator at fault."),
    Action("a", "a", "acknowledge", "acknowledge", "Say that you know of it, and why nothing is done yet."),
    *MOVING,
    QUIT,
)

RUN: tuple[Action, ...] = (
    BACK,
    Action("u", "u", "take_back", "take back", "Plan to take the run back; it is asked before anything is done."),
    QUIT,
)

JOB: tuple[Action, ...] = (
    BACK,
    Action("enter", "enter", "open", "details", "All that is known of the accelerator of the selected rank."),
    Action("p", "p", "plan_swap", "plan swap", "Plan a spare in the place of the selected rank's accelerator."),
    *MOVING,
    QUIT,
)

HELP: tuple[Action, ...] = (BACK, QUIT)

MESH: tuple[Action, ...] = (
    BACK,
    Action("down,j", "j", "choose(1)", "choose", "Have the next circuit stand out, as the arrow key does."),
    Action("up,k", "k", "choose(-1)", "", "The circuit before."),
    Action("enter", "enter", "details", "details", "All that is known of the chosen circuit."),
    Action("a", "a", "choose_none", "all alike", "Draw all circuits alike again."),
    Action("i", "i", "device_details", "device", "All that is known of the device itself."),
    Action("shift+up", "shift+arrow", "scroll_chip(0, -4)", "", "Scroll the drawing; without shift the table."),
    Action("shift+down", "", "scroll_chip(0, 4)", "", ""),
    Action("shift+left", "", "scroll_chip(-8, 0)", "", ""),
    Action("shift+right", "", "scroll_chip(8, 0)", "", ""),
    Action("r", "r", "refresh_now", "refresh", "Ask the device again now."),
    QUIT,
)

RUNBOOK: tuple[Action, ...] = (
    Action("escape", "esc", "back", "back", "Stop the replay that is under way; else back to where you came from."),
    Action("s", "s", "replay", "replay on sim", "Replay it on a simulator of its own, a step at a time."),
    Action("n,space", "n", "next_step", "next step", "Do the step before which the replay waits; space does so too."),
    Action("g", "g", "to_the_end", "to the end", "Do all steps that are left without waiting."),
    Action("c", "c", "compare", "compare", "Mark it; on another runbook: show how the two differ."),
    QUIT,
)

COMPARED: tuple[Action, ...] = (BACK, QUIT)

PLOT: tuple[Action, ...] = (
    BACK,
    Action("right_square_bracket,right,tab", "]", "turn(1)", "next reading", "The next reading; right does so too."),
    Action("left_square_bracket,left,shift+tab", "[", "turn(-1)", "", "The reading before; left does so too."),
    Action("plus,equals_sign", "+", "zoom(-1)", "nearer", "Less time, in finer steps: down to 5 minutes."),
    Action("minus", "-", "zoom(1)", "farther", "More time: up to 7 days."),
    QUIT,
)

POLICY: tuple[Action, ...] = (
    Action("escape", "esc", "back", "back", "Close the question that is open; else back to where you came from."),
    Action("x", "x", "switch", "stop/start", "Stop the rack's autopilot, or start it again; asks first."),
    QUIT,
)

APPROVAL: tuple[Action, ...] = (
    Action("escape", "esc", "back", "back", "Close the question that is open; else back without an answer."),
    Action("y", "y", "answer(True)", "approve", "Approve the plan; asks first."),
    Action("n", "n", "answer(False)", "reject", "Reject the plan; asks first."),
    QUIT,
)

RACK: tuple[Action, ...] = (
    BACK,
    Action("left,h", "arrows", "choose(-1, 0)", "choose", "Choose another accelerator; h j k l do so too."),
    Action("right,l", "", "choose(1, 0)", "", ""),
    Action("up,k", "", "choose(0, -1)", "", ""),
    Action("down,j", "", "choose(0, 1)", "", ""),
    Action("enter", "enter", "details", "details", "All that is known of the chosen accelerator."),
    Action("p", "p", "plan_swap", "plan swap", "Plan a spare in its place."),
    Action("pageup", "pgup", "scroll_links(-4)", "", "Scroll the links; pgdn does so too."),
    Action("pagedown", "", "scroll_links(4)", "", ""),
    QUIT,
)

LEAVING: tuple[Action, ...] = (
    Action("y", "y", "answer(True)", "quit when it has ended", "Quit as soon as the apply has ended."),
    Action("n,escape", "esc", "answer(False)", "stay", "Stay."),
)

SCREENS: tuple[ScreenKeys, ...] = (
    ScreenKeys("", MAIN),
    ScreenKeys("on the screen of a component", DETAIL),
    ScreenKeys("on the screen of readings over time", PLOT),
    ScreenKeys("on the screen of a swap", PLAN),
    ScreenKeys("on the screen of an incident", INCIDENT),
    ScreenKeys("on the screen of a run", RUN),
    ScreenKeys("on the screen of a job", JOB),
    ScreenKeys("on the screen of a rack", RACK),
    ScreenKeys("on the screen of a mesh or a switch", MESH),
    ScreenKeys("on the screen of a runbook", RUNBOOK),
    ScreenKeys("on the screen of two runbooks", COMPARED),
    ScreenKeys("on the screen of an autopilot, a policy or a decision", POLICY),
    ScreenKeys("on the screen of a plan that waits for approval", APPROVAL),
    ScreenKeys("when asked whether to quit", LEAVING),
    ScreenKeys("in this help", HELP),
)
"""Every screen with its keys, as the help lists them. A screen whose keys are not here fails the tests."""


CHANGES = frozenset({"plan_swap", "take_back", "acknowledge", "switch", "answer(True)", "answer(False)"})
"""The actions that lead to a change: not offered where the dashboard only shows."""


def bindings(actions: Iterable[Action]) -> list[Binding]:
    """The actions as Textual binds them."""
    return [
        Binding(
            action.keys,
            action.action,
            action.label or action.help,
            show=False,
            key_display=action.shown or None,
            tooltip=action.help,
            priority=action.priority,
        )
        for action in actions
        if action.keys
    ]
