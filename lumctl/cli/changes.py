"""What every command that changes light shares: show a plan, ask for a yes, apply it, say what came of it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from lumctl.change import Plan, RunResult, apply, to_document
from lumctl.change.plan import Do, PlannedCircuit
from lumctl.change.preconditions import require
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat
from lumctl.errors import UsageError
from lumctl.inventory.switching import FREE
from lumctl.runbook.files import save
from lumctl.site import Site

FEW_CELLS = 12


def show_plan(cx: Invocation, plan: Plan) -> None:
    """Print a plan: as data, as its id, or as a difference that a person can read."""
    if cx.out.structured:
        document = to_document(plan)
        document.pop("schema")
        cx.out.document("plan", document)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([plan.id])
    else:
        for line in plan_lines(plan):
            cx.out.text(line)


def plan_lines(plan: Plan) -> list[str]:
    """A plan as lines of text: what goes, what comes, which cells, which steps, and why this spare."""
    lines = [f"{plan.id}  {plan.title}", f"target {plan.target}, rack {plan.rack}"]
    if plan.candidates:
        lines += ["", "spares considered"]
        for candidate in plan.candidates:
            mark = "*" if candidate.chosen else " "
            lines.append(f"  {mark} {candidate.spare}: {'; '.join(candidate.reasons)}")
    if any(step.do is not Do.SET for step in plan.steps):
        lines += ["", "circuits"]
        lines += [_circuit_line("-", circuit) for circuit in plan.remove]
        lines += [_circuit_line("+", circuit) for circuit in plan.add]
        lines.append(f"    {len(plan.keep)} others on the same devices stay as they are")
        lines += ["", *_cell_lines(plan)]
    lines += ["", "steps"]
    lines += [f"  {step.id}. {step.title}{'' if step.required else ' (if it can be reached)'}" for step in plan.steps]
    lines += ["", f"expected time about {plan.expected_seconds:.1f} s"]
    lines += [f"warning: {warning}" for warning in plan.warnings]
    return lines


def _circuit_line(sign: str, circuit: PlannedCircuit) -> str:
    joined = "<->" if circuit.direction == "duplex" else "-->"
    ends = f" {joined} ".join(f"{end['lane']} (port {end['port']})" for end in circuit.ends)
    budget = ""
    if circuit.loss_db is not None:
        way = f"{len(circuit.pucs)} PUCs, " if circuit.pucs else ""
        budget = f", {way}{circuit.loss_db:.2f} dB, {circuit.expected_rx_dbm:.2f} dBm expected"
    return f"  {sign} {circuit.id}: {ends}{budget}"


def _cell_lines(plan: Plan) -> list[str]:
    lines = []
    for device in dict.fromkeys(change.device for change in plan.changes):
        cells = [change for change in plan.changes if change.device == device]
        what = "ingress ports" if cells[0].is_join else "cells"
        lines.append(f"{what} of {device}: {len(cells)} written")
        if len(cells) <= FEW_CELLS:
            lines.append("  " + ", ".join(f"{c.puc} {_mark(c.before)} to {_mark(c.after)}" for c in cells))
    return lines or ["no cell changes"]


def _mark(state: str | None) -> str:
    words = {None: "?", "=": "bar", "x": "cross", FREE: "free"}
    return words.get(state) or f"port {state}"


def carry_out(cx: Invocation, site: Site, plan: Plan, *, yes: bool, dry_run: bool) -> None:
    """Apply a plan after a person's yes (or only show it, with ``--dry-run``) and print what came of it."""
    if dry_run:
        require(site, plan)
        show_plan(cx, plan)
        cx.out.narrate("dry run: nothing was done")
        return
    if not (yes or cx.out.structured):
        show_plan(cx, plan)
    cx.confirm(f"Apply {plan.id} ({plan.title})?", yes=yes)
    result = apply(site, plan, progress=cx.out.narrate)
    say_result(cx, result, _kept_runbook(cx, site, result))


def _kept_runbook(cx: Invocation, site: Site, result: RunResult) -> Path | None:
    """The run is done and in the journal: a file that cannot be written must not make it look otherwise."""
    try:
        return save(site, result.run, result.plan.rack)
    except UsageError as error:
        cx.out.narrate(f"warning: {error.message}; the journal has it: lumctl runbook show {result.run}")
        return None


def say_result(cx: Invocation, result: RunResult, runbook: Path | None) -> None:
    """Print a finished run."""
    if cx.out.structured:
        cx.out.document("run", run_document(result, runbook))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([result.run])
    else:
        proved = any(step.do is Do.VERIFY for step in result.plan.steps)
        told = f", {len(result.verified)} receivers proved" if proved else ""
        cx.out.text(f"{result.run}: {result.outcome} in {result.seconds:.2f} s{told}")
        cx.out.text(f"runbook: {runbook or f'lumctl runbook show {result.run}'}")


def run_document(result: RunResult, runbook: Path | None) -> dict[str, Any]:
    """A finished run as data."""
    return {
        "run": result.run,
        "outcome": result.outcome,
        "target": result.plan.target,
        "plan": result.plan.id,
        "seconds": result.seconds,
        "phases": [asdict(phase) for phase in result.phases],
        "verified": [asdict(proof) for proof in result.verified],
        "runbook": str(runbook) if runbook else None,
    }
