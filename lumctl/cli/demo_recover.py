"""``lumctl demo recover``: real training on a simulated rack; a rank and its GPU die, and the next step is done."""

import os
from datetime import datetime
from pathlib import Path

from lumctl.cli.drill import drilling, require_torch
from lumctl.cli.invocation import Invocation
from lumctl.cli.recovery_tables import print_recovery
from lumctl.errors import UsageError
from lumctl.files import put
from lumctl.inventory.load import example, load_inventory
from lumctl.runbook.document import make
from lumctl.runbook.files import make_private_folder
from lumctl.runbook.yaml_text import dump
from lumctl.store import state_folder
from lumctl.training.coordinator.requests import steps_per_s
from lumctl.training.picture import About, require_place, save, this_machine

VICTIM = 1
"""The rank that dies."""


def recover(cx: Invocation, picture: Path | None) -> None:
    """Tell the story, and print its timeline.

    Raises:
        LumctlError: the job did not come back, or could not be started.
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
