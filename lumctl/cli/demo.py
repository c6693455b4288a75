"""``lumctl demo``: from a lost GPU to proved light on the embedded simulator, with the time of each stage.

It uses a simulator and a store of its own that are gone afterwards, so it disturbs nothing and can run beside anything;
the runbook it makes stays in the state folder.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
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
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.plan_lines import plan_lines
from lumctl.cli.verbs import noun_app, verb
from lumctl.context import Context, Observation
from lumctl.errors import UnreachableError, UsageError
from lumctl.files import put
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.printable import counted
from lumctl.runbook.document import make
from lumctl.runbook.files import make_private_folder
from lumctl.runbook.replay import ReplayResult, replay_on_simulator
from lumctl.runbook.yaml_text import dump, load_file
from lumctl.sim.launch import launch
from lumctl.store import state_folder, store_at
from lumctl.swap import commission, plan_swap

app = noun_app(NOUNS["demo"].help)


@dataclass
class Story:
    """The stages as they go by."""

    say: Callable[[str], None]
    stages: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str, title: str) -> Iterator[None]:
        """Time one stage and print it."""
        self.say(f"{title} ...")
        started = perf_counter()
        yield
        seconds = round(perf_counter() - started, 3)
        self.stages.append({"name": name, "title": title, "seconds": seconds})
        self.say(f"    {seconds:.2f} s")


class Tale(StrEnum):
    """The result of the demo."""

    SWAP = "swap"
    RECOVER = "recover"


@verb(app)
def demo(
    cx: Invocation,
    tale: Annotated[Tale, typer.Argument(help="Of the light alone, or of a training job too.")] = Tale.SWAP,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="With recover: draw the timeline, as .svg or .png.")
    ] = None,
) -> None:
    """Bring up a rack on loopback, let a GPU die, swap the spare in, prove the light, and replay the runbook.

    The inventory is the shipped prototype, or the one given with -i: the second rank of its first job dies.

    ``lumctl demo recover`` includes the job (it needs PyTorch: lumctl[torch]; the shipped ring4, or -i): real processes
    train a small Llama on the rack, the process and the GPU of a rank die, and the job continues with its next step.
    Each moment is timed from the kill and shown beside the published timeline.
    """
    if tale is Tale.RECOVER:
        from lumctl.cli.demo_recover import recover

        recover(cx, picture)
        return
    if picture is not None:
        raise UsageError("--picture draws the timeline of a recovery", hint="lumctl demo recover --picture FILE")
    inventory = load_inventory(example("prototype")) if cx.inventory_path is None else cx.inventory
    job = next(iter(inventory.jobs.values()))
    victim = job.ranks[min(1, len(job.ranks) - 1)]
    story = Story(cx.out.narrate)
    with TemporaryDirectory(prefix="lumctl-demo-") as scratch:
        with story.phase("up", f"the rack of {inventory.path.name} comes up on loopback"):
            simulator = launch(inventory, folder=Path(scratch) / "sim", tied=True)
        store = store_at(str(Path(scratch) / "store"))
        with (
            simulator,
            Context(inventory, "sim", endpoints=simulator.endpoints(), store=lambda _rack: store) as context,
        ):
            for remark in simulator.remarks():
                cx.out.narrate(remark)
            with story.phase("program", "its mesh is programmed for the jobs and every light path proved"):
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
            runbook = state_folder() / "demo" / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.getpid()}.yaml"
            make_private_folder(runbook.parent)
            put(runbook, dump(make(store.runs.get(result.run), store, inventory)), mode=0o600)
    with story.phase("replay", f"the runbook of {result.run} is replayed on a simulator of its own"):
        replayed = replay_on_simulator(load_file(runbook), inventory, progress=cx.out.detail, before_step=at_once)
    _say_end(cx, story, plan, result, replayed, runbook)
    program = "lumctl" if which("lumctl") else shlex.quote(sys.argv[0])
    cx.out.narrate(f"next, a rack to try things on: {program} sim up -i {shlex.quote(str(inventory.path))} --detach")


def _say_counts(cx: Invocation, seen: Observation) -> None:
    accelerators = [health.state for health in seen.report.accelerators.values()]
    circuits = [health.state for health in seen.report.circuits.values()]
    cx.out.narrate(
        f"    {accelerators.count(State.OK)} of {len(accelerators)} accelerators ok, "
        f"{circuits.count(State.OK)} of {len(circuits)} circuits hear whom they should"
    )


def _require_found(seen: Observation, victim: str) -> None:
    if seen.report.accelerators[victim].state is State.OK:
        raise UnreachableError(f"{victim} was made faulty on the simulator, and yet it reads as ok")


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
    cx.out.text(f"in all: {total:.2f} s")
    cx.out.text(f"runbook: {runbook}")
