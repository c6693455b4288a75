"""``lumctl slice``: jobs that lumctl places on free accelerators of a torus and joins by light."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lumctl.change import to_document
from lumctl.change.plan import SLICE, Plan
from lumctl.cli.changes import carry_out, find_plan, roll_back, show_plan
from lumctl.cli.forgotten_target import tell_if_forgotten
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat, dump_json
from lumctl.cli.verbs import DryRunOption, StoppedOption, YesOption, noun_app, verb
from lumctl.context import Context
from lumctl.errors import RefusedError, UsageError
from lumctl.files import put
from lumctl.inventory.folded_names import FoldError, expand_list, fold
from lumctl.printable import shape_text
from lumctl.slices.documents import report_document, slice_document, slices_document
from lumctl.slices.exact import ExactPlacing
from lumctl.slices.moves import Defragmentation, move_rows, moves_document, plan_moves_of
from lumctl.slices.planning import plan_slice
from lumctl.slices.release import plan_release
from lumctl.slices.request import SliceRequest, read_shapes
from lumctl.slices.slot_search import place_slots

app = noun_app(NOUNS["slice"].help)

ForceOption = Annotated[
    bool, typer.Option("--force", help="Release it even if its job runs: it is not paused, and loses its light.")
]
SLICES = (
    OutputColumn("SLICE", "job"),
    OutputColumn("RACK", "rack", wide=True),
    OutputColumn("SHAPE", "shape"),
    OutputColumn("RANKS", "rank_count", right=True),
    OutputColumn("REPLACED", "moved", right=True),
    OutputColumn("ACCELERATORS", "accelerators"),
)
RACKS = (
    OutputColumn("RACK", "rack"),
    OutputColumn("ACCELERATORS", "accelerators", right=True),
    OutputColumn("FREE", "free", right=True),
    OutputColumn("SPARES", "spares", right=True),
)
PORTS = (
    OutputColumn("DIMENSION", "dimension", right=True),
    OutputColumn("RANKS", "ranks", right=True),
    OutputColumn("PORTS", "ports_used", right=True),
    OutputColumn("WITH --redirect", "ports_redirected", right=True),
    OutputColumn("Gb/s", "gb_s", right=True),
)
REPORT = (
    OutputColumn("RACK", "rack"),
    OutputColumn("FREE", "free", right=True),
    OutputColumn("LARGEST", "largest_shape"),
    OutputColumn("ALIGNED", "aligned", right=True),
    OutputColumn("BOX", "box", right=True),
    OutputColumn("SCATTERED", "scattered", right=True),
    OutputColumn("PORTS", "ports", right=True),
    OutputColumn("FIBRES", "fibres", right=True),
)
MOVES = (
    OutputColumn("MOVE", "number", right=True),
    OutputColumn("PLAN", "plan"),
    OutputColumn("SLICE", "job"),
    OutputColumn("SHAPE", "shape"),
    OutputColumn("FROM", "from"),
    OutputColumn("TO", "to"),
    OutputColumn("FORM", "form"),
)
FIBRES = (
    OutputColumn("FIBRE", "fibre"),
    OutputColumn("CIRCUITS", "circuits", right=True),
    OutputColumn("CAPACITY", "capacity", right=True),
)


@verb(app, "plan")
def plan(
    cx: Invocation,
    shape: Annotated[str, typer.Argument(metavar="SHAPE", help="Such as 4x4x2; a number: any shape of so many.")],
    job: Annotated[str, typer.Option("--job", metavar="NAME", help="The name of the new job.")],
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Only accelerators of this model.")
    ] = None,
    memory_gib: Annotated[
        float, typer.Option("--memory-gib", metavar="N", min=0, help="Only accelerators with so much memory.")
    ] = 0.0,
    hosts: Annotated[
        str, typer.Option("--hosts", metavar="HOST[,HOST...]", help="Only accelerators of these hosts; folded.")
    ] = "",
    count: Annotated[
        int,
        typer.Option("--count", metavar="N", min=1, max=1000, help="Plan N slices at once: NAME-1, NAME-2 and so on."),
    ] = 1,
    redirect: Annotated[
        bool,
        typer.Option("--redirect", help="Ports of dimensions in which a rank has no neighbour serve the others."),
    ] = False,
    optimal: Annotated[
        bool,
        typer.Option("--optimal", help="Choose scattered servers by an exact search; needs the extra `optimal`."),
    ] = False,
    limit: Annotated[
        float, typer.Option("--limit", metavar="S", min=0, help="Seconds that --optimal may take.")
    ] = 60.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same plan.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the plan to a file as well.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not keep the plan.")] = False,
) -> None:
    """Plan a slice: choose free accelerators, route their light paths, state what is left. Touches no device.

    A contiguous box is taken if one is free, at any position and in any orientation, across wrap-around fibres too;
    otherwise servers anywhere whose fibres have room, so that the fullest fibre is as empty as possible. An accelerator
    is free if its role is active, no job uses it, and it and all its lanes are ok. Spares are never taken.

    The plan says why earlier choices failed, which circuits and fibres it adds, what the fullest fibre carries before
    and after, the worst loss, the ports and the bandwidth of each rank, and the largest slice that is possible
    afterwards. A request that cannot be met gets the reason, and what would make room.

    A rank has two ports for each dimension of the torus. With --redirect a slice with fewer dimensions, or one that is
    only one accelerator deep, uses all of them: links between neighbours get several circuits, as many as the fibres
    have room for, and a program uses them with as many connections.

    The plan is kept in the rack's store under its id.
    """
    names = tuple(f"{job}-{number}" for number in range(1, count + 1)) if count > 1 else (job,)
    asked = SliceRequest(read_shapes(shape), names, (), model, memory_gib, _hosts(hosts), redirect)
    with Context(cx.inventory, cx.target) as context:
        made = plan_slice(context, asked, seed=seed, place=ExactPlacing(limit) if optimal else place_slots)
        document = to_document(made)
        if not dry_run:
            context.store(made.rack).runs.save_plan(document)
        if out is not None:
            put(out, dump_json(document) + "\n", mode=0o600)
    show_plan(cx, made)
    if dry_run:
        cx.out.narrate("dry run: the plan was not stored")
    else:
        cx.out.narrate(f"apply it: lumctl slice apply {out or made.id} --target {made.target}")


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(expand_list(text)))
    except FoldError as error:
        raise UsageError(str(error), hint="examples: --hosts h01,h02 or --hosts 'h[01-08]'") from error


@verb(app, "apply")
def apply(
    cx: Invocation,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="The id of a plan, or its file.")],
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Apply a plan: light and prove the circuits of a slice, and record its job; everything is undone if a step fails.

    A plan of `lumctl slice defrag` moves a slice instead. Its job is paused first; without a hook it must be stopped.

    Afterwards the slice is a job like any other: ``lumctl job``, ``lumctl swap`` and ``lumctl status`` know it. How it
    is run and paused is written under ``slices:`` of the rack's torus, see lumctl-inventory(5). If this command dies,
    its revert guard undoes the run, as for ``lumctl swap apply``.
    """
    with Context(cx.inventory, cx.target) as context:
        carry_out(cx, context, _of_slices(find_plan(context, plan)), yes=yes, dry_run=dry_run, stopped=job_is_stopped)


def _of_slices(plan: Plan) -> Plan:
    if plan.kind != SLICE:
        raise RefusedError(f"{plan.id} is a plan of kind {plan.kind}", hint=f"lumctl swap apply {plan.id}")
    return plan


@verb(app, "release")
def release(
    cx: Invocation,
    name: Annotated[str, typer.Argument(metavar="JOB", help="The slice.")],
    yes: YesOption = False,
    force: ForceOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Release a slice: darken the circuits that only it uses, and free its accelerators and fibres.

    A job with a hook is paused first; a job without one must be stopped, as for ``lumctl swap apply``. With --force
    neither is required. A job that ``lumctl job run`` runs is stopped with ``lumctl job stop`` in any case. Circuits of
    other jobs are proved to be as before.
    """
    with Context(cx.inventory, cx.target) as context:
        made = plan_release(context, name, force=force)
        carry_out(cx, context, made, yes=yes, dry_run=dry_run, stopped=force or job_is_stopped)


@verb(app, "rollback")
def rollback(
    cx: Invocation,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run to undo.")],
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Undo a run that placed or released a slice: restore the cells, the transmitters and the record from before it."""
    with Context(cx.inventory, cx.target) as context:
        roll_back(cx, context, run, yes=yes, dry_run=dry_run, stopped=job_is_stopped)


@verb(app, "list", pages=True)
def list_(cx: Invocation) -> None:
    """List the slices, and how many accelerators of each torus are free. Reads no device."""
    with Context(cx.inventory, cx.target) as context:
        document = slices_document(context)
    if cx.out.structured:
        cx.out.document("slices", {"target": str(cx.target), **document})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each["job"] for each in document["slices"]])
    else:
        cx.out.table(SLICES, [_row(each) for each in document["slices"]])
        if not document["slices"]:
            cx.out.narrate(f"no slice on target {cx.target}")
            tell_if_forgotten(cx)
        cx.out.text()
        cx.out.table(RACKS, document["racks"])


@verb(app, "show", pages=True)
def show(cx: Invocation, name: Annotated[str, typer.Argument(metavar="JOB|PLAN", help="A slice or a plan.")]) -> None:
    """Show one slice, the ports that it uses and could use, and its fibres; or a plan that was not applied."""
    with Context(cx.inventory, cx.target) as context:
        if name.startswith("plan-"):
            show_plan(cx, _of_slices(find_plan(context, name)))
            return
        document = slice_document(context, name)
    if cx.out.structured:
        cx.out.document("slice", {"target": str(cx.target), **document})
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names(document["accelerators"])
        return
    cx.out.text(f"{document['job']}  {document['shape']}  rack: {document['rack']}  target: {cx.target}")
    cx.out.text(f"accelerators: {', '.join(fold(document['accelerators']))}")
    dark = f", {document['not_programmed']} of them not programmed" if document["not_programmed"] else ""
    cx.out.text(f"{document['circuits']} circuits{dark}, the worst loses {document['worst_loss_db']:.1f} dB")
    cx.out.text()
    used = f"{document['ports_used']} of {document['ports_available']} used"
    cx.out.table(PORTS, document["ports"], title=f"ports of each rank: {used}")
    cx.out.text()
    cx.out.table(FIBRES, document["fibres"], title="fibres")


@verb(app, "defrag", pages=True)
def defrag(
    cx: Invocation,
    rack: Annotated[str | None, typer.Option("--rack", metavar="RACK", help="Only this rack.")] = None,
    moves: Annotated[int, typer.Option("--moves", metavar="N", min=1, max=100, help="At most so many moves.")] = 4,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same plans.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not keep the plans.")] = False,
) -> None:
    """Propose moves of slices after which a larger box is free: a plan for each, in order. Touches no device.

    Each plan starts from the rack as the ones before it leave it, and `lumctl slice apply` refuses it until they have
    been applied. Moving a slice pauses its job as a swap does. Jobs of the inventory and spares are never moved.
    """
    with Context(cx.inventory, cx.target) as context:
        found = plan_moves_of(context, [rack] if rack else (), most=moves, seed=seed)
        for each in found if not dry_run else ():
            for plan in each.plans:
                context.store(each.rack).runs.save_plan(to_document(plan))
    rows = [{"rack": each.rack, **row} for each in found for row in move_rows(each)]
    if cx.out.structured:
        cx.out.document("slice-moves", {"target": str(cx.target), "racks": [moves_document(each) for each in found]})
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([row["plan"] for row in rows])
        return
    for each in found:
        cx.out.text(_promise(each, moves))
        if each.plans:
            cx.out.table(MOVES, list(move_rows(each)))
    if rows and not dry_run:
        cx.out.narrate(f"apply them in this order: lumctl slice apply {rows[0]['plan']} --target {cx.target}")


def _promise(found: Defragmentation, most: int) -> str:
    now, then = (shape_text(shape) if shape else "none" for shape in (found.before, found.after))
    if not found.plans:
        at_most = "1 move" if most == 1 else f"{most} moves"
        return f"{found.rack}: the largest free box is {now}; no larger one was found with at most {at_most}"
    return f"{found.rack}: the largest free box is {now}; after these moves {then}"


@verb(app, "report")
def report(cx: Invocation) -> None:
    """Show how fragmented each torus is, the largest possible slice, and the ports and fibres in use. Reads the rack.

    The index is the share of the free accelerators that the largest possible slice leaves: with aligned boxes as in a
    fixed torus, with boxes anywhere, and with scattered servers that light joins.
    """
    with Context(cx.inventory, cx.target) as context:
        document = report_document(context)
    if cx.out.structured:
        cx.out.document("slice-report", {"target": str(cx.target), **document})
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([each["rack"] for each in document["racks"]])
        return
    rows = [
        {
            **each,
            **each["fragmentation"],
            "ports": f"{each['ports_used']}/{each['ports']}",
            "fibres": f"{each['fibres_used']}/{each['fibres']}",
        }
        for each in document["racks"]
    ]
    cx.out.table(REPORT, rows)
    if len(rows) > 1:
        whole = document["overall"]
        indexes = ", ".join(f"{kind} {index:.2f}" for kind, index in whole["fragmentation"].items())
        cx.out.text(f"overall: {whole['free']} free; fragmentation {indexes}")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "accelerators": ", ".join(fold(row["accelerators"]))}
