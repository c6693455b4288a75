"""Every key of the dashboard, once: bindings, the line of keys at the foot and the help are all made from here."""

from collections.abc import Iterable, Mapping
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

    name: str
    where: str
    actions: tuple[Action, ...]


def _key(keys: str, action: str, label: str, told: str, *, shown: str = "", priority: bool = False) -> Action:
    """What a key does; it is shown by its own name where no other is given."""
    return Action(keys, shown or keys, action, label, told, priority)


def _too(keys: str, action: str) -> Action:
    """A key that another key's help names, or that only reports why it does nothing."""
    return Action(keys, "", action, "", "")


def _esc(label: str, told: str) -> Action:
    return _key("escape", "back", label, told, shown="esc")


def _ask(label: str = "", *, priority: bool = False) -> Action:
    told = "The keys of this screen, all others, and what the marks mean."
    return _key("question_mark", "app.help", label, told, shown="?", priority=priority)


_BACK = _esc("back", "Back to where you came from.")
_QUIT = _key("q", "app.quit", "quit", "Quit. While a plan is being applied it asks first.")
_HISTORY = _key("h", "plot", "history", "Its readings over time, as a plot.")
_NO_HISTORY, _NO_SWAP = _too("h", "plot"), _too("p", "plan_swap")
"""Keys without a target are not offered; pressing one reports the reason."""
_MOVING = (
    _key("j", "move(1)", "", "One line down, as the arrow key does."),
    _key("k", "move(-1)", "", "One line up."),
)
_FOOT = {"incidents": "incidents"}
"""The panes that the foot of the screen names too: where the way to a fault's end begins."""


def _screen(name: str, where: str, *own: Action) -> ScreenKeys:
    """The keys of a screen: the way back first, help and quit last, unless it has its own for these."""
    bound = {key for action in own for key in action.keys.split(",")}
    before = () if "escape" in bound else (_BACK,)
    after = [key for key in (_ask("help"), _QUIT) if key.keys not in bound]
    return ScreenKeys(name, where, (*before, *own, *after))


SCREENS: tuple[ScreenKeys, ...] = (
    _screen(
        "main",
        "",
        *(
            _key(str(number % 10), f"show_pane('{pane.id}')", _FOOT.get(pane.id, ""), pane.help)
            for number, pane in enumerate(PANES, start=1)
        ),
        _key("tab", "turn(1)", "", "The next pane; while going to something, complete the word."),
        _key("shift+tab", "turn(-1)", "", "The pane before."),
        *_MOVING,
        _key("enter", "details", "details", "All that is known of the selected component."),
        _key("space", "fold", "", "Fold the rack of the selected line away, or unfold it."),
        _key("slash", "filter", "filter", "Show only lines that hold these words.", shown="/"),
        _key("colon", "go_to", "go to", "Go to a pane or a component by its name.", shown=":"),
        _key("p", "plan_swap", "plan swap", "Plan a spare in the selected failed accelerator's place."),
        _key("r", "refresh_now", "", "Read everything again now."),
        _esc("", "Close the line that is open, else take the filter away."),
        _key("ctrl+p", "app.command_palette", "", "Find any action or name by typing a part of it."),
    ),
    _screen(
        "accelerator",
        "on the screen of an accelerator",
        _HISTORY,
        _key("p", "plan_swap", "plan swap", "Plan a spare in this accelerator's place."),
    ),
    _screen("transponder", "on the screen of a transponder", _HISTORY, _NO_SWAP),
    _screen("facts", "on the screen of a host, a circuit, or the details of a rack or a device", _NO_HISTORY, _NO_SWAP),
    _screen(
        "plot",
        "on the screen of readings over time",
        _key("right_square_bracket,right,tab", "turn(1)", "next reading", "The next reading; right too.", shown="]"),
        _key("left_square_bracket,left,shift+tab", "turn(-1)", "", "The reading before; left does so too.", shown="["),
        _key("plus,equals_sign", "zoom(-1)", "nearer", "Less time, in finer steps: down to 5 minutes.", shown="+"),
        _key("minus", "zoom(1)", "farther", "More time: up to 7 days.", shown="-"),
    ),
    _screen(
        "plan",
        "on the screen of a swap",
        _key("", "", "apply", "Apply the plan: type y or yes, then enter.", shown="y enter"),
        _key("v", "view", "view", "The change of the meshes as a picture, or the plan's text again.", priority=True),
        _key("b", "runbook", "", "The runbook of what was done, once it is done."),
        _esc("leave", "Leave without applying. Not while it is being applied."),
        _key("up", "scroll_plan(-1)", "", "Scroll the plan up; pgup by a page."),
        _key("down", "scroll_plan(1)", "", "Scroll it down; pgdn by a page."),
        _too("pageup", "scroll_plan(-10)"),
        _too("pagedown", "scroll_plan(10)"),
        _ask("help", priority=True),
        _key("q", "app.quit", "", "Quit, once nothing more is to be typed."),
    ),
    _screen(
        "incident",
        "on the screen of an incident",
        _key("enter", "open", "details", "All that is known of the selected member."),
        _key("p", "plan_swap", "plan swap", "Plan a spare in the place of the accelerator at fault."),
        _key("a", "acknowledge", "acknowledge", "Say that you know of it, and why nothing is done yet."),
        *_MOVING,
    ),
    _screen(
        "run",
        "on the screen of a run",
        _key("b", "runbook", "runbook", "Its runbook, to be read, replayed on a simulator and compared."),
        _key("u", "take_back", "take back", "Plan to take the run back; it is asked before anything is done."),
    ),
    _screen(
        "job",
        "on the screen of a job",
        _key("enter", "open", "details", "All that is known of the accelerator of the selected rank."),
        _key("p", "plan_swap", "plan swap", "Plan a spare in the place of the selected rank's accelerator."),
        *_MOVING,
    ),
    _screen(
        "rack",
        "on the screen of a rack",
        _key("left,h", "choose(-1, 0)", "choose", "Choose another accelerator; h j k l do so too.", shown="arrows"),
        _too("right,l", "choose(1, 0)"),
        _too("up,k", "choose(0, -1)"),
        _too("down,j", "choose(0, 1)"),
        _key("enter", "details", "details", "All that is known of the chosen accelerator."),
        _key("i", "rack_details", "rack", "All that is known of the rack itself."),
        _key("p", "plan_swap", "plan swap", "Plan a spare in its place."),
        _key("pageup", "scroll_links(-4)", "", "Scroll the links; pgdn does so too.", shown="pgup"),
        _too("pagedown", "scroll_links(4)"),
    ),
    _screen(
        "mesh",
        "on the screen of a mesh or a switch",
        _key("down,j", "choose(1)", "choose", "Have the next circuit stand out, as the arrow key does.", shown="j"),
        _key("up,k", "choose(-1)", "", "The circuit before.", shown="k"),
        _key("enter", "details", "details", "All that is known of the chosen circuit."),
        _key("a", "choose_none", "all alike", "Draw all circuits alike again."),
        _key("i", "device_details", "device", "All that is known of the device itself."),
        _key("shift+up", "scroll_chip(0, -4)", "", "Scroll the drawing; without shift the table.", shown="shift+arrow"),
        _too("shift+down", "scroll_chip(0, 4)"),
        _too("shift+left", "scroll_chip(-8, 0)"),
        _too("shift+right", "scroll_chip(8, 0)"),
        _key("r", "refresh_now", "", "Ask the device again now."),
    ),
    _screen(
        "runbook",
        "on the screen of a runbook",
        _esc("back", "Stop the replay that is under way; else back to where you came from."),
        _key("s", "replay", "replay on sim", "Replay it on a simulator of its own, a step at a time."),
        _key("n,space", "next_step", "next step", "Do the step before which the replay waits; space too.", shown="n"),
        _key("g", "to_the_end", "to end", "Do all steps that are left without waiting."),
        _key("c", "compare", "compare", "Mark it; on another runbook: show how the two differ."),
    ),
    _screen("comparison", "on the screen of two runbooks"),
    _screen(
        "policy",
        "on the screen of an autopilot, a policy or a decision",
        _esc("back", "Close the question that is open; else back to where you came from."),
        _key("x", "switch", "stop/start", "Stop the rack's autopilot, or start it again; asks first."),
    ),
    _screen(
        "approval",
        "on the screen of a plan that waits for approval",
        _esc("back", "Close the question that is open; else back without an answer."),
        _key("v", "view", "view", "The change of the meshes as a picture, or the plan's text again."),
        _key("y", "answer(True)", "approve", "Approve the plan; asks first."),
        _key("n", "answer(False)", "reject", "Reject the plan; asks first."),
    ),
    ScreenKeys(
        "leaving",
        "when asked whether to quit",
        (
            _key("y", "answer(True)", "quit when it has ended", "Quit as soon as the apply has ended."),
            _key("n,escape", "answer(False)", "stay", "Stay.", shown="esc"),
        ),
    ),
    ScreenKeys(
        "help",
        "in this help",
        (_key("escape,question_mark", "back", "back", "Back to where you came from.", shown="esc"), _QUIT),
    ),
)
"""Every screen with its keys, as the help lists them. A screen whose keys are not here fails the tests."""

KEYS: Mapping[str, ScreenKeys] = {each.name: each for each in SCREENS}
"""The same by the name of the screen."""

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
