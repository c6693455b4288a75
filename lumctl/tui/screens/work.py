"""Tools for the selected component: a shell on its host, its host's output, its runbook, a ticket about it."""

import shlex
from collections.abc import Callable
from typing import Any

from textual.app import App, SuspendNotSupported

from lumctl.errors import LumctlError
from lumctl.runbook.ticket import ticket_text
from lumctl.tui.screens.requests import HOST_OUTPUT_KIND, Wanted, WorkKind, WorkWanted
from lumctl.tui.sources import ScreenContext
from lumctl.tui.terminal import run_in_terminal, say, wait_for_enter
from lumctl.tui.threads.collector import Collector, one_line
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.subject import WorkSubject

SSH_FAILED = 255
"""The exit status with which ssh reports its own failure, as opposed to that of the shell."""


class IntoTheWork:
    """Executes such a key. ``answer`` gives the reason, in a line, if it is not possible."""

    def __init__(
        self, app: App[Any], context: ScreenContext, collector: Collector, answer: Callable[[str], None]
    ) -> None:
        self._app = app
        self._context = context
        self._collector = collector
        self._answer = answer

    def begin(self, wanted: WorkWanted) -> None:
        """Open the tool."""
        seen = self._context.seen()
        if seen is None:
            self._answer("nothing has been read yet: wait for the first observation")
        elif wanted.subject == WorkSubject():
            self._answer("no line is selected")
        elif wanted.work is WorkKind.TICKET:
            self._copy_ticket(seen, wanted.subject)
        elif wanted.work is WorkKind.RUNBOOK:
            self._open_runbook(seen, wanted.subject)
        elif (host := wanted.subject.host(seen)) is None:
            what = wanted.subject.named(seen) or wanted.subject.run.rpartition("/")[2]
            self._answer(f"{what} is on no host: select a host, an accelerator or a link")
        elif wanted.work is WorkKind.OUTPUT:
            self._app.post_message(Wanted(HOST_OUTPUT_KIND, host))
        else:
            self._open_shell(host)

    def _copy_ticket(self, seen: RecordedLook, subject: WorkSubject) -> None:
        component = subject.named(seen)
        if not component or component not in _tellable(seen):
            self._answer("a ticket is about a component or an incident: select one")
            return
        text = ticket_text(seen.observation, component, seen.records.runs)
        # An escape sequence (OSC 52) to the operator's terminal, which does not answer whether it took the text.
        self._app.copy_to_clipboard(text)
        self._answer(f"copied a ticket about {component}; tmux needs: set -s set-clipboard on")

    def _open_runbook(self, seen: RecordedLook, subject: WorkSubject) -> None:
        key = subject.last_run(seen)
        run = next((each for each in seen.records.runs if f"{each.rack}/{each.id}" == key), None)
        if key is None:
            self._answer(f"no run has changed {subject.named(seen)}: there is no runbook")
        elif run is not None and run.ended_at is None:
            self._answer(f"{run.id} is in progress: its runbook is written when it has ended")
        else:
            self._app.post_message(Wanted("runbook", key))

    def _open_shell(self, host: str) -> None:
        """Give the terminal to ssh; nothing is read meanwhile, because the dashboard is not visible."""
        try:
            command = self._context.sources.shell(host)
        except LumctlError as error:
            self._answer(one_line(error))
            return
        self._answer("")
        try:
            # In this order: in a browser ``suspend`` raises, before the readings are paused.
            with self._app.suspend(), self._collector.paused():
                say(f"TARGET {self._context.target}: a shell on {host}; exit returns to lumctl top")
                status = run_in_terminal(command)
                # The dashboard would cover ssh's own message before it is read.
                if status == SSH_FAILED:
                    wait_for_enter()
        except SuspendNotSupported:
            self._answer(f"a browser has no terminal for a shell; run this in a terminal: {shlex.join(command)}")
            return
        if status:
            self._answer(f"the shell on {host} ended with exit status {status}")


def _tellable(seen: RecordedLook) -> frozenset[str]:
    """The subjects of a ticket: components that health judges, and the causes of incidents."""
    report = seen.observation.report
    names = (name for group in report.groups().values() for name in group)
    return frozenset((*names, *(incident.cause for incident in report.incidents)))
