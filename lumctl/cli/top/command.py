"""``lumctl top``: the dashboard, connected to a rack and to all actions that it offers."""

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

import typer

from lumctl.cli.forgotten_target import forgotten_target
from lumctl.cli.invocation import Invocation
from lumctl.cli.live import a_speed, interval_option
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import ASCII_GLYPHS, GLYPHS, OutputFormat
from lumctl.cli.verbs import aimed, noun_app, verb
from lumctl.errors import ExitCode, LumctlError, UsageError

if TYPE_CHECKING:
    from lumctl.context import Context, Observation
    from lumctl.inventory.model import Inventory
    from lumctl.store import Store
    from lumctl.tui.views.history import Series


class Historian:
    """Reads the daemon's stored data. It opens its own stores, so that any thread may use it."""

    def __init__(self, inventory: "Inventory", target: str, now: Callable[[], float] = time.time) -> None:
        self._inventory = inventory
        self._target = target
        self._now = now
        self._lock = threading.Lock()
        self._stores: dict[str, Store] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for store in self._stores.values():
                store.close()
            self._stores.clear()

    def __call__(self, component: str, seconds: float) -> "tuple[Series, ...]":
        """The readings of a component for the last seconds; empty if no store has any.

        Raises:
            LumctlError: the store cannot be read; the next call opens it again.
        """
        from lumctl.health.observation import rack_of
        from lumctl.health.quantities import UNITS
        from lumctl.tui.views.history import Series

        rack = rack_of(self._inventory, component)
        if rack is None:
            return ()
        now = self._now()
        try:
            found = self._store(rack).readings.of(component, since=now - seconds, until=now)
        except LumctlError:
            with self._lock:
                if (store := self._stores.pop(rack, None)) is not None:
                    store.close()
            raise
        return tuple(Series(name, UNITS[name], found[name]) for name in UNITS if name in found)

    def _store(self, rack: str) -> "Store":
        from lumctl.store import open_store

        with self._lock:
            if rack not in self._stores:
                self._stores[rack] = open_store(self._inventory, rack, self._target)
            return self._stores[rack]


LOOPBACK = "127.0.0.1"


def serve(cx: Invocation, theme: str | None, interval_s: float, port: int) -> int:
    """Serve until Ctrl-C or a request to stop.

    Raises:
        UsageError: the extra that serves pages is not installed, or the port is in use.
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
        hint = "choose another one with --port, or 0 for any free port"
        raise UsageError(f"cannot listen on port {port}: {error.strerror}", hint=hint) from error
    # -P: a file in the current folder must not pass for a module of lumctl.
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
    """Observes a rack repeatedly: through the daemon if one runs, else through one open context.

    After an observation in which no host answered, the context is opened again: a restarted simulator has other
    addresses. While the daemon observes, no context is open.
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
    typer.Option(
        "--theme", metavar="NAME", help="Colours: dark, classic, light, contrast, ansi. Default: $LUMCTL_THEME."
    ),
]
ReadOnlyOption = Annotated[
    bool, typer.Option("--read-only", help="Only show: plan and apply nothing. Also $LUMCTL_READ_ONLY=1.")
]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Print plain lines, for a screen reader or a pipe; type help for commands.")
]
WebOption = Annotated[
    bool, typer.Option("--web", help="Serve the dashboard to a browser on this machine, read-only, until Ctrl-C.")
]
BellOption = Annotated[
    bool | None,
    typer.Option(
        "--bell/--no-bell",
        help="Ring the terminal's bell for each new incident. Default: as last chosen with key B; initially off.",
    ),
]
ReplayOption = Annotated[
    str | None,
    typer.Option("--replay", metavar="RUN", help="Play a recorded run in real time on a private simulator; read-only."),
]
SpeedOption = Annotated[
    float | None,
    typer.Option(
        "--speed",
        metavar="X",
        min=SLOWEST,
        max=FASTEST,
        callback=a_speed,
        help="With --replay: the playback speed, as a factor.",
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
    bell: BellOption = None,
) -> int:
    """Show the dashboard: racks, accelerators, circuits and findings, live; swaps are planned and applied from it.

    The first line of every pane is the worst fault in words, its effect on a job, and the key to press: ``p`` plans a
    swap for it, or for the selected component if that has failed. Of equally bad faults, those that affect a rank come
    first. Accelerators that fail with one cause, such as those of a dead host, are swapped together. The first pane
    draws the racks: the number of an accelerator is its utilisation, temperature or power (``m``), components that are
    not ok have a glyph and the colour of their state, the selected accelerator has a >, and those that light joins to
    it have a *. On screens of at least 140 columns its details are shown next to it. Above, a job is at risk if an
    accelerator or a circuit of it is not ok or in maintenance, if no free spare fits one of its ranks, or if a swap for
    one may have to write a mesh or a switch that does not answer; the jobs pane says which. ``t`` shows the racks as a
    table. ``S`` shows the spares and the ranks that each can replace, ``x`` what each receiver of a rail hears, ``b``
    the remaining loss budget, and ``t`` on the screen of an incident its timeline. The screen of a job that lumctl runs
    shows whom the other ranks waited for in its newest training steps, and the advice of ``lumctl job stragglers``.

    Keys for the selected component: ``s`` opens a shell on its host with ssh, which has the user, port,
    key, jump hosts and known hosts of the inventory and refuses an unknown key; ``exit`` returns here. ``l`` shows the
    kernel log of the host and the output of each probe, with its command and exit status. ``y`` copies a ticket about
    it to the clipboard (OSC 52; tmux needs ``set -s set-clipboard on``): what failed, where, since when, the evidence,
    the affected ranks, what was done, the next command; ``lumctl health explain COMPONENT -o md`` prints the same.
    ``o`` opens the runbook of the last run that changed it. The details of an accelerator or a host name the Slurm job
    there, with its user, state and time. ``B`` turns the bell for new unacknowledged incidents on or off.

    In a table ``[`` and ``]`` choose a line with a fault; ``<``, ``>``, ``R`` or a click on a heading sort; ``m`` marks
    the line and goes to the next, and ``p``, ``a``, ``w`` and ``d`` swap, acknowledge, maintain or drain all marked
    ones (those that an action does not fit are named, with the reason), and ``h`` plots their readings over time with
    the incidents of that time; ``c`` chooses the columns. On the screen of a run (enter) ``u``
    undoes it. ``T`` changes the theme. $XDG_STATE_HOME/lumctl/top.json remembers columns, theme and bell. ``?`` lists
    all keys of each screen.

    An apply is never interrupted: if you quit meanwhile, its outcome is printed after the screen is closed. If ``lumctl
    watch`` runs, its newest observation is shown. Exit code: that of the last apply; 0 if there was none.

    ``T`` selects the next theme, which is remembered. ``ctrl-z`` suspends to the shell; ``fg`` returns to the
    dashboard. Standard error may be redirected.

    ``--web`` prints an address that contains a secret token: other users of the machine cannot open a page without it.
    Up to 8 pages may be open at once; each is a process that reads the rack.

    With ``--read-only``, and for users without write access to the rack's store, no change is offered.

    ``--replay RUN`` shows a private simulator instead of a rack. It starts in the state of the racks before the run,
    the replaced accelerators fail there, and the steps are done with the recorded pauses between them, each compared
    with the record. A pause of more than 20 s is shortened to 5 s, with a message. Only the store of the rack is
    read, and nothing is written. Exit code: 5 if the replay differs from the record.
    """
    if cx.out.format is not OutputFormat.TABLE:
        raise UsageError("the dashboard is a screen and prints no data", hint=f"lumctl status -o {cx.out.format}")
    if speed is not None and replay is None:
        raise UsageError("--speed sets the playback speed", hint="add --replay RUN")
    if web and replay is not None:
        raise UsageError("--replay plays on this terminal: omit --web")
    if web:
        return serve(cx, theme, interval, port)
    from lumctl.tui.look.themes import theme_name
    from lumctl.tui.preferences import own_preferences

    preferences = own_preferences()
    chosen = theme_name(theme, remembered=preferences.theme)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()  # a browser's driver needs none
    if not plain and not terminal and not os.environ.get("TEXTUAL_DRIVER"):
        raise UsageError("the dashboard needs a terminal", hint="lumctl status --watch")
    if replay is not None:
        from lumctl.cli.top.replay import played

        return played(cx, replay, speed or 1.0, interval_s=interval, theme=None if plain else chosen)
    from lumctl.cli.top import hosts, operations, policies, runbooks, shutdown
    from lumctl.cli.top.jobs import job_waits
    from lumctl.cli.top.meshes import mesh_view
    from lumctl.cli.top.operations import acknowledge, why_read_only
    from lumctl.cli.top.plain import plain_session
    from lumctl.cli.top.records import Recorder
    from lumctl.cli.top.runs import run_view, undoing
    from lumctl.cli.top.swaps import SwapChecker
    from lumctl.tui.actions import Acts
    from lumctl.tui.app import Dashboard
    from lumctl.tui.look.marks import Marks
    from lumctl.tui.sources import Sources

    glyphs = ASCII_GLYPHS if cx.out.ascii_only else GLYPHS
    from lumctl.daemon.client import MAX_AGE_S, ObservationClient, has_died, observation_of

    def ask_daemon() -> "Observation | None":
        return observation_of(cx.inventory, cx.target, max_age_s=max(2 * interval, MAX_AGE_S))

    forbidden = why_read_only(cx.inventory, str(cx.target), asked=read_only)
    recorder = Recorder(
        cx.inventory,
        str(cx.target),
        watched=partial(policies.daemon_answers, cx),
        died=partial(has_died, cx.inventory, str(cx.target)),
    )
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
                host_output=partial(hosts.host_output, cx),
                scheduled=partial(hosts.scheduled, cx),
                job_waits=partial(job_waits, cx),
                shell=partial(hosts.shell_command, cx),
                forgotten_target=partial(forgotten_target, cx),
                aimed=partial(aimed, cx),
                check_swaps=SwapChecker(lambda: _open(cx)),
                history=history,
            ),
            Acts(
                lambda job, *failed: operations.plan(cx, job, *failed),
                lambda view, progress: operations.apply_plan(cx, view, progress),
                forbidden,
                acknowledge=lambda components, comment: acknowledge(cx, components, comment),
                maintain=lambda components, for_s, comment: operations.maintain(cx, components, for_s, comment),
                drain=lambda job, *accelerators: operations.plan(cx, job, *accelerators, even_if_healthy=True),
                undo=lambda run: undoing(cx, run),
                place_slice=partial(operations.place_slice, cx),
                release_slice=partial(operations.release_slice, cx),
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
                preferences=preferences,
                marks=Marks(glyphs, ascii_only=cx.out.ascii_only),
                interval_s=interval,
                theme=chosen,
                bell=bell,
            )
        )
        return shutdown.run_to_its_end(cx, dashboard)


def _open(cx: Invocation) -> "Context":
    from lumctl.context import Context

    context = Context(cx.inventory, cx.target)
    context.endpoints  # noqa: B018 - a simulator that does not run is an error before the screen is taken
    return context
