"""``lumctl store``: show where a rack's store is, move it, and restore a lost record."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.components import one_rack
from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import DryRunOption, YesOption, noun_app, verb
from lumctl.errors import ExitCode, LumctlError, UsageError

if TYPE_CHECKING:
    from lumctl.inventory.model import Inventory

app = noun_app(NOUNS["store"].help)

_COLUMNS = (
    OutputColumn("RACK", "rack"),
    OutputColumn("STORE", "store"),
    OutputColumn("NAMED BY", "named_by", gives_way=1),
    OutputColumn("STATE", "state"),
    OutputColumn("ENTRIES", "entries", right=True, gives_way=3),
    OutputColumn("RUNS", "runs", right=True, gives_way=2),
    OutputColumn("LEASE", "lease", right=True),
    OutputColumn("PROBLEM", "problem"),
)


@verb(app, "status")
def status(cx: Invocation) -> int:
    """Show where the store of each rack is, what configured that place, whether it answers, and how much it contains.

    A store that was moved (``store copy --retire``) is shown with its new place. Exits 3 if a store cannot be opened,
    and 5 if one was moved: no rack can be changed through it.

    One process at a time writes to a store. A command that waits for another process longer than 5 s (8 s for
    PostgreSQL) is refused. It names that process, whether it is stopped, and the command that ends it: the database
    then undoes its unfinished write, and the revert guard or ``swap abort`` undoes its run.
    """
    rows = [_row(cx.inventory, rack, str(cx.target)) for rack in cx.inventory.racks]
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([row["store"] for row in rows])
    elif cx.out.structured:
        cx.out.document("store", {"target": str(cx.target), "stores": rows})
    else:
        cx.out.table(_COLUMNS, rows)
    states = {row["state"] for row in rows}
    if "failed" in states:
        return ExitCode.UNREACHABLE
    return ExitCode.REFUSED if "moved" in states else ExitCode.DONE


@verb(app, "copy")
def copy(
    cx: Invocation,
    to: Annotated[
        str,
        typer.Option("--to", metavar="PLACE", help="A folder, or a database such as postgresql://user@host/database."),
    ],
    rack: Annotated[
        str | None, typer.Argument(metavar="RACK", help="May be omitted if the inventory has only one rack.")
    ] = None,
    retire: Annotated[
        bool, typer.Option("--retire", help="Retire the old store permanently once the copy is proved.")
    ] = False,
) -> None:
    """Copy the content of a rack's store to another database, from SQLite to PostgreSQL or back.

    The copy is one transaction: all or nothing. Meanwhile no other process can write to the store. Every row is read
    back, and the copied journal must be unbroken and have the same end. Readings over time, which ``lumctl watch``
    stores for seven days, are not copied.

    Without ``--retire`` both stores can be used afterwards: a machine whose inventory still has the old one could
    change the rack at the same time as others. With it, the old store grants no more leases and reports its new place;
    its journal records the move, and can still be read and verified. That cannot be undone: to return, copy the new
    store to an empty place. An earlier copy without ``--retire`` is accepted if the old store was not used since and no
    process is changing the rack through the new one.

    The copy is refused (exit code 5) while the rack is being changed, while a run is open, if the journal was altered,
    if the old store was retired before, or if the new place already contains data of this rack. Other racks may share
    it.

    End ``lumctl watch`` and ``lumctl gateway`` of the rack first: they write to the old store until the inventory has
    the new one. Files in the store's folder (the gateway's log, exported runbooks) are not copied.
    """
    from lumctl.change.origin import origin
    from lumctl.change.plan import plan_digest
    from lumctl.daemon.gateway.fencing import HIGHEST_FILE, HighestLease
    from lumctl.inventory.store_urls import complaints, is_url
    from lumctl.store import files_of, place_of
    from lumctl.store.database import shown
    from lumctl.store.transfer import Retirement
    from lumctl.store.transfer import copy as copied

    if cx.target is not Target.RACK:
        raise UsageError("the store of a simulator is not copied", hint="to copy the store of the rack: --target rack")
    if is_url(to):
        for found, hint in complaints(to):
            raise UsageError(f"--to: {found}", hint=hint)
    name = one_rack(cx.inventory, rack)
    source = place_of(cx.inventory, name, "rack")
    by = None
    if retire:
        # The gateway may know a newer lease than a store that was restored from a copy.
        seen = HighestLease(files_of(cx.inventory, name, "rack") / HIGHEST_FILE, cx.out.narrate).number
        by = Retirement(origin(), seen)
    done = copied(source, to, name, digest=plan_digest, now=time.time(), retire=by)
    place = shown(to if is_url(to) else str(Path(to).expanduser().absolute()))
    document = {"rack": name, "store": place, "rows": done.rows, "entries": done.head.count, "head": done.head.hash}
    if cx.out.structured:
        cx.out.document("store-copy", {**document, "retired": retire})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([place])
    elif done.was_there:
        cx.out.text(
            f"{name}: {place} already had a copy; its journal is unbroken and continues from {done.head.hash[:12]}"
        )
    else:
        cx.out.text(
            f"{name}: {sum(done.rows.values())} rows copied to {place}; its journal has {done.head.count} entries, is "
            f"unbroken and ends with {done.head.hash[:12]}, like the original"
        )
    cx.out.narrate(_next(cx.inventory, name, place))
    cx.out.narrate(_of_the_old(name, shown(source), place, retired=retire))


@verb(app, "adopt")
def adopt(
    cx: Invocation,
    rack: Annotated[
        str | None, typer.Argument(metavar="RACK", help="May be omitted if the inventory has only one rack.")
    ] = None,
    place: Annotated[
        list[str] | None,
        typer.Option(
            "--place", metavar="JOB=ACC[,...]", help="The placement of a job that its light paths do not show."
        ),
    ] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Record where the jobs run, read from the light: for a rack whose record was lost or is wrong.

    Each receiver reports which transmitter it hears (LLDP, with a new mark). From this the command finds the placement
    that explains most of the light and differs least from the record. It shows the differences from the record, or from
    the inventory if there is no record. After confirmation the light is proved once more and the placement is recorded,
    as a run in the journal (swap list, swap rollback). No device is written and no job is disturbed.

    If the light does not determine a placement, the command reports what is missing and refuses (exit code 5). Then
    ``--place`` gives the accelerators of a job in the order of its ranks. The command cannot detect that an
    accelerator's lanes have a different order than in the inventory.

    The states of a device that cannot be read back stay uncertain: the next ``lumctl fabric apply`` programs the
    circuits of the adopted placement.
    """
    from lumctl.cli.changes import carry_out
    from lumctl.context import Context
    from lumctl.swap import plan_adopt

    name = one_rack(cx.inventory, rack)
    with Context(cx.inventory, cx.target) as context:
        plan = plan_adopt(context, name, given=_placements(place or []))
        if not plan.steps:
            if cx.out.structured:
                cx.out.document("run", {"run": None, "outcome": "nothing to do", "target": str(cx.target)})
            cx.out.narrate(f"the light of {name} agrees with the recorded placement of the jobs: nothing to adopt")
            return
        carry_out(cx, context, plan, yes=yes, dry_run=dry_run)


def _placements(words: list[str]) -> dict[str, tuple[str, ...]]:
    given: dict[str, tuple[str, ...]] = {}
    for word in words:
        job, equals, ranks = word.partition("=")
        if not (equals and job and ranks):
            raise UsageError(f"--place: {word!r} is not JOB=ACC[,ACC...]")
        given[job.strip()] = tuple(part.strip() for part in ranks.split(",") if part.strip())
    return given


def _next(inventory: "Inventory", rack: str, place: str) -> str:
    keyed = f"`store: {place}` under racks, {rack} in {inventory.path}; then start watch and gateway again"
    if _named_by(inventory, rack, "rack") != "$LUMCTL_STATE":
        return f"next: {keyed}"
    if "://" in place:
        return f"next: set $LUMCTL_STATE to {place}, because it overrides the inventory"
    return f"next: unset $LUMCTL_STATE, because it overrides the inventory, and write {keyed}"


def _of_the_old(rack: str, old: str, new: str, *, retired: bool) -> str:
    if retired:
        return f"{old} is retired: it grants no more leases of {rack}, and refers to {new}"
    return (
        f"WARNING: both {old} and {new} can be used now; a program that still uses the old one can change {rack} at "
        "the same time as others. Before any change, configure the new one on every machine, or retire the old one "
        "now: run this again with --retire"
    )


def _row(inventory: "Inventory", rack: str, target: str) -> dict[str, Any]:
    from lumctl.store import open_store, place_of
    from lumctl.store.database import shown

    place = place_of(inventory, rack, target)
    said: dict[str, Any] = {"rack": rack, "store": shown(place), "named_by": _named_by(inventory, rack, target)}
    empty = dict.fromkeys(("entries", "runs", "lease", "moved_to", "problem"))
    try:
        store = open_store(inventory, rack, target)
        try:
            about = {
                "entries": store.journal.head().count,
                "runs": len(store.runs.all()),
                "lease": store.leases.newest(rack),
            }
            moved_to = store.leases.moved_to(rack)
        finally:
            store.close()
    except LumctlError as error:
        return {**said, "state": "failed", **empty, "problem": error.message}
    if moved_to is not None:
        problem = f"it was moved to {moved_to}: use that one"
        return {**said, "state": "moved", **empty, **about, "moved_to": moved_to, "problem": problem}
    return {**said, "state": "ok", **empty, **about}


def _named_by(inventory: "Inventory", rack: str, target: str) -> str:
    named = os.environ.get("LUMCTL_STATE")
    if named:
        return "$LUMCTL_STATE"
    return "store:" if target == "rack" and inventory.racks[rack].store else "default"
