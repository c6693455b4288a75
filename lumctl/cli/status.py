"""``lumctl status``: the health of everything, read now."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.check import write_atomically
from lumctl.cli.forgotten_target import forgotten_target
from lumctl.cli.invocation import Invocation
from lumctl.cli.live import interval_option, repeat
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Output, OutputColumn, OutputFormat
from lumctl.cli.pager import paged
from lumctl.cli.verbs import aimed, noun_app, verb
from lumctl.errors import ExitCode, UsageError
from lumctl.health.remedy import Remedy
from lumctl.health.states import HARMLESS, CircuitHealth, ComponentHealth, HealthReport, Judged, State
from lumctl.inventory.folded_names import FoldError, expand_list
from lumctl.inventory.model import Inventory
from lumctl.inventory.problems import require_known
from lumctl.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from lumctl.context import Context
    from lumctl.health.observation import Observation

app = noun_app(NOUNS["status"].help)
SVG = "svg"

NOT_REACHED = frozenset({"host.unreachable", "device.unreachable"})
"""Rules about reaching a component, not about the component itself."""


@verb(app, formats=(SVG,))
def status(
    cx: Invocation,
    failed: Annotated[bool, typer.Option("--failed", help="Show only failed components.")] = False,
    host: Annotated[
        str, typer.Option("--host", metavar="HOST[,HOST...]", help="Show only these hosts and their components.")
    ] = "",
    job: Annotated[
        str, typer.Option("--job", metavar="JOB[,JOB...]", help="Show only the components that these jobs use.")
    ] = "",
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also list components that are ok; on a terminal they are only counted by default."),
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Read repeatedly until Ctrl-C.")] = False,
    interval: Annotated[float, interval_option("Pause between readings with --watch.")] = 2.0,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Also draw the tables into this file, as a picture.")
    ] = None,
) -> None:
    """Show the health of every host, accelerator, link and circuit, read now over SSH; faults are listed first.

    "To do" lists jobs that were stopped for a swap and not resumed, each fault with the command that plans its repair,
    or with what an operator must repair; last come accelerators that a swap took out, with the command that returns
    them after their repair, and the ranks to move before their host is drained. The tables follow; on a
    terminal, components that are ok are only counted. With -o svg they are drawn as a picture. --failed, --host and
    --job select a part; if combined, a component must match all of them; host names may be folded (``h[01-04]``).

    Exit code, for the selected components: 4 if anything is failed or degraded; 3 if the only fault is that something
    could not be reached or read; 0 if everything is ok. Accelerators out of service do not count.
    """
    from lumctl.context import Context
    from lumctl.daemon.client import has_died

    if watch and (svg is not None or cx.out.own_format == SVG):
        raise UsageError("a picture shows one reading, but --watch never ends", hint="omit one of them")
    with Context(cx.inventory, cx.target) as context:
        wanted = parse_selection(context.inventory, failed=failed, hosts=host, jobs=job)

        def look() -> "SelectedStatus":
            return select(context.observe(), wanted)

        if watch:
            repeat(lambda: show(cx, context, look(), everything=everything), interval)
        selected = look()
        # While the context is open: each remedy is planned to see whether its command works.
        document = document_of(cx, context, selected)
    slip = forgotten_target(cx, selected.observation.report)
    with paged() if cx.out.for_people else nullcontext():
        if slip and cx.out.for_people:  # first of all, and in the pager: everything below is a consequence
            cx.out.text(f"{slip}\n")
        _print(cx, document, everything=everything)
        if not (wanted.everything or cx.out.structured or _anything(document)):
            cx.out.narrate(f"{wanted} selects nothing")
    if has_died(cx.inventory, cx.target):
        said = "the daemon died: notifications, policies and history stopped with it"
        cx.out.narrate(f"warning: {said}; start it: lumctl watch")
    if slip and not cx.out.for_people:
        cx.out.narrate(slip)
    if svg is not None:
        draw_status(cx.out, document, svg)
    raise typer.Exit(exit_code(selected.observation.report))


def document_of(cx: Invocation, context: "Context", selected: "SelectedStatus") -> dict[str, Any]:
    """The status document, with complete commands in its remedies."""
    from lumctl.cli.remedies import remedy_documents, repair_rows, stopped_job_rows, unread
    from lumctl.cli.spare_queue import waiting_rows
    from lumctl.cli.views import status_document

    seen = selected.observation
    remedies = [*selected.remedies, *unread(seen.report, selected.remedies)]
    waiting = waiting_rows(cx, context, selected.whole)
    if selected.accelerators is not None:
        waiting = [row for row in waiting if selected.accelerators & set(row["accelerators"])]
    documents = remedy_documents(cx, context, selected.whole, remedies)
    repairs = repair_rows(cx, context, selected.whole, selected.accelerators)
    stopped = stopped_job_rows(cx, context, selected.whole)
    if selected.accelerators is not None:
        stopped = [row for row in stopped if selected.accelerators & set(row["idle"])]
    return status_document(seen, documents, waiting, repairs, stopped)


def show(cx: Invocation, context: "Context", selected: "SelectedStatus", *, everything: bool = False) -> None:
    """Print an observation in the requested format."""
    _print(cx, document_of(cx, context, selected), everything=everything)


def _print(cx: Invocation, document: Mapping[str, Any], *, everything: bool) -> None:
    from lumctl.cli.status_tables import print_status

    if cx.out.own_format == SVG:
        cx.out.text(status_svg(cx.out, document).rstrip())
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([accelerator["id"] for accelerator in document["accelerators"]])
    elif cx.out.structured:
        cx.out.document("status", document)
    else:
        print_status(cx.out, document, everything=everything, aim=lambda text: aimed(cx, text))


def _anything(document: Mapping[str, Any]) -> bool:
    return any(document[group] for group in ("hosts", "devices", "accelerators", "links", "circuits"))


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
    if any(health.state not in HARMLESS for health in components):
        return ExitCode.UNREACHABLE
    return ExitCode.DONE


WIDTH = 140
"""The width of the picture, in characters."""
_FONT_FROM_ELSEWHERE = re.compile(r"@font-face \{.*?\n\s*\}\n", re.DOTALL)


class Canvas(Output):
    """An output to a recording console, with the tables of a terminal."""

    def __init__(self, like: Output, console: "Console") -> None:
        super().__init__(format=like.format, ascii_only=like.ascii_only)
        # Output is frozen.
        object.__setattr__(self, "console", console)

    console: "Console"

    def table(self, columns: Sequence[OutputColumn], rows: Sequence[Mapping[str, Any]], *, title: str = "") -> None:
        """Print rows as a table."""
        shown = [column for column in columns if self.format is OutputFormat.WIDE or not column.wide]
        self.console.print(self.rich_table(shown, rows, title, WIDTH))

    def text(self, text: str = "") -> None:
        """Print a line."""
        self.console.print(printable(text, lines=True), markup=False)

    def styled(self, text: str, style: str) -> None:
        """Print a line in a style."""
        from rich.text import Text

        self.console.print(Text(printable(text, lines=True), style))

    @property
    def on_terminal(self) -> bool:
        """False: a picture lists everything, because a reader cannot request more."""
        return False

    @property
    def columns(self) -> int:
        """The width of the picture, in characters."""
        return WIDTH

    @property
    def plain_glyphs(self) -> bool:
        """Whether the ASCII option was given; the encoding does not matter to a picture."""
        return self.ascii_only


def draw_status(out: Output, document: Mapping[str, Any], file: Path) -> None:
    """Draw what ``lumctl status`` prints into a file, atomically.

    Raises:
        UsageError: the file cannot be written.
    """
    write_atomically(file, status_svg(out, document))


def status_svg(out: Output, document: Mapping[str, Any]) -> str:
    """A status document as an SVG picture that loads nothing from elsewhere."""
    from rich.console import Console

    from lumctl.cli.status_tables import print_status

    console = Console(
        file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor", highlight=False
    )
    print_status(Canvas(out, console), document)
    svg = console.export_svg(title="lumctl status", unique_id="lumctl-status")
    return _FONT_FROM_ELSEWHERE.sub("", svg)


@dataclass(frozen=True, slots=True)
class StatusSelection:
    """What ``status`` shows: only these hosts and jobs (all if none is given), and with ``failed`` only failures."""

    failed: bool = False
    hosts: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether everything is selected."""
        return not (self.failed or self.hosts or self.jobs)

    def __str__(self) -> str:
        """The command-line options for this selection."""
        words = ["--failed"] if self.failed else []
        words += [f"--host {','.join(self.hosts)}"] if self.hosts else []
        words += [f"--job {','.join(self.jobs)}"] if self.jobs else []
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class SelectedStatus:
    """An observation reduced to the selected components, incidents and windows, with the remedies that concern them.

    ``whole`` is the complete observation: a remedy may need a component that is not selected, such as a spare.
    ``accelerators`` are those of the selected hosts and jobs in any state; ``None`` if everything is selected.
    """

    observation: "Observation"
    remedies: tuple[Remedy, ...]
    whole: "Observation"
    accelerators: frozenset[str] | None = None


def parse_selection(inventory: Inventory, *, failed: bool, hosts: str, jobs: str) -> StatusSelection:
    """Parse the options; hosts may be folded (``h[01-04]``).

    Raises:
        UsageError: a host or job is unknown; the hint names the nearest one.
    """
    try:
        host_names = expand_list(hosts)
    except FoldError as error:
        raise UsageError(f"--host: {error}") from error
    job_names = [word.strip() for word in jobs.split(",") if word.strip()]
    require_known("host", host_names, inventory.hosts)
    require_known("job", job_names, inventory.jobs)
    return StatusSelection(failed, tuple(dict.fromkeys(host_names)), tuple(dict.fromkeys(job_names)))


def select(seen: "Observation", wanted: StatusSelection) -> SelectedStatus:
    """Select a part of an observation. Remedies come from the whole, because a cause may lie outside the part."""
    if wanted.everything:
        return SelectedStatus(seen, seen.remedies, seen)
    parts = [_of_hosts(seen, wanted.hosts)] if wanted.hosts else []
    parts += [_of_jobs(seen, wanted.jobs)] if wanted.jobs else []

    def shown(health: ComponentHealth | CircuitHealth, kind: str) -> bool:
        # Options narrow each other: a component must be in the part of each.
        in_part = all((kind, health.id) in part for part in parts)
        return in_part and (health.state is State.FAILED or not wanted.failed)

    report = seen.report
    chosen = HealthReport(
        report.at,
        hosts=_kept(report.hosts, lambda health: shown(health, "host")),
        accelerators=_kept(report.accelerators, lambda health: shown(health, "accelerator")),
        links=_kept(report.links, lambda health: shown(health, "link")),
        devices=_kept(report.devices, lambda health: shown(health, "device")),
        circuits=_kept(report.circuits, lambda health: shown(health, "circuit")),
    )
    names = {id_ for group in chosen.groups().values() for id_ in group}
    incidents = tuple(i for i in report.incidents if names & {i.cause, *i.members})
    windows = tuple(w for w in seen.windows if w.component in names or w.component in seen.inventory.racks)
    part = replace(seen, report=replace(chosen, incidents=incidents), windows=windows)
    remedies = tuple(r for r in seen.remedies if names & {*r.components, *r.replace})
    in_parts = (name for name in seen.inventory.accelerators if all(("accelerator", name) in each for each in parts))
    return SelectedStatus(part, remedies, seen, frozenset(in_parts) if parts else None)


def _kept(group: Mapping[str, Judged], shown: Callable[[Judged], bool]) -> dict[str, Judged]:
    return {id_: health for id_, health in group.items() if shown(health)}


_Place = tuple[str, str]
"""Kind and id of a component: a host and its only accelerator may share a name."""


def _of_hosts(seen: "Observation", hosts: Sequence[str]) -> set[_Place]:
    lanes = {lane.id for lane in seen.inventory.transponders.values() if lane.host in hosts}
    ends = ((c.id, {c.a.transponder, c.b.transponder}) for c in seen.circuits)
    return {
        *(("host", host) for host in hosts),
        *(("accelerator", a.id) for host in hosts for a in seen.inventory.accelerators_of(host)),
        *(("link", lane) for lane in lanes),
        *(("circuit", circuit) for circuit, both in ends if both & lanes),
    }


def _of_jobs(seen: "Observation", jobs: Sequence[str]) -> set[_Place]:
    accelerators = [name for job in jobs for name in seen.assignment.get(job, ())]
    circuits = [circuit for circuit in seen.circuits if circuit.owner in jobs]
    return {
        *(("accelerator", name) for name in accelerators),
        *(("host", seen.inventory.accelerators[name].host) for name in accelerators),
        *(("link", lane.id) for name in accelerators for lane in seen.inventory.transponders_of(name)),
        *(("circuit", circuit.id) for circuit in circuits),
        *(("device", device) for circuit in circuits for device in seen.devices_of(circuit)),
    }
