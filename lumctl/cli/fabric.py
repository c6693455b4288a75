"""``lumctl fabric``: what the meshes carry, and programming the jobs' circuits onto them."""

from typing import Annotated, Any

import typer

from lumctl.cli.changes import carry_out
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Column, OutputFormat
from lumctl.cli.swap import DryRunOption, YesOption
from lumctl.cli.verbs import noun_app, verb
from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import circuit_losses
from lumctl.inventory.wiring import circuits_of
from lumctl.site import Site
from lumctl.swap import plan_fabric

app = noun_app(NOUNS["fabric"].help)

_COLUMNS = (
    Column("CIRCUIT", "id"),
    Column("DEVICE", "device"),
    Column("PORTS", "ports"),
    Column("FROM", "a"),
    Column("TO", "b"),
    Column("LOSS dB", "loss_db", right=True),
    Column("RECORD", "record"),
)


@verb(app, "show")
def show(cx: Invocation) -> None:
    """Show every circuit that the jobs need and whether the record of what the meshes hold makes it.

    This reads the store only; ``lumctl status`` asks the hosts whom they really hear.
    """
    with Site(cx.inventory, cx.target) as site:
        circuits = circuits_of(site.inventory, site.assignment())
        held = {device: site.known_states(device) for device in site.inventory.devices}
    losses: dict[str, float] = {}
    for device, states in held.items():
        if states:
            here = [c for c in circuits if c.device == device]
            losses |= circuit_losses(cx.inventory.devices[device], states, here)
    rows: list[dict[str, Any]] = [
        {
            "id": c.id,
            "device": c.device,
            "ports": f"{c.ports[0]}:{c.ports[1]}",
            "a": c.a.transponder,
            "b": c.b.transponder,
            "direction": c.direction.value,
            "owner": c.owner,
            "loss_db": losses.get(c.id),
            "record": "programmed" if c.id in losses else ("not programmed" if held[c.device] else "not known"),
        }
        for c in circuits
    ]
    if cx.out.structured:
        crosses = {d: sorted(p for p, s in states.items() if s is PucState.CROSS) for d, states in held.items()}
        known = {d: {"known": bool(states), "crosses": crosses[d]} for d, states in held.items()}
        cx.out.document("fabric", {"target": str(cx.target), "circuits": rows, "devices": known})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row["id"] for row in rows])
    else:
        cx.out.table(_COLUMNS, rows)


@verb(app, "apply")
def apply(
    cx: Invocation,
    rack: Annotated[
        str | None, typer.Option("--rack", metavar="RACK", help="Which rack, if there are several.")
    ] = None,
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Route everything afresh and write every cell; darkens all meanwhile.")
    ] = False,
    as_written: Annotated[
        bool, typer.Option("--as-written", help="Place every job where the inventory says, forgetting earlier swaps.")
    ] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Program the circuits that the jobs need and the meshes do not carry yet: on day one, or after a repair."""
    racks = list(cx.inventory.racks)
    if rack is None and len(racks) > 1:
        raise UsageError("the inventory has several racks", hint=f"--rack {'|'.join(racks)}")
    chosen = rack or racks[0]
    if chosen not in racks:
        raise UsageError(f"no rack {chosen!r} in the inventory", hint=f"one of: {', '.join(racks)}")
    with Site(cx.inventory, cx.target) as site:
        written = {job.name: job.ranks for job in cx.inventory.jobs.values() if job.rack == chosen}
        plan = plan_fabric(site, chosen, rewrite=rewrite, placement=written if as_written else None)
        if not plan.steps:
            if cx.out.structured:
                cx.out.document("run", {"run": None, "outcome": "nothing to do", "target": str(cx.target)})
            cx.out.narrate(f"{chosen} carries every circuit that its jobs need, by the record and by the light")
            return
        carry_out(cx, site, plan, yes=yes, dry_run=dry_run)
