"""The dashboard in lines of text: reports changes as they happen and answers typed commands."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

from textual.message import Message

from lumctl.health.states import State
from lumctl.inventory.problems import nearest
from lumctl.printable import counted, printable
from lumctl.tui.actions import Acts, ApplyView, PlanView, only_shown
from lumctl.tui.app import why_no_swap
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes import PANES
from lumctl.tui.panes.rows import AGE, Pane
from lumctl.tui.screens.component import detail_text
from lumctl.tui.sources import Sources
from lumctl.tui.threads.apply import Applying
from lumctl.tui.threads.collector import Collector, Observed, ObserveFailed, one_line
from lumctl.tui.views.details import describe
from lumctl.tui.views.records import RecordedLook

WORDS = Marks({}, ascii_only=True)
"""Marks for the ear: a state is its word."""


def summary(seen: RecordedLook) -> Iterator[str]:
    """How everything is, one sentence a line, what is wrong last and by name."""
    observation = seen.observation
    hosts = observation.snapshot.hosts
    answered = sum(host.reachable for host in hosts.values())
    yield f"{answered} of {counted(len(observation.inventory.hosts), 'hosts')} answered."
    for group, members in observation.report.groups().items():
        if not members:
            continue
        wrong = [name for name, health in members.items() if health.state not in {State.OK, State.DISABLED}]
        if wrong:
            verb = "is" if len(wrong) == 1 else "are"
            yield f"{len(wrong)} of {counted(len(members), group)} {verb} not well: {', '.join(wrong)}."
        else:
            yield f"{group.capitalize()}: {len(members)}, none of them in trouble."
    for finding in observation.report.findings():
        yield f"{finding.component} is {finding.state}: {finding.evidence}. What to do: {finding.advice}."


def changes(before: RecordedLook, after: RecordedLook) -> Iterator[str]:
    """What is otherwise than it was, one sentence a line; nothing where all is as before."""
    old, new = before.observation.report, after.observation.report
    for group, members in new.groups().items():
        for name, health in members.items():
            earlier = old.groups()[group].get(name)
            if earlier is None or earlier.state == health.state:
                continue
            why = f": {health.findings[0].evidence}" if health.findings else ""
            yield f"{name} is {health.state}, was {earlier.state}{why}."
    silent = {name for name, host in before.observation.snapshot.hosts.items() if not host.reachable}
    for name, host in after.observation.snapshot.hosts.items():
        if host.reachable == (name in silent):
            yield f"{name} {'answers again' if host.reachable else 'does not answer'}."
    states = {(run.rack, run.id): run.state for run in before.records.runs}
    for run in after.records.runs:
        if states.get((run.rack, run.id)) != run.state:
            yield f"{run.id} is {run.state}: {run.title}."


def pane_lines(pane: Pane, seen: RecordedLook, words: str = "") -> Iterator[str]:
    """The rows of a table of the dashboard that hold some words, each in one line with the names of its columns."""
    rows = [row for row in pane.rows(seen, WORDS) if row.matches(words.lower().split())]
    yield f"{pane.count(len(rows))}." if rows else f"No {pane.noun}."
    headings = [column.heading.lower() for column in pane.columns if column.key != AGE]
    for row in rows:
        texts = (" ".join(cell.text.split()) for cell in row.cells)
        said = zip(headings, texts, strict=True)
        yield ", ".join(f"{heading} {text}".strip() for heading, text in said if text not in {"", "-"}) + "."


class TextSession:
    """One dashboard in lines. Threads read and apply; they only put what they have into the queue of ``run``."""

    def __init__(
        self,
        sources: Sources,
        acts: Acts,
        *,
        racks: Iterable[str],
        target: str,
        say: Callable[[str], None],
        interval_s: float = 2.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.acts = only_shown(acts)
        self.applying = Applying(self.acts.apply)
        self.interrupted = False
        self.return_code: int | None = None
        self.seen: RecordedLook | None = None
        self.target = target
        self.now = now
        self._title = f"lumctl {', '.join(racks)}, target {target}"
        self._say = say
        self._events: SimpleQueue[object] = SimpleQueue()
        self._collector = Collector(sources.look, interval_s, self._heard)
        self._plan: PlanView | None = None
        self._asked = False
        self._trouble = ""
        self._waiting: list[object] = []
        """Lines that were entered before there was anything to show."""

    def hear(self, line: object) -> None:
        """Take a line of input, or ``END``; from any thread."""
        self._events.put(line)

    def stop(self) -> None:
        """Leave at once; for a signal's handler. An apply in progress continues: ``applying`` reports its end."""
        self.interrupted = not self.applying.under_way
        self._events.put(None)

    def run(self) -> None:
        """Print and answer until stopped, or until the input has ended and every line was answered."""
        self._tell(f"{self._title}. Type help and enter for what can be asked.")
        if self.acts.forbidden:
            self._tell(f"Nothing can be changed: {self.acts.forbidden}.")
        self._collector.start()
        try:
            while (event := self._events.get()) is not None and self._goes_on(event):
                pass
        finally:
            self._collector.stop()

    def plan(self, accelerator: str) -> None:
        """Make a plan and keep it for ``apply``."""
        if self.seen is None:
            return
        observation = self.seen.observation
        place = observation.place_of(accelerator)
        if reason := self.acts.forbidden or why_no_swap(observation, accelerator):
            self._tell(f"{reason}.")
            return
        self._plan = self.acts.plan(place[0] if place else "", accelerator)
        self._tell(f"{self._plan.title}.")
        for line in filter(None, map(str.strip, self._plan.lines)):
            self._tell(line)
        self._tell("Nothing was changed. Type apply to apply this plan.")

    def ask_to_apply(self) -> None:
        """Ask for a yes."""
        if self._plan is None:
            self._tell("There is no plan to apply. Type plan and the accelerator that failed.")
            return
        self._asked = True
        self._tell(f"Apply this plan to TARGET {self._plan.target}? Type yes; anything else leaves it.")

    def tell(self, lines: Iterable[str]) -> None:
        """Print some lines."""
        for line in lines:
            self._tell(line)

    def _heard(self, message: Message) -> None:
        self._events.put(message)

    def _goes_on(self, event: object) -> bool:
        match event:
            case Observed(seen=seen):
                self._look(seen)
                return self._catch_up()
            case ObserveFailed(text=text):
                if text != self._trouble:
                    self._tell(f"The rack could not be read: {text}. What was told before may be old.")
                self._trouble = text
                return self._catch_up()
            case ApplyView():
                self.tell((event.outcome, *event.lines))
                self._collector.refresh()
            case partial():
                event()
            case str() if self.seen is not None or self._trouble:
                return self._command(event.strip())
            case _ if event is END and (self.seen is not None or self._trouble):
                return False
            case _ if isinstance(event, str) or event is END:
                self._waiting.append(event)
        return True

    def _catch_up(self) -> bool:
        waiting, self._waiting = self._waiting, []
        return all(self._goes_on(event) for event in waiting)

    def _look(self, seen: RecordedLook) -> None:
        before, self.seen = self.seen, replace(seen, forbidden=NO_KEYS)
        if self._trouble:
            self._tell("The rack can be read again.")
        self._trouble = ""
        self.tell(summary(seen) if before is None else changes(before, seen))

    def _command(self, line: str) -> bool:
        asked, self._asked = self._asked, False
        if asked:
            if line.lower() == "yes" and self._plan is not None:
                self._apply(self._plan)
            else:
                self._tell("Not applied; nothing was changed.")
            return True
        word, _, rest = line.partition(" ")
        if word.lower() in {"quit", "q", "exit"}:
            return False
        try:
            answer(self, word.lower(), rest.strip())
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line, never a traceback
            self._tell(one_line(error))
        return True

    def _apply(self, plan: PlanView) -> None:
        self._plan = None
        if self.applying.under_way:
            self._tell("A plan is being applied already.")
            return
        self._tell(f"Applying to TARGET {plan.target}.")
        self.applying.begin(plan, lambda line: self._events.put(partial(self._tell, line)), self._events.put)

    def _tell(self, line: str) -> None:
        at = time.strftime("%H:%M:%S", time.localtime(self.now()))
        self._say(f"{at} {printable(line)}")


def answer(session: TextSession, word: str, rest: str) -> None:
    """Do what a line asks for, or print the possible commands."""
    if not word:
        return
    if word in COMMANDS:
        COMMANDS[word][1](session, rest)
        return
    near = nearest(word, [*COMMANDS, "quit"])
    session.tell([f"There is no command {word}." + (f" Did you mean {near}?" if near else " Type help.")])


def _summary(session: TextSession, _: str) -> None:
    if session.seen is not None:
        session.tell(summary(session.seen))


def _show(session: TextSession, name: str) -> None:
    if not name or session.seen is None:
        session.tell(["Type show and a name, such as that of an accelerator."])
        return
    detail = describe(session.seen.observation, name, session.now())
    if detail.kind == "component" and not detail.findings:
        session.tell([f"Nothing is called {name}."])
        return
    lines = detail_text(detail, WORDS, session.now()).plain.splitlines()
    session.tell([name, *(" ".join(line.split()) for line in lines if line.strip())])


def _plan(session: TextSession, name: str) -> None:
    if not name:
        session.tell(["Type plan and the accelerator that failed."])
        return
    session.plan(name)


def _apply(session: TextSession, _: str) -> None:
    session.ask_to_apply()


def _help(session: TextSession, _: str) -> None:
    session.tell(f"{word}: {told}" for word, (told, _) in COMMANDS.items())
    session.tell(["quit: end this. While a plan is being applied it is waited for."])


def _pane(pane_id: str) -> Callable[[TextSession, str], None]:
    pane = next(pane for pane in PANES if pane.id == pane_id)

    def tell(session: TextSession, words: str) -> None:
        if session.seen is not None:
            session.tell(pane_lines(pane, session.seen, words))

    return tell


COMMANDS: Mapping[str, tuple[str, Callable[[TextSession, str], None]]] = {
    "help": ("these words.", _help),
    "summary": ("how everything is.", _summary),
    **{pane.id: (pane.help, _pane(pane.id)) for pane in PANES},
    "show": ("show NAME tells all that is known of a component.", _show),
    "plan": ("plan ACCELERATOR plans a spare in its place and changes nothing.", _plan),
    "apply": ("apply the plan that was made last; asks for a yes first.", _apply),
}
"""What each word does, with its line for the help."""


NO_KEYS = "plain lines have no keys"
END = object()
"""Marks the end of the input."""
