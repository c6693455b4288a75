"""``lumctl runbook replay``: a runbook done again: on a simulator, as a drill, or on a rack."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lumctl.change.engine import Gate, at_once
from lumctl.change.plan import Plan, Step
from lumctl.cli.change_options import StoppedOption, YesOption
from lumctl.cli.changes import agree, head_after, show_plan
from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.runbook_export import with_head
from lumctl.cli.runbook_lint import SetOption
from lumctl.cli.verbs import verb
from lumctl.context import Context
from lumctl.errors import ExitCode, RefusedError, UsageError
from lumctl.inventory.problems import nearest
from lumctl.printable import counted, printable
from lumctl.runbook import actions, drill
from lumctl.runbook.document import Runbook
from lumctl.runbook.execution import Performance, perform, perform_on_stage
from lumctl.runbook.files import find_runbook, is_file
from lumctl.runbook.intents import IntentRunbook
from lumctl.runbook.parameters import given_values
from lumctl.runbook.replay import ReplayResult, plan_again, replay_on_rack, replay_on_simulator
from lumctl.runbook.stage import staged
from lumctl.runbook.yaml_text import AnyRunbook, parameter_names
from lumctl.store import Head, ways_to_finish
from lumctl.swap import commission


def register(app: typer.Typer) -> None:
    """Add the command to its noun."""
    verb(app, "replay")(command)


def command(
    cx: Invocation,
    runbook: Annotated[str, typer.Argument(metavar="RUNBOOK", help="A run's id, or the path of a runbook file.")],
    on: Annotated[
        str, typer.Option("--on", metavar="sim|RACK", help="A simulator of its own, or a rack by its name.")
    ] = "",
    as_drill: Annotated[
        bool, typer.Option("--drill", help="On a simulator that stands where the rack stands now: would it work today?")
    ] = False,
    set_: SetOption = None,
    step: Annotated[bool, typer.Option("--step", help="Ask before each step.")] = False,
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
) -> None:
    """Do a runbook's steps again and compare each outcome, and the end state, with the recorded ones.

    On ``sim`` a private simulator starts in the state before the run and is deleted afterwards; a run that was
    interrupted is replayed up to there. On a rack the steps are real: its placement and cells must be those before the
    run. With ``--drill`` the rack is only read: a simulator takes over its present state, the replaced accelerators
    fail there, and the steps are done on it.

    A runbook of intents (see ``runbook export --as-template``) records no outcomes: its steps are planned again, on the
    simulator or, after a yes to each, on the rack.

    Exits 5 if the replay differed, 6 if a step failed on the rack and everything was undone, 7 if it was left half
    done. With ``--step``, everything is also undone if no answer is given within ten minutes.
    """
    if as_drill == bool(on):
        raise UsageError(
            "say where: --on sim, --on RACK, or --drill", hint="add --on sim: nothing but a simulator is changed"
        )
    gate = _ask if step else at_once
    if step and not sys.stdin.isatty():
        raise UsageError("--step asks before each step and there is no terminal to ask on", hint="leave out --step")
    with Context(cx.inventory, cx.target) as context:
        found = _found(context, runbook, given_values(set_ or []), on)
        if isinstance(found, Runbook) and found.inventory_digest != cx.inventory.digest:
            cx.out.narrate(f"note: {found.id} was recorded with another text of the inventory")
        if as_drill:
            result = drill.drill(found, context, progress=cx.out.narrate, before_step=gate)
        elif isinstance(found, IntentRunbook):
            result = _intended(cx, context, found, on, gate, yes=yes, stopped=job_is_stopped)
        elif on == Target.SIM:
            result = replay_on_simulator(found, cx.inventory, progress=cx.out.narrate, before_step=gate)
        else:
            _require_rack(cx, on, found.rack)
            what, again = f"Replay {found.id} ({found.title}) on {on}", plan_again(context, found)
            said = agree(cx, context, again, what, yes=yes, stopped=job_is_stopped)
            result = replay_on_rack(found, context, progress=cx.out.narrate, before_step=gate, stopped_by=said)
            _keep(cx, context, result.run, found.rack)
        head = None if result.rehearsal else head_after(cx, context, found.rack)
    _say(cx, result, head)


def _found(context: Context, name: str, given: dict[str, str], on: str) -> AnyRunbook:
    """The runbook; its parameter ``rack`` is the rack of the replay unless given otherwise."""
    if (
        on in context.inventory.racks
        and "rack" not in given
        and is_file(name)
        and "rack" in parameter_names(Path(name))
    ):
        return find_runbook(context, name, {**given, "rack": on})
    return find_runbook(context, name, given)


def _intended(
    cx: Invocation, context: Context, runbook: IntentRunbook, on: str, gate: Gate, *, yes: bool, stopped: bool
) -> ReplayResult:
    """Plan and do each step: on a simulator that has just come up, or on the rack with a yes for each plan."""
    if on == Target.SIM:
        with staged(cx.inventory) as stage, stage.play() as simulated:
            for remark in stage.sim.remarks():
                cx.out.narrate(remark)
            commission(simulated, failed=lambda device, why: cx.out.narrate(f"{device} is not programmed: {why}"))
            return perform_on_stage(runbook, stage, simulated, Performance(cx.out.narrate, gate))
    _require_rack(cx, on, runbook.rack)

    def agreed(what: Plan | actions.Said) -> str | None:
        if isinstance(what, Plan):
            if not (yes or cx.out.structured):
                show_plan(cx, what)
            return agree(cx, context, what, f"Apply {what.id} ({what.title})", yes=yes, stopped=stopped)
        cx.confirm(f"{str(what['title']).capitalize()}?", yes=yes)
        return None

    how = Performance(cx.out.narrate, gate, agreed, kept=lambda run, rack: _keep(cx, context, run, rack))
    return perform(runbook, context, on, how)


def _keep(cx: Invocation, context: Context, run: str, rack: str) -> None:
    """What is done on a rack leaves a runbook of its own."""
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
        cx.out.text(f"{result.runbook} replayed on {result.on}: differs first at step {odd.step}, {odd.what}")
        cx.out.text(f"  recorded: {odd.recorded}")
        cx.out.text(f"  replayed: {odd.replayed}")
    if result.rehearsal:
        cx.out.narrate("this was a rehearsal on a simulator of its own: no run was recorded and no rack was changed")
    else:
        if result.outcome == "half-done":
            cx.out.narrate(f"{result.run} is left half done: {ways_to_finish(result.run, cx.target)}")
            raise typer.Exit(ExitCode.HALF_DONE)
        if result.outcome == "rolled-back":
            raise typer.Exit(ExitCode.ROLLED_BACK)
    if result.identical is False:
        raise typer.Exit(ExitCode.REFUSED)


def _done(result: ReplayResult) -> str:
    """What came of intents; a rehearsal's runs had ids, but nothing of that name is kept."""
    count = len(result.runs)
    if result.rehearsal:
        return f"{result.outcome} in {counted(count, 'runs')}"
    return result.outcome + (f" as {', '.join(result.runs)}" if count else "")


def _require_rack(cx: Invocation, on: str, recorded: str) -> None:
    racks = cx.inventory.racks
    if on not in racks:
        near = nearest(on, [*racks, Target.SIM.value])
        raise UsageError(f"no rack {on!r} in the inventory" + (f"; did you mean {near!r}?" if near else ""))
    if on != recorded:
        raise UsageError(
            f"this runbook is for rack {recorded}; it can be replayed there or on sim",
            hint="for another rack: lumctl runbook export RUN --as-template",
        )


def _ask(step: Step) -> None:
    print(printable(f"{step.id}. {step.title} - continue? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise RefusedError(f"stopped before step {step.id}")
