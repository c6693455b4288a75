"""``lumctl status``: the health of everything, read now."""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.check import write_atomically
from lumctl.cli.invocation import Invocation
from lumctl.cli.live import interval_option, repeat
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Output, OutputColumn, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import ExitCode, UsageError
from lumctl.health.states import HealthReport, State
from lumctl.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from lumctl.context import Observation

WIDTH = 140
_FONT_FROM_ELSEWHERE = re.compile(r"@font-face \{.*?\n\s*\}\n", re.DOTALL)


class Canvas(Output):
    """Prints what is shown on a terminal onto a console that remembers it."""

    def __init__(self, like: Output, console: "Console") -> None:
        super().__init__(format=like.format, ascii_only=like.ascii_only)
        object.__setattr__(self, "console", console)

    console: "Console"

    def table(self, columns: Sequence[OutputColumn], rows: Sequence[Mapping[str, Any]], *, title: str = "") -> None:
        """Print rows as a table."""
        shown = [column for column in columns if self.format is OutputFormat.WIDE or not column.wide]
        self.console.print(self.rich_table(shown, rows, title))

    def text(self, text: str = "") -> None:
        """Print a line."""
        self.console.print(printable(text, lines=True), markup=False)

    @property
    def plain_glyphs(self) -> bool:
        """Whether the ASCII option was given: a picture can show every character."""
        return self.ascii_only


def draw_status(out: Output, observation: "Observation", file: Path) -> None:
    """Draw what ``lumctl status`` prints into a file, whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    from lumctl.cli.views import status_document

    write_atomically(file, status_svg(out, status_document(observation)))


def status_svg(out: Output, document: Mapping[str, Any]) -> str:
    """A status document as an SVG picture; nothing in it is fetched from elsewhere."""
    from rich.console import Console

    from lumctl.cli.status_tables import print_status

    console = Console(
        file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor", highlight=False
    )
    print_status(Canvas(out, console), document)
    svg = console.export_svg(title="lumctl status", unique_id="lumctl-status")
    return _FONT_FROM_ELSEWHERE.sub("", svg)


app = noun_app(NOUNS["status"].help)

NOT_REACHED = frozenset({"host.unreachable", "device.unreachable"})
"""Rules about the way to a component rather than the component."""


@verb(app)
def status(
    cx: Invocation,
    watch: Annotated[bool, typer.Option("--watch", help="Read again and again until Ctrl-C.")] = False,
    interval: Annotated[float, interval_option("Pause between looks with --watch.")] = 2.0,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Also draw the tables into this file, as a picture.")
    ] = None,
) -> None:
    """Show the health of every host, accelerator, link and circuit, read now over SSH.

    Exit code: 4 if anything is failed or degraded; 3 if the only trouble is that something could not be reached or
    read; 0 if everything is ok. Accelerators out of service do not count.
    """
    from lumctl.context import Context

    if svg is not None and watch:
        raise UsageError("--svg draws one look, and --watch never ends", hint="leave one of them out")
    with Context(cx.inventory, cx.target) as context:
        if watch:
            repeat(lambda: show(cx, context.observe(), findings_first=True), interval)
        observation = context.observe()
    show(cx, observation)
    if svg is not None:
        draw_status(cx.out, observation, svg)
    raise typer.Exit(exit_code(observation.report))


def show(cx: Invocation, observation: "Observation", *, findings_first: bool = False) -> None:
    """Print an observation in the wanted format."""
    from lumctl.cli.status_tables import print_status
    from lumctl.cli.views import status_document

    if cx.out.format is OutputFormat.NAME:
        cx.out.names(list(observation.report.accelerators))
    elif cx.out.structured:
        cx.out.document("status", status_document(observation))
    else:
        print_status(cx.out, status_document(observation), findings_first=findings_first)


def exit_code(report: HealthReport) -> ExitCode:
    """The exit code of a report."""
    components = [health for group in report.groups().values() for health in group.values()]
    unhealthy = any(
        finding.state in {State.FAILED, State.DEGRADED} and finding.rule not in NOT_REACHED
        for health in components
        if health.state is not State.DISABLED
        for finding in health.findings
    )
    if unhealthy:
        return ExitCode.UNHEALTHY
    if any(health.state not in {State.OK, State.DISABLED} for health in components):
        return ExitCode.UNREACHABLE
    return ExitCode.DONE
