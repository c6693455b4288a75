"""The dashboard in lines of text: reports changes as they happen and answers typed commands."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

from rich.text import Text
from textual.message import Message

from lumctl.daemon.notifications.message import cases_of
from lumctl.health.states import HARMLESS, State
from lumctl.inventory.problems import nearest
from lumctl.printable import counted, printable
from lumctl.tui.actions import Acts, ApplyView, PlanView, only_shown
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes import PANES
from lumctl.tui.panes.rows import AGE, Pane
from lumctl.tui.sources import Sources
from lumctl.tui.text_mode.component_commands import WORK_COMMANDS, WorkLines
from lumctl.tui.threads.apply import Applying
from lumctl.tui.threads.collector import Collector, Observed, ObserveFailed, one_line
from lumctl.tui.views.detail_text import IN_WORDS, detail_text
from lumctl.tui.views.details import describe
from lumctl.tui.views.headline import sentence
from lumctl.tui.views.heat_map import host_lines
from lumctl.tui.views.incidents import replaced_now
from lumctl.tui.views.link_matrix import matrix_lines
from lumctl.tui.views.losses import loss_lines
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.spares import checked_obstacle, spare_lines
from lumctl.tui.views.swap_choice import fails_with, job_of, why_no_swap
from lumctl.tui.views.timeline import timeline_lines
from lumctl.tui.views.torus import torus_lines

WORDS = Marks({}, ascii_only=True)
"""Marks for a screen reader: a state is only its word."""


def summary(seen: RecordedLook) -> Iterator[str]:
    """The state of everything, one sentence a line; the findings come last."""
    observation = seen.observation
    hosts = observation.snapshot.hosts
    yield sentence(seen)
    answered = sum(host.reachable for host in hosts.values())
    yield f"{answered} of {counted(len(observation.inventory.hosts), 'hosts')} answered."
    for group, members in observation.report.groups().items():
        if not members:
            continue
        wrong = [name for name, health in members.items() if health.state not in HARMLESS]
        if wrong:
            verb = "is" if len(wrong) == 1 else "are"
            yield f"{len(wrong)} of {counted(len(members), group)} {verb} not healthy: {', '.join(wrong)}."
        else:
            out = sum(health.state is State.DISABLED for health in members.values())
            working = f"{len(members) - out} in service" if out else str(len(members))
            rest = f"; {out} out of service" if out else ""
            yield f"{group.capitalize()}: {working}, none of them with a fault{rest}."
    for finding in observation.report.findings():
        yield f"{finding.component} is {finding.state}: {finding.evidence}. What to do: {finding.advice}."


def changes(before: RecordedLook, after: RecordedLook) -> Iterator[str]:
    """The changes since an earlier observation, one sentence a line; nothing if there are none."""
    old, new = before.observation.report, after.observation.report
    if (said := sentence(after)) != sentence(before):
        yield said
    for group, members in new.groups().items():
        for name, health in members.items():
            earlier = old.groups()[group].get(name)
            if earlier is None or earlier.state == health.state:
                continue
            why = f": {health.findings[0].evidence}" if health.findings else ""
            yield f"{name} is {health.state}, was {earlier.state}{why}."
    silent = {name for name, host in before.observation.snapshot.hosts.items() if not host.reachable}
    for name, host in after.observation.snapshot.hosts.items():
        # True of both changes: silent before and reachable now, or the other way round.
        if host.reachable == (name in silent):
            yield f"{name} {'answers again' if host.reachable else 'does not answer'}."
    states = {(run.rack, run.id): run.state for run in before.records.runs}
    for run in after.records.runs:
        if states.get((run.rack, run.id)) != run.state:
            yield f"{run.id} is {run.state}: {run.title}."


def pane_lines(pane: Pane, seen: RecordedLook, words: str = "") -> Iterator[str]:
    """The rows of a dashboard table that contain all ``words``, each in one line with the names of its columns."""
    rows = [row for row in pane.rows(seen, WORDS) if row.matches(words.lower().split())]
    yield f"{pane.count(len(rows))}." if rows else f"No {pane.noun}."
    headings = [column.heading.lower() for column in pane.columns if column.key != AGE]
    for row in rows:
        texts = (" ".join(cell.text.split()) for cell in row.cells)
        said = zip(headings, texts, strict=True)
        yield ", ".join(f"{heading} {text}".strip() for heading, text in said if text not in {"", "-"}) + "."


class TextSession:
    """One dashboard in lines. Threads read and apply; they only put their results into the queue of ``run``."""

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
        # ``stop`` runs in a signal's handler, where the lock of a Queue could be held by the very code it interrupts.
        self._events: SimpleQueue[object] = SimpleQueue()
        self.sources = sources
        self._collector = Collector(sources.look, interval_s, self._heard)
        self._plan: PlanView | None = None
        self._asked = False
        self._trouble = ""
        self._waiting: list[object] = []
        """Lines that were entered before the first observation ended."""

    def hear(self, line: object) -> None:
        """Take a line of input, or ``END``; from any thread."""
        self._events.put(line)

    def stop(self) -> None:
        """Leave at once; for a signal's handler. An apply in progress continues: ``applying`` reports its end."""
        self.interrupted = not self.applying.under_way
        self._events.put(None)

    def run(self) -> None:
        """Print and answer until stopped, or until the input has ended and every line was answered."""
        self._tell(f"{self._title}. Type help and enter for a list of commands.")
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
        failed = (accelerator, *fails_with(self.seen, accelerator))
        if reason := (
            self.acts.forbidden
            or replaced_now(self.seen, failed)
            or why_no_swap(observation, accelerator)
            or checked_obstacle(self.seen, failed)
        ):
            self._tell(f"{reason}.")
            return
        self.propose(self.acts.plan(job_of(observation, failed), *failed))

    def propose(self, plan: PlanView) -> None:
        """Print a plan, its warnings first, and keep it for ``apply``."""
        self._plan = plan
        self._tell(f"{plan.title}.")
        self.tell(f"Warning: {warning}." for warning in plan.warnings)
        self.tell(filter(None, map(str.strip, (*plan.summary, *plan.lines))))
        self._tell("Nothing was changed. Type apply to apply this plan.")

    def ask_to_apply(self) -> None:
        """Ask the operator to confirm that the plan is applied."""
        if self._plan is None:
            self._tell("There is no plan to apply. Make one first: plan, place or release.")
            return
        self._asked = True
        self._tell(f"Apply this plan to TARGET {self._plan.target}? Type yes; anything else cancels.")

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
                    self._tell(f"The rack could not be read: {text}. Earlier output may be out of date.")
                self._trouble = text
                return self._catch_up()
            case ApplyView():
                self.tell((event.outcome, *event.lines))
                self._collector.refresh()
            # Progress of an apply: its thread leaves the printing to this one, so that lines do not mix.
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
        return all(self._goes_on(event) for event in waiting)  # up to the one that ends the session

    def _look(self, seen: RecordedLook) -> None:
        # With a reason for read-only mode, no sentence names a key; ``acts`` decides what is allowed.
        before, self.seen = self.seen, replace(seen, forbidden=NO_KEYS)
        if self._trouble:
            self._tell("The rack can be read again.")
        self._trouble = ""
        self.tell(summary(seen) if before is None else changes(before, seen))

    def _command(self, line: str) -> bool:
        # A yes counts only right after the question: any other line withdraws it.
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
        except Exception as error:  # noqa: BLE001 - every error becomes a line, never a traceback
            self._tell(one_line(error))
        return True

    def _apply(self, plan: PlanView) -> None:
        self._plan = None
        if self.applying.under_way:
            self._tell("A plan is already being applied.")
            return
        self._tell(f"Applying to TARGET {plan.target}.")
        self.applying.begin(plan, lambda line: self._events.put(partial(self._tell, line)), self._events.put)

    def _tell(self, line: str) -> None:
        at = time.strftime("%H:%M:%S", time.localtime(self.now()))
        self._say(f"{at} {printable(self.sources.aimed(line))}")


def answer(session: TextSession, word: str, rest: str) -> None:
    """Execute the command of a line; if there is no such command, report that and suggest one."""
    if not word:
        return
    if word in COMMANDS:
        COMMANDS[word][1](session, rest)
        return
    near = nearest(word, [*COMMANDS, "quit"])
    session.tell([f"{word} is not a command." + (f" Did you mean {near}?" if near else " Type help.")])


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
    lines = detail_text(detail, WORDS, session.now(), width=IN_WORDS).plain.splitlines()
    session.tell([name, *(" ".join(line.split()) for line in lines if line.strip())])


def _plan(session: TextSession, name: str) -> None:
    if not name:
        session.tell(["Type plan and the accelerator that failed."])
        return
    session.plan(name)


def _place(session: TextSession, words: str) -> None:
    shape, _, name = words.partition(" ")
    if not name.strip():
        session.tell(["Type place, a shape and a name, such as: place 4x4x2 tenant-a"])
        return
    session.propose(session.acts.place_slice(shape, name.strip()))


def _release(session: TextSession, name: str) -> None:
    if not name:
        session.tell(["Type release and the name of a slice."])
        return
    session.propose(session.acts.release_slice(name))


def _apply(session: TextSession, _: str) -> None:
    session.ask_to_apply()


def _help(session: TextSession, _: str) -> None:
    session.tell(f"{word}: {told}" for word, (told, _) in COMMANDS.items())
    session.tell(["quit: end the program. If a plan is being applied, it waits until that has ended."])


def _picture(lines: Callable[[RecordedLook, str], Iterable[Text]]) -> Callable[[TextSession, str], None]:
    """The command that prints a picture in lines."""

    def tell(session: TextSession, name: str) -> None:
        if session.seen is not None:
            shown = (" ".join(line.plain.split()) for line in lines(session.seen, name))
            session.tell(line for line in shown if line)

    return tell


def _links(seen: RecordedLook, device: str) -> Iterable[Text]:
    devices = [each.id for each in seen.observation.inventory.light_devices]
    if device in devices:
        return matrix_lines(seen.observation, device, WORDS, 0)
    return [Text(f"Type links and the name of a device: {', '.join(devices)}.")]


def _spares(seen: RecordedLook, _: str) -> Iterable[Text]:
    return spare_lines(seen.observation, WORDS)


def _torus(seen: RecordedLook, _: str) -> Iterable[Text]:
    return torus_lines(seen.observation, WORDS, 0)


def _budget(seen: RecordedLook, _: str) -> Iterable[Text]:
    return loss_lines(seen.observation, None, WORDS, 0)


def _timeline(seen: RecordedLook, name: str) -> Iterable[Text]:
    cases = cases_of(seen.observation.report)
    key = next((key for key, case in cases.items() if name in {key, case.component}), f"component:{name}")
    return timeline_lines(seen, key, WORDS) if name else [Text("Type timeline and the component that failed.")]


def _pane(pane_id: str) -> Callable[[TextSession, str], None]:
    pane = next(pane for pane in PANES if pane.id == pane_id)

    def tell(session: TextSession, words: str) -> None:
        if session.seen is not None:
            session.tell(pane_lines(pane, session.seen, words))

    return tell


def _of_work(lines: WorkLines) -> Callable[[TextSession, str], None]:
    """The command that prints lines about a component or its host."""

    def tell(session: TextSession, words: str) -> None:
        if session.seen is not None:
            session.tell(lines(session.seen, session.sources, words, session.now()))

    return tell


COMMANDS: Mapping[str, tuple[str, Callable[[TextSession, str], None]]] = {
    "help": ("these words.", _help),
    "summary": ("how everything is.", _summary),
    **{pane.id: (pane.help, _pane(pane.id)) for pane in PANES},
    "rack": (
        "every accelerator by host: use, utilisation; add a host's name for that host only.",
        _picture(host_lines),
    ),
    "spares": ("how many spares are left, and which ranks each can replace.", _picture(_spares)),
    "torus": ("where slices lie on the torus, layer by layer, and its fullest fibres.", _picture(_torus)),
    "links": ("links DEVICE shows what each receiver of a rail hears, with power and margin.", _picture(_links)),
    "budget": ("the remaining loss budget of the circuits.", _picture(_budget)),
    "timeline": ("timeline COMPONENT shows what happened in its incident.", _picture(_timeline)),
    "show": ("show NAME shows all details of a component.", _show),
    **{word: (told, _of_work(lines)) for word, (told, lines) in WORK_COMMANDS.items()},
    "plan": ("plan ACCELERATOR plans to replace it by a spare and changes nothing.", _plan),
    "place": ("place SHAPE NAME plans a slice of the torus, such as 4x4x2 tenant-a, and changes nothing.", _place),
    "release": ("release NAME plans the release of a slice and changes nothing.", _release),
    "apply": ("apply the plan that was made last; asks for a yes first.", _apply),
}
"""The commands by their words: the line for the help, and the function."""


NO_KEYS = "plain output has no keys"
END = object()
"""Marks the end of the input."""
