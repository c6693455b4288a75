"""The words that can be typed, and what each does. The tables of the dashboard are asked for by their names."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lumctl.inventory.problems import nearest
from lumctl.tui.panes import PANES
from lumctl.tui.plain.sentences import WORDS, pane_lines, summary
from lumctl.tui.screens.component import detail_text
from lumctl.tui.told.details import describe

if TYPE_CHECKING:
    from lumctl.tui.plain.session import Session


def answer(session: "Session", word: str, rest: str) -> None:
    """Do what a line asks for, or say what can be asked."""
    if not word:
        return
    if word in COMMANDS:
        COMMANDS[word][1](session, rest)
        return
    near = nearest(word, [*COMMANDS, "quit"])
    session.tell([f"There is no command {word}." + (f" Did you mean {near}?" if near else " Type help.")])


def _summary(session: "Session", _: str) -> None:
    if session.seen is not None:
        session.tell(summary(session.seen))


def _show(session: "Session", name: str) -> None:
    if not name or session.seen is None:
        session.tell(["Type show and a name, such as that of an accelerator."])
        return
    detail = describe(session.seen.observation, name, session.now())
    if detail.kind == "component" and not detail.findings:
        session.tell([f"Nothing is called {name}."])
        return
    lines = detail_text(detail, WORDS, session.now()).plain.splitlines()
    session.tell([name, *(" ".join(line.split()) for line in lines if line.strip())])


def _plan(session: "Session", name: str) -> None:
    if not name:
        session.tell(["Type plan and the accelerator that failed."])
        return
    session.plan(name)


def _apply(session: "Session", _: str) -> None:
    session.ask_to_apply()


def _help(session: "Session", _: str) -> None:
    session.tell(f"{word}: {told}" for word, (told, _) in COMMANDS.items())
    session.tell(["quit: end this. While a plan is being applied it is waited for."])


def _pane(pane_id: str) -> Callable[["Session", str], None]:
    pane = next(pane for pane in PANES if pane.id == pane_id)

    def tell(session: "Session", words: str) -> None:
        if session.seen is not None:
            session.tell(pane_lines(pane, session.seen, words))

    return tell


COMMANDS: Mapping[str, tuple[str, Callable[["Session", str], None]]] = {
    "help": ("these words.", _help),
    "summary": ("how everything is.", _summary),
    **{pane.id: (pane.help, _pane(pane.id)) for pane in PANES},
    "show": ("show NAME tells all that is known of a component.", _show),
    "plan": ("plan ACCELERATOR plans a spare in its place and changes nothing.", _plan),
    "apply": ("apply the plan that was made last; asks for a yes first.", _apply),
}
"""What each word does, with its line for the help."""
