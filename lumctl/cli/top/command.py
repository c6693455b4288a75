"""``lumctl top``: the dashboard, connected to a rack and to all that may be done from it."""

import os
import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.live import a_speed, interval_option
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import ASCII_GLYPHS, GLYPHS, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lumctl.context import Context, Observation

LOOPBACK = "127.0.0.1"


def serve(cx: Invocation, theme: str | None, interval_s: float, port: int) -> int:
    """Serve until Ctrl-C or a request to stop.

    Raises:
        UsageError: the extra that serves is not installed, or the port is taken.
    """
    try:
        from lumctl.tui.web import Door, listen
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {
            "aiohttp",
            "aiohttp_jinja2",
            "jinja2",
            "textual_serve",
        }:
            raise
        raise UsageError("--web needs textual-serve", hint="pip install 'lumctl[web]'") from error
    from lumctl.tui.look.themes import theme_name

    path = str(cx.inventory.path.resolve())  # a missing inventory is reported before anything is served
    try:
        socket = listen(LOOPBACK, port)
    except OSError as error:
        hint = "name another one with --port, or 0 for any that is free"
        raise UsageError(f"port {port} cannot be listened on: {error.strerror}", hint=hint) from error
    command = [sys.executable, "-P", "-m", "lumctl", "-i", path, "--target", str(cx.target), *_ascii(cx)]
    # A browser has all colours, whatever the terminal in which it was started has.
    chosen = theme_name(theme, {**os.environ, "TEXTUAL_COLOR_SYSTEM": "truecolor"})
    command += ["top", "--read-only", "--theme", chosen, "--interval", f"{interval_s:g}"]
    door = Door(shlex.join(command), socket)
    if cx.out.quiet:
        cx.out.text(door.address)  # it contains a secret that cannot be guessed
    cx.out.narrate(f"lumctl top, read-only, target {cx.target}: {door.address} (Ctrl-C ends it)")
    door.open()
    return ExitCode.DONE


def _ascii(cx: Invocation) -> list[str]:
    return ["--ascii"] if cx.out.ascii_only else []


class Observer:
    """Looks at a rack again and again: with the daemon's eyes where one runs, else through one open context.

    After a look in which no host answered the context is opened again: a simulator that was started again answers at
    other addresses. While the daemon looks, no context is kept open.
    """

    def __init__(
        self,
        open_context: "Callable[[], Context]",
        ask_daemon: "Callable[[], Observation | None]" = lambda: None,
    ) -> None:
        self._open_context = open_context
        self._ask_daemon = ask_daemon
        self._context: Context | None = None

    def __enter__(self) -> Self:
        if self._ask_daemon() is None:
            self._context = self._open_context()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self) -> "Observation":
        """Read everything once."""
        seen = self._ask_daemon()
        if seen is not None:
            self._close()
            return seen
        self._context = context = self._context or self._open_context()
        observation = context.observe()
        if not any(host.reachable for host in observation.snapshot.hosts.values()):
            self._close()
        return observation

    def _close(self) -> None:
        if self._context is not None:
            self._context.close()
            self._context = None


app = noun_app(NOUNS["top"].help)

IntervalOption = Annotated[float, interval_option("Seconds between two readings.")]

SLOWEST, FASTEST = 0.01, 100.0

ThemeOption = Annotated[
    str | None,
    typer.Option("--theme", metavar="NAME", help="Colours: dark, light, contrast, ansi. Default: $LUMCTL_THEME."),
]
ReadOnlyOption = Annotated[
    bool, typer.Option("--read-only", help="Only show; plan and apply nothing. Also $LUMCTL_READ_ONLY=1.")
]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Tell it in plain lines, for a screen reader or a pipe; type help for words.")
]
WebOption = Annotated[
    bool, typer.Option("--web", help="Serve it to a browser on this machine, read-only, until Ctrl-C.")
]
ReplayOption = Annotated[
    str | None,
    typer.Option("--replay", metavar="RUN", help="Play a recorded run in time, on a simulator of its own; read-only."),
]
SpeedOption = Annotated[
    float | None,
    typer.Option(
        "--speed", metavar="X", min=SLOWEST, max=FASTEST, callback=a_speed, help="With --replay: X times as fast."
    ),
]
PortOption = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="With --web: listen there.")]


@verb(app)
def top(
    cx: Invocation,
    interval: IntervalOption = 2.0,
    theme: ThemeOption = None,
    read_only: ReadOnlyOption = False,
    plain: PlainOption = False,
    web: WebOption = False,
    port: PortOption = 8787,
    replay: ReplayOption = None,
    speed: SpeedOption = None,
) -> int:
    """Show the dashboard: racks, accelerators, circuits and findings, live; swaps are planned and applied from it.

    An apply is never interrupted: if you quit meanwhile, its outcome is printed after the screen is closed. If ``lumctl
    watch`` runs, its newest observation is shown. Exit code: that of the last apply; 0 if there was none.

    ``--web`` prints an address that holds a secret token: other users of the machine cannot open a page without it. Up
    to 8 pages may be open at once; each is a process that reads the rack.

    With ``--read-only``, and for users who may not write the rack's store, no change is offered.

    ``--replay RUN`` shows a private simulator instead of a rack. It starts in the state of the racks before the run,
    the replaced accelerators fail there, and the steps are done with the recorded pauses between them, each compared
    with the record. A pause of more than 20 s is shortened to 5 s, with a message. Only the store of the rack is
    read, and nothing is written. Exit code: 5 if the replay differs from the record.
    """
    if cx.out.format is not OutputFormat.TABLE:
        raise UsageError("the dashboard is a screen and prints no data", hint=f"lumctl status -o {cx.out.format}")
    if speed is not None and replay is None:
        raise UsageError("--speed is how fast a run is played", hint="add --replay RUN")
    if web and replay is not None:
        raise UsageError("--replay plays on this terminal: leave --web out")
    if web:
        return serve(cx, theme, interval, port)
    from lumctl.tui.look.themes import theme_name

    chosen = theme_name(theme)
    # Textual draws on stderr, so that one must be a terminal as well; a browser's driver needs none.
    terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if not plain and not terminal and not os.environ.get("TEXTUAL_DRIVER"):
        raise UsageError("the dashboard needs a terminal", hint="lumctl status --watch")
    if replay is not None:
        from lumctl.cli.top.replay import played

        return played(cx, replay, speed or 1.0, interval_s=interval, theme=None if plain else chosen)
    from lumctl.cli.top import operations, policies, runbooks, shutdown
    from lumctl.cli.top.history import Historian
    from lumctl.cli.top.meshes import mesh_view
    from lumctl.cli.top.operations import acknowledge, why_read_only
    from lumctl.cli.top.plain import plain_session
    from lumctl.cli.top.records import Recorder
    from lumctl.cli.top.runs import run_view, taking_back
    from lumctl.tui.actions import Acts
    from lumctl.tui.app import Dashboard
    from lumctl.tui.look.marks import Marks
    from lumctl.tui.sources import Sources

    glyphs = ASCII_GLYPHS if cx.out.ascii_only else GLYPHS
    from lumctl.daemon.client import MAX_AGE_S, ObservationClient, observation_of

    def ask_daemon() -> "Observation | None":
        return observation_of(cx.inventory, cx.target, max_age_s=max(2 * interval, MAX_AGE_S))

    forbidden = why_read_only(cx.inventory, str(cx.target), asked=read_only)
    recorder = Recorder(cx.inventory, str(cx.target), watched=partial(policies.daemon_answers, cx))
    kept = Historian(cx.inventory, str(cx.target))
    with Observer(lambda: _open(cx), ObservationClient(ask_daemon)) as observe, recorder as records, kept as history:
        sources, acts = (
            Sources(
                observe,
                records,
                run=lambda run: run_view(cx, run),
                mesh=lambda device: mesh_view(cx, device),
                runbook=partial(runbooks.runbook_of, cx),
                compare=partial(runbooks.compared, cx),
                explain=partial(policies.explained, cx),
                asked_plan=partial(policies.asked_plan, cx),
                history=history,
            ),
            Acts(
                lambda job, failed: operations.plan(cx, job, failed),
                lambda view, progress: operations.apply_plan(cx, view, progress),
                forbidden,
                acknowledge=lambda components, comment: acknowledge(cx, components, comment),
                take_back=lambda run: taking_back(cx, run),
                replay=partial(runbooks.replayed, cx),
                stop_autopilot=partial(policies.stop_autopilot, cx),
                start_autopilot=partial(policies.start_autopilot, cx),
                answer_plan=partial(policies.answer_plan, cx),
            ),
        )
        dashboard = (
            plain_session(cx, sources, acts, interval)
            if plain
            else Dashboard(
                sources,
                acts,
                racks=cx.inventory.racks,
                target=cx.target,
                marks=Marks(glyphs, ascii_only=cx.out.ascii_only),
                interval_s=interval,
                theme=chosen,
            )
        )
        return shutdown.run_to_its_end(cx, dashboard)


def _open(cx: Invocation) -> "Context":
    from lumctl.context import Context

    context = Context(cx.inventory, cx.target)
    context.endpoints  # noqa: B018 - a simulator that does not run is an error before the screen is taken
    return context
