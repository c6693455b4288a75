"""``lumctl demo``: from a lost GPU to proved light on the embedded simulator, with the time of each stage.

The demo uses its own simulator and store and removes them at the end, so it does not disturb anything else. Its runbook
stays in the state folder.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any

import typer

from lumctl.change import Plan, RunResult, apply
from lumctl.change.engine import at_once
from lumctl.cli.drill import drilling, require_torch
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Output, OutputColumn, OutputFormat
from lumctl.cli.plan_lines import plan_lines
from lumctl.cli.progress import progress
from lumctl.cli.verbs import noun_app, verb
from lumctl.context import Context, Observation
from lumctl.errors import UnreachableError, UsageError
from lumctl.files import put
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.printable import counted
from lumctl.runbook.document import make
from lumctl.runbook.files import make_private_folder
from lumctl.runbook.replay import ReplayResult, replay_on_simulator
from lumctl.runbook.yaml_text import dump, load_file
from lumctl.sim.launch import launch
from lumctl.store import Store, state_folder, store_at
from lumctl.swap import commission, plan_swap
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

app = noun_app(NOUNS["demo"].help)


@dataclass
class Story:
    """Times the stages of the demo and prints each."""

    say: Callable[[str], None]
    quiet: bool = False
    stages: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str, title: str) -> Iterator[None]:
        """Time one stage and print it."""
        self.say(f"{title} ...")
        started = perf_counter()
        with progress(title, quiet=self.quiet):
            yield
        seconds = round(perf_counter() - started, 3)
        self.stages.append({"name": name, "title": title, "seconds": seconds})
        self.say(f"    {seconds:.2f} s")


class Tale(StrEnum):
    """Which demo runs: a swap alone, or also the recovery of a training job."""

    SWAP = "swap"
    RECOVER = "recover"


@verb(app)
def demo(
    cx: Invocation,
    tale: Annotated[Tale, typer.Argument(help="Recover the light paths alone, or a training job too.")] = Tale.SWAP,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="With recover: draw the timeline as .svg or .png.")
    ] = None,
) -> None:
    """Bring up a rack on loopback, let a GPU fail, swap the spare in, prove the light, and replay the runbook.

    The inventory is the shipped prototype, or the one given with -i: the second rank of its first job dies.

    ``lumctl demo recover`` includes the job (it needs PyTorch: lumctl[torch]; the shipped ring4, or -i): real processes
    train a small Llama on the rack, the process and the GPU of a rank die, and the job continues with its next step.
    Each moment is timed from the kill and shown next to the published timeline.
    """
    if tale is Tale.RECOVER:
        recover(cx, picture)
        return
    if picture is not None:
        raise UsageError("--picture draws the timeline of a recovery", hint="lumctl demo recover --picture FILE")
    inventory = load_inventory(example("prototype")) if cx.inventory_path is None else cx.inventory
    job = next(iter(inventory.jobs.values()))
    victim = job.ranks[min(1, len(job.ranks) - 1)]
    story = Story(cx.out.narrate, cx.out.quiet)
    with TemporaryDirectory(prefix="lumctl-demo-") as scratch:
        with story.phase("up", f"the rack of {inventory.path.name} starts on loopback"):
            simulator = launch(inventory, folder=Path(scratch) / "sim", tied=True)
        store = store_at(str(Path(scratch) / "store"))
        with (
            simulator,
            Context(inventory, "sim", endpoints=simulator.endpoints(), store=lambda _rack: store) as context,
        ):
            for remark in simulator.remarks():
                cx.out.narrate(remark)
            with story.phase("program", "its mesh is programmed for the jobs and every light path is proved"):
                commission(context, failed=lambda device, why: cx.out.narrate(f"{device} is not programmed: {why}"))
            with story.phase("read", "GPUs and light paths are read over SSH"):
                seen = context.observe()
            _say_counts(cx, seen)
            with story.phase("fault", f"{victim} falls off the bus, and the next reading shows it"):
                simulator.inject(victim, "gpu-lost")
                _require_found(context.observe(), victim)
            with story.phase("plan", "a spare is chosen and its light paths are routed"):
                plan = plan_swap(context, job.name, [victim])
            for line in plan_lines(plan)[1:]:
                cx.out.detail(f"    {line}")
            with story.phase("swap", f"{plan.title}: programmed, and every receiver proved"):
                result = apply(context, plan, progress=lambda line: cx.out.narrate(f"    {line}"))
            runbook = _kept_runbook(store, inventory, result.run)
    with story.phase("replay", f"the runbook of {result.run} is replayed on a private simulator"):
        replayed = replay_on_simulator(load_file(runbook), inventory, progress=cx.out.detail, before_step=at_once)
    _say_end(cx, story, plan, result, replayed, runbook)
    # The command must work as printed, also where lumctl was started by a path.
    program = "lumctl" if which("lumctl") else shlex.quote(sys.argv[0])
    cx.out.narrate(
        f"next, start a rack to experiment with: {program} sim up -i {shlex.quote(str(inventory.path))} --detach"
    )


def _kept_runbook(store: Store, inventory: Inventory, run: str, ending: str = "") -> Path:
    """Write the runbook of a run into the state folder, because the demo's own store is removed; return its path."""
    # Two demos may run at once, so the time alone does not make the name unique.
    name = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.getpid()}{ending}.yaml"
    path = state_folder() / "demo" / name
    make_private_folder(path.parent)
    put(path, dump(make(store.runs.get(run), store, inventory)), mode=0o600)
    return path


def _say_counts(cx: Invocation, seen: Observation) -> None:
    accelerators = [health.state for health in seen.report.accelerators.values()]
    circuits = [health.state for health in seen.report.circuits.values()]
    cx.out.narrate(
        f"    {accelerators.count(State.OK)} of {len(accelerators)} accelerators ok, {circuits.count(State.OK)} of "
        f"{len(circuits)} circuits receive the intended transmitter"
    )


def _require_found(seen: Observation, victim: str) -> None:
    if seen.report.accelerators[victim].state is State.OK:
        raise UnreachableError(f"{victim} was made faulty on the simulator, but still reads as ok")


def _say_end(
    cx: Invocation, story: Story, plan: Plan, result: RunResult, replayed: ReplayResult, runbook: Path
) -> None:
    total = round(sum(stage["seconds"] for stage in story.stages), 3)
    if cx.out.structured:
        replacement = plan.replacements[0]
        cx.out.document(
            "demo",
            {
                "stages": story.stages,
                "seconds": total,
                "run": result.run,
                "failed": replacement.failed,
                "spare": replacement.spare,
                "verified": len(result.verified),
                "replay_identical": replayed.identical,
                "runbook": str(runbook),
            },
        )
        return
    cx.out.text(f"{plan.title}: {counted(len(result.verified), 'receivers')} proved, done in {result.seconds:.2f} s")
    cx.out.text(f"replay: {'identical' if replayed.identical else f'differs: {replayed.first_difference}'}")
    cx.out.text(f"total: {total:.2f} s")
    cx.out.text(f"runbook: {runbook}")


_MOST_WIDTH = 72
_PIPE_WIDTH = 120
_SPACES = 4
"""The most characters that a table on a terminal adds for each column."""


def print_recovery(out: Output, measured: Timeline) -> None:
    """Print a measured recovery, and a published one below it.

    Bars are drawn on a terminal and with ``-o wide``; a pipe gets the other columns only.
    """
    for line in figure_lines(measured):
        out.text(line)
    spans = [
        ("measured", [row for row in bar_rows(measured) if not row.main]),
        (f"published: {MORPHLUX.source}", [row for row in bar_rows(MORPHLUX) if not row.main]),
    ]
    rows = [row for _, block in spans for row in block]
    # One scale for both, so that measured and published bars can be compared.
    scale = scale_for(max((row.latest_s for row in rows), default=0.0))
    width = _width(out, rows)
    for name, block in spans:
        out.text()
        if not sys.stdout.isatty():
            out.text(name)
        cells = [_cells(row, scale, width, ascii_only=out.plain_glyphs) for row in block]
        out.table(_columns(scale, width), cells, title=name)


def figure_lines(measured: Timeline) -> tuple[str, ...]:
    """The two key times of a recovery, each followed by the published one; then how the failure time is known."""
    figures = (
        ("circuits verified", measured.failure_to_circuits_s, MORPHLUX.failure_to_circuits_s),
        ("next step done", measured.failure_to_step_s, MORPHLUX.failure_to_step_s),
    )
    lines = []
    for words, seconds, published in figures:
        shown = "-" if seconds is None else in_words(seconds)
        lines.append(f"failure -> {words}: {shown} (published: {in_words(published)})")
    return (*lines, f"the time of the failure is known from its {measured.known_by.value}")


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
    """The width left for bars, in characters; 0 if bars are not requested or do not fit."""
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
        raise UsageError(
            f"no job in {inventory.path} states how to run it", hint="add a `run:` to the job; see lumctl-job(7)"
        )
    cx.out.narrate(f"the rack of {inventory.path.name} starts on loopback, and its job {job} is started ...")
    with (
        progress(f"the rack starts, and {job} is started", quiet=cx.out.quiet) as tell,
        drilling(inventory, job, say=lambda line: cx.out.detail(f"    {line}")) as drill,
    ):
        tell(f"the ranks of {job} and its spares get ready")
        drill.settle()
        state = drill.coordinator.state
        rate = steps_per_s(state)
        cx.out.narrate(f"    {len(state.group.members)} ranks train, {rate:.3g} steps/s; spares are ready")
        victim = state.placement[VICTIM]
        cx.out.narrate(f"{victim} falls off the bus, and the process of rank {VICTIM} is killed ...")
        tell(f"{job} recovers")
        timeline = drill.strike([VICTIM], lost=True)
        drill.wait(lambda: not state.under_examination, "the end of the run", 30.0)
        run = state.recoveries[-1].run or ""
        runbook = _kept_runbook(drill.store, drill.inventory, run, "-recover")
    if picture is not None:
        about = About(this_machine(), f"{datetime.now().astimezone():%Y-%m-%d}")
        save(picture, timeline, about, title=f"One of {len(state.group.members)} ranks and its GPU die")
    if cx.out.structured:
        shown = str(picture) if picture is not None else None
        made = {"run": run, "runbook": str(runbook), "picture": shown, "machine": this_machine()}
        cx.out.document("demo-recover", {**timeline.document(), **made})
        return
    print_recovery(cx.out, timeline)
    cx.out.text()
    cx.out.text(f"runbook of pause, swap and resume: {runbook}")
    if picture is not None:
        cx.out.text(f"picture: {picture}")
