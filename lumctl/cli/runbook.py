"""``lumctl runbook``: what was done, as a file that can be read, edited and replayed."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lumctl.change.engine import at_once
from lumctl.change.plan import Step
from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputFormat
from lumctl.cli.swap import RUN_COLUMNS, YesOption, run_row
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import ExitCode, RefusedError, UsageError
from lumctl.inventory.hints import nearest
from lumctl.runbook.document import dump
from lumctl.runbook.files import all_runs, find_runbook, write_private
from lumctl.runbook.replay import ReplayResult, replay_on_rack, replay_on_simulator
from lumctl.site import Site

app = noun_app(NOUNS["runbook"].help)

NameArgument = Annotated[str, typer.Argument(metavar="RUNBOOK", help="A run's id, or the path of a runbook file.")]


@verb(app, "list")
def list_(cx: Invocation) -> None:
    """List runbooks, newest first: every run has one."""
    with Site(cx.inventory, cx.target) as site:
        rows = [run_row(run) for run in all_runs(site)]
    if cx.out.structured:
        cx.out.document("runbooks", {"target": str(cx.target), "runbooks": rows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row["run"] for row in rows])
    else:
        cx.out.table(RUN_COLUMNS, rows)
        if not rows:
            cx.out.narrate(f"no run on target {cx.target} yet")


@verb(app, "show")
def show(cx: Invocation, runbook: NameArgument) -> None:
    """Print a runbook as YAML (or, with -o json, as JSON)."""
    with Site(cx.inventory, cx.target) as site:
        document = dict(find_runbook(site, runbook).document)
    if cx.out.format is OutputFormat.JSON:
        document.pop("schema")
        cx.out.document("runbook", document)
    else:
        cx.out.text(dump(document).rstrip())


@verb(app, "export")
def export(
    cx: Invocation,
    runbook: NameArgument,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to write it.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a runbook to a file, to be kept, edited or sent."""
    with Site(cx.inventory, cx.target) as site:
        found = find_runbook(site, runbook)
    path = out or Path(f"{found.id}.yaml")
    if path.exists() and not force:
        raise UsageError(f"{path} is there already", hint="add --force to write over it, or name another with --out")
    write_private(path, dump(found.document))
    cx.out.text(str(path))


@verb(app, "replay")
def replay(
    cx: Invocation,
    runbook: NameArgument,
    on: Annotated[str, typer.Option("--on", metavar="sim|RACK", help="A simulator of its own, or a rack by its name.")],
    step: Annotated[bool, typer.Option("--step", help="Ask before each step.")] = False,
    yes: YesOption = False,
) -> None:
    """Do a runbook's steps again and compare each outcome, and the end state, with the recorded ones.

    On ``sim`` a simulator of its own starts where the recording started and is gone afterwards. On a rack the steps
    are real: its placement and cells must be where the recording started. Exits 5 when the replay went another way, 6
    when a step failed on the rack and all was taken back, 7 when it was left half done. With ``--step``, what was done
    is taken back as well if an answer does not come within ten minutes.
    """
    gate = _ask if step else at_once
    if step and not sys.stdin.isatty():
        raise UsageError("--step asks before each step and there is no terminal to ask on")
    with Site(cx.inventory, cx.target) as site:
        found = find_runbook(site, runbook)
        if found.inventory_digest != cx.inventory.digest:
            cx.out.narrate(f"note: {found.id} was recorded with another text of the inventory")
        if on == Target.SIM:
            result = replay_on_simulator(found, cx.inventory, progress=cx.out.narrate, before_step=gate)
        else:
            _require_rack(cx, on, found.rack)
            cx.confirm(f"Replay {found.id} ({found.title}) on {on}?", yes=yes)
            result = replay_on_rack(found, site, progress=cx.out.narrate, before_step=gate)
    _say(cx, result)


@verb(app, "verify")
def verify(cx: Invocation) -> None:
    """Walk the journal's chain of hashes; exits 5 at the first entry that is not what was written."""
    with Site(cx.inventory, cx.target) as site:
        breaks = {rack: site.store(rack).first_break() for rack in site.inventory.racks}
    found = {rack: {"seq": b.seq, "reason": b.reason} for rack, b in breaks.items() if b}
    if cx.out.structured:
        cx.out.document("journal-verify", {"target": str(cx.target), "intact": not found, "breaks": found})
    else:
        for rack in breaks:
            cx.out.text(f"{rack}: " + ("BROKEN at entry {seq}: {reason}".format(**found[rack])
                                       if rack in found else "the journal is as it was written"))  # fmt: skip
    if found:
        raise typer.Exit(ExitCode.REFUSED)


def _say(cx: Invocation, result: ReplayResult) -> None:
    if cx.out.structured:
        cx.out.document("replay", result.to_document())
    elif result.first_difference is None:
        cx.out.text(f"{result.runbook} replayed on {result.on}: identical, {result.seconds:.2f} s")
    else:
        odd = result.first_difference
        cx.out.text(f"{result.runbook} replayed on {result.on}: differs first at step {odd.step}, {odd.what}")
        cx.out.text(f"  recorded: {odd.recorded}")
        cx.out.text(f"  replayed: {odd.replayed}")
    if result.on != Target.SIM and result.outcome == "half-done":
        cx.out.narrate(f"{result.run} is left half done: lumctl swap rollback {result.run}")
        raise typer.Exit(ExitCode.HALF_DONE)
    if result.on != Target.SIM and result.outcome == "rolled-back":
        raise typer.Exit(ExitCode.ROLLED_BACK)
    if not result.identical:
        raise typer.Exit(ExitCode.REFUSED)


def _require_rack(cx: Invocation, on: str, recorded: str) -> None:
    racks = cx.inventory.racks
    if on not in racks:
        near = nearest(on, [*racks, Target.SIM.value])
        raise UsageError(f"no rack {on!r} in the inventory" + (f"; did you mean {near!r}?" if near else ""))
    if on != recorded:
        raise UsageError(f"this runbook was recorded on rack {recorded}; it can be replayed there or on sim")


def _ask(step: Step) -> None:
    print(f"{step.id}. {step.title} - go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise RefusedError(f"stopped before step {step.id}")
