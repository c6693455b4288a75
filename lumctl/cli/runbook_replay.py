"""``lumctl runbook replay``: do a runbook again, on a private simulator or on a rack."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lumctl.change.engine import Gate, at_once
from lumctl.change.plan import Plan, Step
from lumctl.cli.changes import agree, head_after, show_plan
from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.runbook_export import with_head
from lumctl.cli.runbook_lint import SetOption
from lumctl.cli.verbs import StoppedOption, YesOption, verb
from lumctl.context import Context
from lumctl.errors import ExitCode, RefusedError, UsageError
from lumctl.printable import counted, printable
from lumctl.runbook import actions, drill
from lumctl.runbook.document import Runbook
from lumctl.runbook.execution import Performance, perform, perform_on_stage
from lumctl.runbook.files import all_runs, find_runbook, is_file, unknown_run
from lumctl.runbook.intents import IntentRunbook
from lumctl.runbook.parameters import given_values
from lumctl.runbook.replay import ReplayResult, plan_again, replay_on_rack, replay_on_simulator
from lumctl.runbook.stage import staged
from lumctl.runbook.yaml_text import AnyRunbook, parameter_names
from lumctl.store import Head, StoredRun, ways_to_finish
from lumctl.swap import commission


def register(app: typer.Typer) -> None:
    """Add the command to its noun."""
    verb(app, "replay")(command)


def command(
    cx: Invocation,
    runbook: Annotated[str, typer.Argument(metavar="RUNBOOK", help="The id of a run, or the path of a runbook file.")],
    as_drill: Annotated[
        bool,
        typer.Option(
            "--drill", help="Use a simulator in the rack's present state, to see whether it would work today."
        ),
    ] = False,
    running: Annotated[
        bool, typer.Option("--running", help="With --target sim: use the running simulator and its store.")
    ] = False,
    set_: SetOption = None,
    step: Annotated[bool, typer.Option("--step", help="Ask for confirmation before each step.")] = False,
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
) -> None:
    """Do a runbook's steps again and compare each outcome, and the end state, with the recorded ones.

    The target must be given, whatever $LUMCTL_TARGET is. With --target sim a private simulator starts in the state
    before the run and is deleted afterwards; a run that was interrupted is replayed up to there. With --target rack the
    steps are real: the rack must have the placement and the cells from before the run. With ``--drill`` the rack is
    only read: a simulator starts in its present state, the replaced accelerators fail there, and the steps are done on
    it.

    A runbook of intents (see ``runbook export --as-template``) records no outcomes: its steps are planned again, on the
    simulator or, after each is confirmed, on the rack.

    Exits 5 if the replay differed, 6 if a step failed on the rack and everything was undone, 7 if it was left half
    done. With ``--step``, everything is also undone if no answer is given within ten minutes.
    """
    private = cx.target_option == Target.SIM and not running
    if not as_drill and cx.target_option is None:
        raise UsageError(
            "the target of a replay must be given: --target sim, --target rack, or --drill",
            hint=f"to change nothing but a private simulator: lumctl runbook replay {runbook} --target sim",
        )
    if running and (as_drill or cx.target_option != Target.SIM):
        raise UsageError("--running goes with --target sim", hint="leave out --running")
    gate = _ask if step else at_once
    if step and not sys.stdin.isatty():
        raise UsageError("--step asks before each step, but stdin is not a terminal", hint="leave out --step")
    given = given_values(set_ or [])
    # No context is needed: the simulator brings its own, and the rack may not be reachable from here.
    if private and not as_drill:
        found = _of_either_target(cx, runbook, given)
        _note_other_inventory(cx, found)
        if isinstance(found, IntentRunbook):
            result = _intended_on_simulator(cx, found, gate)
        else:
            result = replay_on_simulator(found, cx.inventory, progress=cx.out.narrate, before_step=gate)
        _say(cx, result, None)
        return
    with Context(cx.inventory, cx.target) as context:
        found = _found(context, runbook, given)
        _note_other_inventory(cx, found)
        if as_drill:
            result = drill.drill(found, context, progress=cx.out.narrate, before_step=gate)
        elif isinstance(found, IntentRunbook):
            result = _intended(cx, context, found, gate, yes=yes, stopped=job_is_stopped)
        else:
            _require_rack(cx, found.rack)
            what, again = f"Replay {found.id} ({found.title}) on {found.rack}", plan_again(context, found)
            said = agree(cx, context, again, what, yes=yes, stopped=job_is_stopped)
            result = replay_on_rack(found, context, progress=cx.out.narrate, before_step=gate, stopped_by=said)
            _keep(cx, context, result.run, found.rack)
        head = None if result.rehearsal else head_after(cx, context, found.rack)
    _say(cx, result, head)


def _note_other_inventory(cx: Invocation, found: AnyRunbook) -> None:
    if isinstance(found, Runbook) and found.inventory_digest != cx.inventory.digest:
        cx.out.narrate(f"note: {found.id} was recorded with a different version of the inventory")


def _of_either_target(cx: Invocation, name: str, given: dict[str, str]) -> AnyRunbook:
    """The runbook to replay on a private simulator: a file, or a run of either target.

    A run is searched first on the target of ``$LUMCTL_TARGET`` (by default the rack), then on the other one.
    """
    first = Target.SIM if os.environ.get("LUMCTL_TARGET") == Target.SIM else Target.RACK
    second = Target.RACK if first is Target.SIM else Target.SIM
    known: list[StoredRun] = []
    for target in (first, second):
        with Context(cx.inventory, target) as context:
            runs = all_runs(context)
            if is_file(name) or any(name in {run.id, f"{run.rack}/{run.id}"} for run in runs):
                return _found(context, name, given)
            known += runs
    see = " and ".join(f"lumctl runbook list --target {target}" for target in (first, second))
    raise unknown_run(name, known, f"{first} or {second}", see=see)


def _found(context: Context, name: str, given: dict[str, str]) -> AnyRunbook:
    """The runbook; if the inventory has only one rack, that is the default of the parameter ``rack``."""
    racks = list(context.inventory.racks)
    if len(racks) == 1 and "rack" not in given and is_file(name) and "rack" in parameter_names(Path(name)):
        return find_runbook(context, name, {**given, "rack": racks[0]})
    return find_runbook(context, name, given)


def _intended_on_simulator(cx: Invocation, runbook: IntentRunbook, gate: Gate) -> ReplayResult:
    """Plan and do each step on a newly started simulator."""
    with staged(cx.inventory) as stage, stage.play() as simulated:
        for remark in stage.sim.remarks():
            cx.out.narrate(remark)
        commission(simulated, failed=lambda device, why: cx.out.narrate(f"{device} is not programmed: {why}"))
        return perform_on_stage(runbook, stage, simulated, Performance(cx.out.narrate, gate))


def _intended(
    cx: Invocation, context: Context, runbook: IntentRunbook, gate: Gate, *, yes: bool, stopped: bool
) -> ReplayResult:
    """Plan and do each step on the rack; the operator confirms each plan."""
    _require_rack(cx, runbook.rack)

    def agreed(what: Plan | actions.Said) -> str | None:
        if isinstance(what, Plan):
            if not (yes or cx.out.structured):
                show_plan(cx, what)
            return agree(cx, context, what, f"Apply {what.id} ({what.title})", yes=yes, stopped=stopped)
        cx.confirm(f"{str(what['title']).capitalize()}?", yes=yes)
        return None

    how = Performance(cx.out.narrate, gate, agreed, kept=lambda run, rack: _keep(cx, context, run, rack))
    return perform(runbook, context, runbook.rack, how)


def _keep(cx: Invocation, context: Context, run: str, rack: str) -> None:
    """Write a runbook for a run that the replay executed on a rack; warn if that fails."""
    trouble = actions.save_quietly(context, run, rack)
    if trouble:
        cx.out.narrate(f"warning: {trouble}")


def _say(cx: Invocation, result: ReplayResult, head: Head | None) -> None:
    if cx.out.structured:
        target = {} if result.rehearsal else {"target": str(cx.target)}
        cx.out.document("replay", with_head({**result.to_document(), **target}, head))
    elif result.identical is None:
        cx.out.text(f"{result.runbook} on {result.on}: {_done(result)}, {result.seconds:.2f} s")
    elif result.first_difference is None:
        cx.out.text(f"{result.runbook} replayed on {result.on}: identical, {result.seconds:.2f} s")
    else:
        odd = result.first_difference
        cx.out.text(f"{result.runbook} replayed on {result.on}: first difference at step {odd.step}, {odd.what}")
        cx.out.text(f"  recorded: {odd.recorded}")
        cx.out.text(f"  replayed: {odd.replayed}")
    if result.rehearsal:
        cx.out.narrate("this was a rehearsal on a private simulator: no run was recorded and no rack was changed")
    else:
        if result.outcome == "half-done":
            cx.out.narrate(f"{result.run} is left half done: {ways_to_finish(result.run, cx.target)}")
            raise typer.Exit(ExitCode.HALF_DONE)
        if result.outcome == "rolled-back":
            raise typer.Exit(ExitCode.ROLLED_BACK)
    # ``None`` for intents: they record no outcome to differ from.
    if result.identical is False:
        raise typer.Exit(ExitCode.REFUSED)


def _done(result: ReplayResult) -> str:
    """The outcome of intents with the ids of their runs; for a rehearsal their number, as its runs are not stored."""
    count = len(result.runs)
    if result.rehearsal:
        return f"{result.outcome} in {counted(count, 'runs')}"
    return result.outcome + (f" as {', '.join(result.runs)}" if count else "")


def _require_rack(cx: Invocation, rack: str) -> None:
    if rack not in cx.inventory.racks:
        raise UsageError(
            f"this runbook is for rack {rack}, which is not in the inventory",
            hint=(
                f"the inventory has {', '.join(cx.inventory.racks)}; for another rack: lumctl runbook export RUN "
                "--as-template --out FILE"
            ),
        )


def _ask(step: Step) -> None:
    print(printable(f"{step.id}. {step.title} - continue? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise RefusedError(f"stopped before step {step.id}")
