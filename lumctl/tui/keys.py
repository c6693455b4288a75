"""All keys of the dashboard; bindings, the key bar and the help are made from this registry."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from textual.binding import Binding

from lumctl.tui.panes import PANES


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a key.

    ``keys`` are Textual's names of the keys (empty: the help describes text to type). ``shown`` is their name for
    people. ``label`` is the word in the key bar (empty: only the help has it). A key with ``priority`` also works while
    an input line has the focus.
    """

    keys: str
    shown: str
    action: str
    label: str
    help: str
    priority: bool = False


@dataclass(frozen=True, slots=True)
class ScreenKeys:
    """The keys of one screen; ``where`` is its name in the help (empty: the main screen, which comes first)."""

    name: str
    where: str
    actions: tuple[Action, ...]


def _key(keys: str, action: str, label: str, told: str, *, shown: str = "", priority: bool = False) -> Action:
    """An action with its key; ``shown`` defaults to Textual's name of the key."""
    return Action(keys, shown or keys, action, label, told, priority)


def _too(keys: str, action: str) -> Action:
    """An action without own help: another key's help names this key, or the key only reports why it does nothing."""
    return Action(keys, "", action, "", "")


def _esc(label: str, told: str) -> Action:
    return _key("escape", "back", label, told, shown="esc")


def _ask(label: str = "", *, priority: bool = False) -> Action:
    told = "The keys of this screen and of all others, and what the signs mean."
    return _key("question_mark", "app.help", label, told, shown="?", priority=priority)


_BACK = _esc("back", "Back to the previous screen.")
_QUIT = _key("q", "app.quit", "quit", "Quit. While a plan is being applied it asks first.")
_SUSPEND = _key("ctrl+z", "app.suspend_process", "", "Suspend to the shell; fg returns here.")
_HISTORY = _key("h", "plot", "history", "Its readings over time, as a plot.")
_NO_HISTORY, _NO_SWAP = _too("h", "plot"), _too("p", "plan_swap")
"""Keys that do nothing on a screen; they are not shown there, and pressing one reports the reason."""
_MATRIX = _key("x", "matrix", "links", "The receivers of the rail and what each hears: power and margin.")
_LOSSES = _key("b", "losses", "budget", "The remaining loss budget, as a histogram.")
_SHELL = _key("s", "work('shell')", "shell", "A shell on its host, over ssh: exit returns here.")
_OUTPUT = _key("l", "work('output')", "log", "The kernel log of its host, and the output of each probe.")
_RUNBOOK = _key("o", "work('runbook')", "", "The runbook of the last run that changed it.")
_TICKET = _key("y", "work('ticket')", "ticket", "Copy a ticket to the clipboard; tmux needs: set -s set-clipboard on.")
_SPARES_HELP = "Who waits for spares, how many are left, and which ranks each can replace."
_SPARES = _key("S", "app.spares", "", _SPARES_HELP)
_WORK = (_SHELL, _OUTPUT, _TICKET, _RUNBOOK)
"""Keys that open tools for the selected component."""
_MOVING = (
    _key("j", "move(1)", "", "One line down, as the arrow key does."),
    _key("k", "move(-1)", "", "One line up."),
    _key("right_square_bracket", "problem(1)", "", "The next line with a fault.", shown="]"),
    _key("left_square_bracket", "problem(-1)", "", "The previous line with a fault.", shown="["),
)
_SORTING = (
    _key("greater_than_sign", "sort(1)", "", "Sort by the next column; a click on its heading too.", shown=">"),
    _key(
        "less_than_sign",
        "sort(-1)",
        "",
        "Sort by the previous column; before the first comes the usual order.",
        shown="<",
    ),
    _key("R", "reverse", "", "Reverse the order of the lines."),
)
_FOOT = {"incidents": "incidents"}
"""The panes that the key bar names, with their labels: an operator starts with the incidents."""


def _screen(name: str, where: str, *own: Action) -> ScreenKeys:
    """The keys of a screen: first back, last suspend, help and quit, unless ``own`` binds these keys."""
    bound = {key for action in own for key in action.keys.split(",")}
    before = () if "escape" in bound else (_BACK,)
    after = [key for key in (_SUSPEND, _ask("help"), _QUIT) if key.keys not in bound]
    return ScreenKeys(name, where, (*before, *own, *after))


SCREENS: tuple[ScreenKeys, ...] = (
    _screen(
        "main",
        "",
        _key(
            "p",
            "plan_swap",
            "plan swap",
            "Plan spares for the selection if it failed, else for the headline's. For others: 5, then p.",
        ),
        _key("enter", "details", "details", "All details of the selected component."),
        _key(
            "m",
            "mark_or_measure",
            "measure",
            "On the racks: utilisation, temperature or power. In a table: mark the line for p, a, w and d; go down.",
        ),
        *(
            _key(str(number % 10), f"show_pane('{pane.id}')", _FOOT.get(pane.id, ""), pane.help)
            for number, pane in enumerate(PANES, start=1)
        ),
        _SHELL,
        _OUTPUT,
        _TICKET,
        _key("slash", "filter", "filter", "Show only lines that contain these words.", shown="/"),
        _key("S", "app.spares", "spares", _SPARES_HELP),
        _MATRIX,
        _LOSSES,
        _key("z", "torus", "", "The torus: where slices lie; place and release slices."),
        _RUNBOOK,
        _key("tab", "turn(1)", "", "The next pane; while typing a destination, complete the word."),
        _key("shift+tab", "turn(-1)", "", "The pane before."),
        *_MOVING,
        _key("t", "list_racks", "", "Show the racks as a table, or drawn again."),
        _key("space", "fold", "", "Drawn: the selected accelerator's rack. As a table: fold or unfold its rack."),
        _key("colon", "go_to", "go to", "Go to a pane or a component by its name.", shown=":"),
        _key("h", "plot", "", "Readings over time of the selection, or of all marked lines in one plot."),
        *_SORTING,
        _key("c", "columns", "", "Choose the columns of this table; the choice is remembered."),
        _key("a", "acknowledge", "", "Acknowledge the findings of the selection, or of all marked lines."),
        _key("w", "maintain", "", "Open a maintenance window on the selection, or on all marked lines."),
        _key("d", "drain", "", "Plan to move the ranks on the selection, or on all marked lines, to spares."),
        _key("r", "refresh_now", "", "Read everything again now."),
        _key("B", "app.turn_bell", "", "Turn the bell for new incidents on or off; the choice is remembered."),
        _key("T", "app.next_theme", "", "The next theme; it is remembered.", shown="T"),
        _esc("", "Close the open input line, else clear the marks, else clear the filter."),
        _key("ctrl+p", "app.command_palette", "", "Find any action or name by typing a part of it."),
    ),
    _screen(
        "columns",
        "when choosing columns",
        _key("space,enter", "turn", "show/hide", "Show the column, or hide it.", shown="space"),
        _key("down,j", "choose(1)", "choose", "The next column.", shown="j"),
        _key("up,k", "choose(-1)", "", "The column before.", shown="k"),
        _key("a", "all", "all", "Show all columns."),
    ),
    _screen(
        "accelerator",
        "on the screen of an accelerator",
        _HISTORY,
        _key("p", "plan_swap", "plan swap", "Plan to replace this accelerator by a spare."),
        *_WORK,
        _SPARES,
    ),
    _screen("transponder", "on the screen of a transponder", _HISTORY, _NO_SWAP, *_WORK),
    _screen(
        "facts",
        "on the screen of a host, a circuit, or the details of a rack or a device",
        _NO_HISTORY,
        _NO_SWAP,
        *_WORK,
        _SPARES,
    ),
    _screen(
        "host-output",
        "on the screen of a host's probe output",
        _esc("back", "Close the open input line, else clear the filter, else go back to the previous screen."),
        _key("right_square_bracket,tab", "turn(1)", "next probe", "The next probe; also tab.", shown="]"),
        _key("left_square_bracket,shift+tab", "turn(-1)", "", "The previous probe; also shift+tab.", shown="["),
        _key("slash", "filter", "filter", "Show only lines that contain these words.", shown="/"),
        _key("r", "read_again", "again", "Run the probes on the host again now."),
        _SHELL,
        _TICKET,
        _key("down,j", "scroll_output(1)", "", "Scroll; also arrows, pgup, pgdn, home and end.", shown="j"),
        _key("up,k", "scroll_output(-1)", "", "Scroll up.", shown="k"),
        _too("right", "scroll_output(0, 8)"),
        _too("left", "scroll_output(0, -8)"),
        _too("pagedown,space", "page(1)"),
        _too("pageup", "page(-1)"),
        _too("home,g", "end(False)"),
        _too("end,G", "end(True)"),
    ),
    _screen(
        "plot",
        "on the screen of readings over time",
        _key("right_square_bracket,right,tab", "turn(1)", "next reading", "The next reading; also right.", shown="]"),
        _key("left_square_bracket,left,shift+tab", "turn(-1)", "", "The previous reading; also left.", shown="["),
        _key("m", "add", "add", "Keep the reading in the plot while you select others; press again to remove it."),
        _key(
            "a", "turn_siblings", "whole host", "The readings of the whole host in one plot, or this one alone again."
        ),
        _key("plus,equals_sign", "zoom(-1)", "nearer", "A shorter time, in finer steps: down to 5 minutes.", shown="+"),
        _key("minus", "zoom(1)", "farther", "A longer time: up to 7 days.", shown="-"),
    ),
    _screen(
        "plan",
        "on the screen of a swap",
        _key("", "", "apply", "Apply the plan: type y or yes, then enter.", shown="y enter"),
        _key("v", "view", "view", "The change of the meshes as a picture, or the plan's text again.", priority=True),
        _key("b", "runbook", "", "The runbook of the run, once it is done."),
        _key("u", "undo", "", "Plan to undo the run, once it is done; asks first."),
        _key("p", "again", "", "Plan again what was refused or has failed, for the rack as it is now."),
        _esc("leave", "From the picture back to the plan; else leave, unless it is being applied."),
        _key("up", "scroll_plan(-1)", "", "Scroll the plan up; pgup by a page."),
        _key("down", "scroll_plan(1)", "", "Scroll it down; pgdn by a page."),
        _too("pageup", "scroll_plan(-10)"),
        _too("pagedown", "scroll_plan(10)"),
        _ask("help", priority=True),
        _key("q", "app.quit", "", "Quit, once no more input is needed."),
    ),
    _screen(
        "incident",
        "on the screen of an incident",
        _key("enter", "open", "details", "All details of the selected member."),
        _key("p", "plan_swap", "plan swap", "Plan to replace the accelerator at fault by a spare."),
        _key("t", "timeline", "timeline", "What happened: fault, plan, each step, proof, next training step."),
        _key("a", "acknowledge", "acknowledge", "Acknowledge it, with the reason why nothing is done yet."),
        _TICKET,
        _SHELL,
        _OUTPUT,
        _RUNBOOK,
        _SPARES,
        *_MOVING,
        *_SORTING,
    ),
    _screen(
        "run",
        "on the screen of a run",
        _key("b", "runbook", "runbook", "Its runbook, to read it, replay it on a simulator and compare it."),
        _key("u", "undo", "undo", "Plan to undo the run; asks first."),
        _too("o", "runbook"),
    ),
    _screen(
        "job",
        "on the screen of a job",
        _key("enter", "open", "details", "All details of the accelerator of the selected rank."),
        _key("p", "plan_swap", "plan swap", "Plan to replace the accelerator of the selected rank by a spare."),
        *_WORK,
        _SPARES,
        *_MOVING,
        *_SORTING,
    ),
    _screen(
        "rack",
        "on the screen of a rack",
        _key("left,h", "choose(-1, 0)", "choose", "Choose another accelerator; also h j k l.", shown="arrows"),
        _too("right,l", "choose(1, 0)"),
        _too("up,k", "choose(0, -1)"),
        _too("down,j", "choose(0, 1)"),
        _key("enter", "details", "details", "All details of the chosen accelerator."),
        _key("m", "turn_quantity", "measure", "Utilisation, temperature or power of each accelerator."),
        _key("i", "rack_details", "rack", "All details of the rack itself."),
        _key("p", "plan_swap", "plan swap", "Plan to replace it by a spare."),
        _SHELL,
        _TICKET,
        _RUNBOOK,
        _SPARES,
        _key("pageup", "scroll_links(-4)", "", "Scroll the links; also pgdn.", shown="pgup"),
        _too("pagedown", "scroll_links(4)"),
    ),
    _screen("spares", "on the screen of the spares"),
    _screen(
        "torus",
        "on the screen of the torus",
        _esc("back", "Close the open question; else back to the previous screen."),
        _key("n", "place", "new slice", "Plan a new slice: its shape and its name."),
        _key("x", "release", "release", "Plan the release of a slice."),
    ),
    _screen("matrix", "on the screen of the links of a rail", _LOSSES),
    _screen("losses", "on the screen of the loss budget"),
    _screen("timeline", "on the screen of the timeline of an incident"),
    _screen(
        "mesh",
        "on the screen of a mesh or a switch",
        _key("down,j", "choose(1)", "choose", "Highlight the next circuit; also the arrow key.", shown="j"),
        _key("up,k", "choose(-1)", "", "The circuit before.", shown="k"),
        _key("right_square_bracket", "problem(1)", "", "The next circuit with a fault.", shown="]"),
        _key("left_square_bracket", "problem(-1)", "", "The previous circuit with a fault.", shown="["),
        *_SORTING,
        _key("enter", "details", "details", "All details of the chosen circuit."),
        _key("a", "choose_none", "all alike", "Draw all circuits alike again."),
        _MATRIX,
        _LOSSES,
        _key("i", "device_details", "device", "All details of the device itself."),
        _key("shift+up", "scroll_chip(0, -4)", "", "Scroll the drawing; without shift the table.", shown="shift+arrow"),
        _too("shift+down", "scroll_chip(0, 4)"),
        _too("shift+left", "scroll_chip(-8, 0)"),
        _too("shift+right", "scroll_chip(8, 0)"),
        _key("r", "refresh_now", "", "Read the device again now."),
    ),
    _screen(
        "runbook",
        "on the screen of a runbook",
        _esc("back", "Stop the replay in progress; else back to the previous screen."),
        _key("s", "replay", "replay on sim", "Replay it on a private simulator, one step at a time."),
        _key("n,space", "next_step", "next step", "Do the next step of the replay; also space.", shown="n"),
        _key("g", "to_the_end", "to end", "Do all remaining steps without waiting."),
        _key("c", "compare", "compare", "Mark it; on another runbook: compare the two."),
    ),
    _screen("comparison", "on the screen of two runbooks"),
    _screen(
        "policy",
        "on the screen of an autopilot, a policy or a decision",
        _esc("back", "Close the open question; else back to the previous screen."),
        _key("x", "switch", "stop/start", "Stop the rack's autopilot, or start it again; asks first."),
    ),
    _screen(
        "approval",
        "on the screen of a plan that waits for approval",
        _esc("back", "Close the open question; else from the picture to the plan; else leave."),
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
        (
            _key("escape,question_mark", "back", "back", "Back to the previous screen.", shown="esc"),
            _key("", "", "scroll", "Scroll; so do the arrow keys.", shown="pgdn pgup"),
            _QUIT,
        ),
    ),
)
"""All screens with their keys, in the order of the help. A test fails if a screen is missing here."""

KEYS: Mapping[str, ScreenKeys] = {each.name: each for each in SCREENS}
"""The keys by the name of the screen."""

CHANGES = frozenset(
    {"plan_swap", "undo", "acknowledge", "maintain", "drain", "switch", "answer(True)", "answer(False)"}
)
"""The actions that change something; read-only mode does not offer them."""


def bindings(actions: Iterable[Action]) -> list[Binding]:
    """The actions as bindings of Textual; actions without keys are omitted."""
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
