"""``lumctl demo recover``: real training on a simulated rack; a rank and its GPU die, and the next step is done."""

import os
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from lumctl.cli.drill import drilling, require_torch
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import Output, OutputColumn, OutputFormat
from lumctl.errors import UsageError
from lumctl.files import put
from lumctl.inventory.load import example, load_inventory
from lumctl.runbook.document import make
from lumctl.runbook.files import make_private_folder
from lumctl.runbook.yaml_text import dump
from lumctl.store import state_folder
from lumctl.training.coordinator.requests import steps_per_s
from lumctl.training.picture import About, require_place, save, this_machine
from lumctl.training.timeline import (
    LEAST_WIDTH,
    MORPHLUX,
    BarRow,
    Timeline,
    TimeScale,
    axis_text,
    bar_rows,
    bar_text,
    in_words,
    scale_for,
)

_MOST_WIDTH = 72
_PIPE_WIDTH = 120
_SPACES = 4
"""The most that a table on a terminal puts beside a column."""


def print_recovery(out: Output, measured: Timeline) -> None:
    """Print a recovery, and a published one under it.

    Bars are drawn on a terminal and with ``-o wide``; a pipe gets the columns alone.
    """
    for line in figure_lines(measured):
        out.text(line)
    spans = [
        ("measured", [row for row in bar_rows(measured) if not row.main]),
        (f"published: {MORPHLUX.source}", [row for row in bar_rows(MORPHLUX) if not row.main]),
    ]
    rows = [row for _, block in spans for row in block]
    scale = scale_for(max((row.latest_s for row in rows), default=0.0))
    width = _width(out, rows)
    for name, block in spans:
        out.text()
        if not sys.stdout.isatty():
            out.text(name)
        cells = [_cells(row, scale, width, ascii_only=out.plain_glyphs) for row in block]
        out.table(_columns(scale, width), cells, title=name)


def figure_lines(measured: Timeline) -> tuple[str, ...]:
    """The two figures of every recovery, each with the published one behind it."""
    figures = (
        ("circuits verified", measured.failure_to_circuits_s, MORPHLUX.failure_to_circuits_s),
        ("next step done", measured.failure_to_step_s, MORPHLUX.failure_to_step_s),
    )
    lines = []
    for words, seconds, published in figures:
        shown = "-" if seconds is None else in_words(seconds)
        lines.append(f"failure -> {words}: {shown} (published: {in_words(published)})")
    return (*lines, f"the failure is known by its {measured.known_by.value}")


def _columns(scale: TimeScale, width: int) -> list[OutputColumn]:
    bars = [OutputColumn(axis_text(scale, width), "bar")] if width else []
    return [
        OutputColumn("WHAT", "what"),
        OutputColumn("FROM", "from", right=True),
        OutputColumn("UNTIL", "until", right=True),
        *bars,
    ]


def _cells(row: BarRow, scale: TimeScale, width: int, *, ascii_only: bool) -> dict[str, str]:
    return {
        "what": row.label,
        "from": in_words(row.starts_s),
        "until": in_words(row.ends_s),
        "bar": bar_text(row, scale, width, ascii_only=ascii_only) if width else "",
    }


def _width(out: Output, rows: Sequence[BarRow]) -> int:
    """The columns that are left for bars; 0 where they are not wanted or too few."""
    on_terminal = sys.stdout.isatty()
    if not on_terminal and out.format is not OutputFormat.WIDE:
        return 0
    columns = shutil.get_terminal_size((_PIPE_WIDTH, 0)).columns if on_terminal else _PIPE_WIDTH
    times = [[in_words(row.starts_s), in_words(row.ends_s)] for row in rows]
    widths = (max([len("UNTIL"), *(len(words[at]) for words in times)]) for at in range(2))
    taken = max([len("WHAT"), *(len(row.label) for row in rows)]) + sum(widths)
    left = columns - taken - _SPACES * 4
    return min(left, _MOST_WIDTH) if left >= LEAST_WIDTH else 0


VICTIM = 1
"""The rank that dies."""


def recover(cx: Invocation, picture: Path | None) -> None:
    """Run the demo and print its timeline.

    Raises:
        LumctlError: the job did not recover, or could not be started.
    """
    require_torch()
    if picture is not None:
        require_place(picture)
    inventory = load_inventory(example("ring4")) if cx.inventory_path is None else cx.inventory
    job = next((job.name for job in inventory.jobs.values() if job.run is not None), None)
    if job is None:
        raise UsageError(f"no job of {inventory.path} says how it is run", hint="name its `run:`; see lumctl-job(7)")
    cx.out.narrate(f"the rack of {inventory.path.name} comes up on loopback, and its job {job} is started ...")
    with drilling(inventory, job, say=lambda line: cx.out.detail(f"    {line}")) as drill:
        drill.settle()
        state = drill.coordinator.state
        rate = steps_per_s(state)
        cx.out.narrate(f"    {len(state.group.members)} ranks train, {rate:.3g} steps/s; spares are ready")
        victim = state.placement[VICTIM]
        cx.out.narrate(f"{victim} falls off the bus, and the process of rank {VICTIM} is killed ...")
        timeline = drill.strike([VICTIM], lost=True)
        drill.wait(lambda: not state.under_examination, "the end of the run", 30.0)
        run = state.recoveries[-1].run or ""
        runbook = state_folder() / "demo" / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.getpid()}-recover.yaml"
        make_private_folder(runbook.parent)
        put(runbook, dump(make(drill.store.runs.get(run), drill.store, drill.inventory)), mode=0o600)
    if picture is not None:
        about = About(this_machine(), f"{datetime.now().astimezone():%Y-%m-%d}")
        save(picture, timeline, about, title=f"A rank and its GPU die, of {len(state.group.members)} ranks")
    if cx.out.structured:
        made = {"run": run, "runbook": str(runbook), "picture": str(picture) if picture is not None else None}
        cx.out.document("demo-recover", {**timeline.document(), **made})
        return
    print_recovery(cx.out, timeline)
    cx.out.text()
    cx.out.text(f"runbook of pause, swap and resume: {runbook}")
    if picture is not None:
        cx.out.text(f"picture: {picture}")
