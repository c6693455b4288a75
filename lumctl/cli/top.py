"""``lumctl top``: the dashboard, connected to a rack and to the swap."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Self

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.live import LONGEST_S, SHORTEST_S, a_pause
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import ASCII_GLYPHS, GLYPHS, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from lumctl.site import Observation, Site
    from lumctl.tui.actions import ApplyView, PlanView
    from lumctl.tui.app import Dashboard

app = noun_app(NOUNS["top"].help)

IntervalOption = Annotated[
    float,
    typer.Option(
        "--interval",
        metavar="SECONDS",
        min=SHORTEST_S,
        max=LONGEST_S,
        callback=a_pause,
        help="Seconds between two readings.",
    ),
]


@verb(app)
def top(cx: Invocation, interval: IntervalOption = 2.0) -> int:
    """Show the dashboard: racks, accelerators, circuits and findings, live; swaps are planned and applied from it.

    An apply under way is never cut: whoever quits in its midst, or ends the program, is told its outcome once the
    screen is closed. Where ``lumctl watch`` runs, its newest look is shown. Exit code: that of the last apply; 0 if
    there was none.
    """
    if cx.out.format is not OutputFormat.TABLE:
        raise UsageError("the dashboard is a screen and prints no data", hint=f"lumctl status -o {cx.out.format}")
    # Textual draws on stderr, so that one must be a terminal as well.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("the dashboard needs a terminal", hint="lumctl status --watch")
    from lumctl.tui.app import Dashboard
    from lumctl.tui.marks import Marks

    glyphs = ASCII_GLYPHS if cx.out.ascii_only else GLYPHS
    from lumctl.watch.client import MAX_AGE_S, Asking, observation_of

    def ask_daemon() -> "Observation | None":
        return observation_of(cx.inventory, cx.target, max_age_s=max(2 * interval, MAX_AGE_S))

    with Observer(lambda: _open(cx), Asking(ask_daemon)) as observe:
        dashboard = Dashboard(
            observe,
            lambda job, failed: _plan(cx, job, failed),
            lambda view, progress: _apply(cx, view, progress),
            racks=cx.inventory.racks,
            target=cx.target,
            marks=Marks(glyphs, ascii_only=cx.out.ascii_only),
            interval_s=interval,
        )
        with _stopped_by_signals(dashboard):
            dashboard.run()
            return _end(cx, dashboard)


class Observer:
    """Looks at a rack again and again: with the daemon's eyes where one runs, else through one open site.

    After a look in which no host answered the site is opened anew: a simulator that was started again answers at
    other addresses. While the daemon looks, no site is kept open.
    """

    def __init__(
        self,
        open_site: "Callable[[], Site]",
        ask_daemon: "Callable[[], Observation | None]" = lambda: None,
    ) -> None:
        self._open_site = open_site
        self._ask_daemon = ask_daemon
        self._site: Site | None = None

    def __enter__(self) -> Self:
        if self._ask_daemon() is None:
            self._site = self._open_site()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self) -> "Observation":
        """Read everything once."""
        seen = self._ask_daemon()
        if seen is not None:
            self._close()
            return seen
        self._site = site = self._site or self._open_site()
        observation = site.observe()
        if not any(host.reachable for host in observation.snapshot.hosts.values()):
            self._close()
        return observation

    def _close(self) -> None:
        if self._site is not None:
            self._site.close()
            self._site = None


def _open(cx: Invocation) -> "Site":
    from lumctl.site import Site

    site = Site(cx.inventory, cx.target)
    site.endpoints  # noqa: B018 - a simulator that does not run is an error before the screen is taken
    return site


@contextmanager
def _stopped_by_signals(dashboard: "Dashboard") -> Iterator[None]:
    """While inside, a request to stop closes the screen and no more: an apply under way goes on to its end."""

    def stop(*_: object) -> None:
        if not os.isatty(sys.__stderr__.fileno() if sys.__stderr__ else 2):
            _forget_the_terminal()
        dashboard.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _forget_the_terminal() -> None:
    """Write into the void where the terminal has gone: an error of writing must not keep the screen from closing."""
    void = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(void, stream)
    os.close(void)


def _end(cx: Invocation, dashboard: "Dashboard") -> int:
    """Say how the last apply ended, which the screen may not have shown, and give the exit code."""
    if dashboard.applying.under_way:
        cx.out.narrate("a plan is being applied and goes on to its end; waiting for it")
    applied = dashboard.applying.outcome()
    if applied is not None:
        if applied.error is not None:
            raise applied.error
        for line in (applied.outcome, *applied.lines):
            cx.out.narrate(line)
    return ExitCode.INTERRUPTED if dashboard.interrupted else dashboard.return_code or ExitCode.DONE


def _plan(cx: Invocation, job: str, failed: str) -> "PlanView":
    from lumctl.cli.plan_lines import plan_lines
    from lumctl.site import Site
    from lumctl.swap import plan_swap
    from lumctl.tui.actions import PlanView

    # A site of its own: the one that is observed belongs to the thread that reads.
    with Site(cx.inventory, cx.target) as site:
        plan = plan_swap(site, job, [failed])
    return PlanView(plan.title, plan.target, tuple(plan_lines(plan)[1:]), plan)


def _apply(cx: Invocation, view: "PlanView", progress: Callable[[str], None]) -> "ApplyView":
    from lumctl.change import apply
    from lumctl.change.origin import origin
    from lumctl.runbook.files import save
    from lumctl.site import Site
    from lumctl.tui.actions import ApplyView

    with Site(cx.inventory, cx.target) as site:
        # What a person has confirmed says which jobs must be stopped.
        result = apply(site, view.plan, progress=progress, stopped_by=origin())
        try:
            kept = f"runbook: {save(site, result.run, result.plan.rack)}"
        except UsageError as error:  # the run is done and in the journal all the same
            kept = f"warning: {error.message}"
    outcome = f"{result.run}: {result.outcome} in {result.seconds:.2f} s, {len(result.verified)} receivers proved"
    return ApplyView(outcome, done=True, lines=(kept, f"read it: lumctl runbook show {result.run}"))
