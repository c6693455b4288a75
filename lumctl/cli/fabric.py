"""``lumctl fabric``: show which circuits meshes carry or could carry, and program the jobs' circuits onto them."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli import fabric_matchings, fabric_route, fabric_trace
from lumctl.cli.changes import carry_out, tell_unfinished
from lumctl.cli.fabric_mesh import NamedMesh, of_inventory
from lumctl.cli.fabric_trace import changes_rack, mesh_of_plan, read_plan
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Output, OutputColumn, OutputFormat
from lumctl.cli.verbs import DryRunOption, StoppedOption, YesOption, noun_app, verb
from lumctl.context import Context
from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import FabricStates, LightPath, Route, trace
from lumctl.fabric.documents import read_planned
from lumctl.files import put
from lumctl.inventory.model import DeviceKind
from lumctl.inventory.problems import require_known
from lumctl.inventory.wiring import FREE, Circuit, circuits_of
from lumctl.swap import plan_fabric, require_cuts_agreed

if TYPE_CHECKING:
    from lumctl.fabric.drawing import Glyph

app = noun_app(NOUNS["fabric"].help)
_COLUMNS = (
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("DEVICE", "device", gives_way=3),
    OutputColumn("PORTS", "ports", gives_way=2),
    OutputColumn("FROM", "a"),
    OutputColumn("TO", "b"),
    OutputColumn("LOSS dB", "loss_db", right=True, gives_way=1),
    OutputColumn("RECORD", "record"),
    OutputColumn("FIBRES", "fibres", wide=True),
)
_WIDTH = 120
"""The width of a drawing that goes into a pipe, in characters."""


_SVG = "svg"


@verb(app, "show", formats=(_SVG,), pages=True)
def show(
    cx: Invocation,
    plan: Annotated[
        str | None,
        typer.Argument(metavar="PLAN", help="Draw what route or matchings -o json printed, instead of the rack."),
    ] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="ID", help="Only this mesh or switch.")] = None,
    mesh: Annotated[
        str | None,
        typer.Option("--mesh", metavar="SHAPE", help="Draw on this mesh instead of the one that the PLAN names."),
    ] = None,
    matching: Annotated[int, typer.Option("--matching", metavar="N", help="Which matching of the plan to draw.")] = 0,
    draw: Annotated[
        bool | None,
        typer.Option("--draw/--no-draw", help="Draw the meshes here; a single mesh on a terminal is always drawn."),
    ] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write the drawing as SVG.")] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Write the drawing as PNG. Needs lumctl[png].")
    ] = None,
) -> None:
    """Show every circuit that the jobs need, whether the recorded states of the meshes form it, and a drawing.

    With -o svg only the drawing of one mesh is printed, as SVG.

    This reads the store only; ``lumctl status`` reads which transmitter each receiver really hears.
    """
    picture = cx.out.own_format == _SVG
    if plan is None:
        subjects = [of_inventory(cx, each) for each in _meshes(cx, device)]
        if not picture:
            _circuits(cx, device)
    else:
        subjects = [_planned(plan, mesh, matching)]
    if picture or svg or png:
        _require_one(subjects)
    if picture:
        cx.out.text(_svg(subjects[0]).rstrip())
        return
    # In a pipe a drawing would disturb the table, and several meshes would push it off the screen.
    wanted = sys.stdout.isatty() and len(subjects) == 1 if draw is None else draw
    if wanted and not cx.out.structured and cx.out.format is not OutputFormat.NAME:
        for each in subjects:
            _print(cx.out, each)
    if svg or png:
        _write(cx, subjects[0], svg, png)


fabric_route.register(app)
fabric_matchings.register(app)
fabric_trace.register(app)


def _circuits(cx: Invocation, device: str | None) -> None:
    with Context(cx.inventory, cx.target) as context:
        held = {d.id: context.known_cells(d.id) for d in context.inventory.light_devices}
        states = FabricStates(cx.inventory, held)
        paths = {c: states.path_of(c) for c in circuits_of(context.inventory, context.assignment())}
    shown = {c: path for c, path in paths.items() if device is None or device in _devices(c, path)}
    rows: list[dict[str, Any]] = [
        {
            "id": c.id,
            "device": ", ".join(_devices(c, path)),
            "devices": list(_devices(c, path)),
            "ports": c.between,
            "fibres": list(path.fibres) if path else [],
            "a": c.a.transponder,
            "b": c.b.transponder,
            "direction": c.direction.value,
            "owner": c.owner,
            "loss_db": round(states.loss_db(path), 3) if path else None,
            "record": "programmed" if path else "not programmed" if all(map(held.get, c.devices)) else "not known",
        }
        for c, path in shown.items()
    ]
    if cx.out.structured:
        known = {d: {"known": bool(states), **_state(cx, d, states)} for d, states in held.items()}
        cx.out.document("fabric", {"target": str(cx.target), "circuits": rows, "devices": known})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row["id"] for row in rows])
    else:
        cx.out.table(_COLUMNS, [{**row, "fibres": ", ".join(row["fibres"])} for row in rows])


def _devices(circuit: Circuit, path: LightPath | None) -> tuple[str, ...]:
    """The devices that a circuit passes; if its path is unknown, the devices at its ends."""
    return path.devices if path else circuit.devices


def _state(cx: Invocation, device: str, cells: Mapping[int, str]) -> dict[str, Any]:
    """The state of a device as data: the PUCs in cross of a mesh, or the connected ports of a switch."""
    if cx.inventory.devices[device].kind is DeviceKind.SWITCH:
        return {"crosses": [], "joins": [[port, int(to)] for port, to in sorted(cells.items()) if to != FREE]}
    return {"crosses": sorted(puc for puc, state in cells.items() if state == PucState.CROSS)}


def _meshes(cx: Invocation, device: str | None) -> list[str]:
    """The meshes to draw. Switches are not drawn; their circuits are in the table."""
    kinds = {each.id: each.kind for each in cx.inventory.light_devices}
    if device is None:
        return [each for each, kind in kinds.items() if kind is DeviceKind.MESH]
    return [] if kinds.get(device) is DeviceKind.SWITCH else [device]


def _planned(plan: str, named: str | None, matching: int) -> NamedMesh:
    document = read_plan(plan)
    if changes_rack(document):
        raise UsageError(
            f"{plan} changes a rack, not one mesh alone",
            hint=f"follow its light: lumctl fabric trace {shlex.quote(plan)}",
        )
    mesh = mesh_of_plan(document, named)
    planned = read_planned(document, mesh)
    if not 0 <= matching < len(planned):
        raise UsageError(f"no matching {matching} in the plan", hint=f"it has 0 to {len(planned) - 1}")
    chosen = planned[matching]
    return NamedMesh(
        mesh, mesh.name, mesh.name, states=chosen.states, live={(a, b): f"{a}:{b}" for a, b in chosen.circuits}
    )


def _carried(about: NamedMesh) -> tuple[dict[int, PucState], list[Route], list[str]]:
    """The states of the PUCs, the circuits' actual routes, which may differ from the planned ones, and their ids."""
    states = {**about.states, **about.condition.stuck}
    ways = [trace(about.mesh, states, a) for a, _ in about.live]
    return states, [Route((way.port, way.exit), way.passes) for way in ways], list(about.live.values())


def _print(out: Output, about: NamedMesh) -> None:
    from lumctl.fabric.drawing import legend, text

    states, routes, names = _carried(about)
    plain = out.plain_glyphs
    width = shutil.get_terminal_size((_WIDTH, 0)).columns if sys.stdout.isatty() else _WIDTH
    out.text(f"{about.name}" if about.name == about.mesh.name else f"{about.name}: {about.mesh.name}")
    rows = text(about.mesh, states, routes, condition=about.condition, names=names, ascii_only=plain, width=width)
    _rows(rows)
    out.text()
    _rows(legend(about.mesh, states, routes, condition=about.condition, names=names, ascii_only=plain))


def _rows(rows: "tuple[tuple[Glyph, ...], ...]") -> None:
    from rich.console import Console
    from rich.text import Text

    from lumctl.fabric.drawing import terminal_style

    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    console = Console(highlight=False, no_color=not coloured)
    for row in rows:
        if coloured:
            styled = Text.assemble(*((glyph.char, terminal_style(glyph.style)) for glyph in row))
            console.print(styled, no_wrap=True, overflow="ignore", crop=False)
        else:
            print("".join(glyph.char for glyph in row).rstrip(), flush=True)


def _write(cx: Invocation, about: NamedMesh, svg: Path | None, png: Path | None) -> None:
    from lumctl.fabric import drawing

    states, routes, names = _carried(about)
    if svg:
        _save(cx, svg, _svg(about).encode())
    if png:
        image = drawing.png(about.mesh, states, routes, condition=about.condition, names=names, title=about.name)
        _save(cx, png, image)


def _svg(about: NamedMesh) -> str:
    from lumctl.fabric import drawing

    states, routes, names = _carried(about)
    return drawing.svg(about.mesh, states, routes, condition=about.condition, names=names, title=about.name)


def _require_one(subjects: list[NamedMesh]) -> None:
    if len(subjects) != 1:
        raise UsageError(f"{len(subjects)} meshes cannot be drawn in one picture", hint="choose one with --device")


def _save(cx: Invocation, path: Path, drawn: bytes) -> None:
    put(path, drawn)
    cx.out.narrate(f"written: {path}")


@verb(app, "apply")
def apply(
    cx: Invocation,
    rack: Annotated[
        str | None, typer.Option("--rack", metavar="RACK", help="Which rack, if the inventory has several.")
    ] = None,
    rewrite: Annotated[
        bool,
        typer.Option("--rewrite", help="Reroute everything and write every cell; meanwhile all light paths are dark."),
    ] = False,
    as_written: Annotated[
        bool, typer.Option("--as-written", help="Place every job as the inventory says, and forget earlier swaps.")
    ] = False,
    cut: Annotated[
        str, typer.Option("--cut", metavar="PORT[,...]", help="Also cut these light paths, which belong to no job.")
    ] = "",
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Program a rack as recorded: the circuits that its jobs need, and their transmitters.

    Use it on day one, and after a repair. It switches on transmitters of placed ranks that are off, and switches off
    those of replaced accelerators; if nothing else is wrong, no cell is written.

    The states of switches and meshes that can be read back are read first; undoing the run restores them. The plan
    lists each light path that it cuts, with the light on it. A light path that belongs to no job of the inventory is
    cut only if one of its ports is listed with ``--cut`` (PORT, or DEVICE/port/PORT); --yes alone does not suffice
    (exit code 5).

    If the store has no record, the light is read first. If it shows another placement of the jobs than the inventory,
    the command refuses (5), and ``lumctl store adopt`` records where they run.

    On a rack, a job without a hook must be stopped before its active circuits are removed or written again, and an
    operator must confirm that, as for swap apply. If no circuit is active yet, no question is asked.
    """
    racks = list(cx.inventory.racks)
    if rack is None and len(racks) > 1:
        raise UsageError("the inventory has several racks", hint=f"--rack {'|'.join(racks)}")
    chosen = rack or racks[0]
    require_known("rack", [chosen], racks)
    with Context(cx.inventory, cx.target) as context:
        written = {job.name: job.ranks for job in cx.inventory.jobs.values() if job.rack == chosen}
        named = [word.strip() for word in cut.split(",") if word.strip()]
        plan = plan_fabric(context, chosen, rewrite=rewrite, placement=written if as_written else None, cut=named)
        if not plan.steps:
            if cx.out.structured:
                cx.out.document("run", {"run": None, "outcome": "nothing to do", "target": str(cx.target)})
            cx.out.narrate(
                f"{chosen} carries every circuit that its jobs need, according to the record and to the light"
            )
            return
        again = f"lumctl fabric apply{_said(rack, rewrite=rewrite, as_written=as_written)} --target {cx.target}"
        tell_unfinished(cx, context, (chosen,))  # their dark circuits stay dark and are not proved here
        carry_out(
            cx,
            context,
            plan,
            yes=yes,
            dry_run=dry_run,
            stopped=job_is_stopped,
            may=lambda: require_cuts_agreed(context, plan, again),
        )


def _said(rack: str | None, *, rewrite: bool, as_written: bool) -> str:
    """The options of this command, spelled for a hint."""
    words = [f"--rack {rack}"] if rack else []
    words += ["--rewrite"] if rewrite else []
    words += ["--as-written"] if as_written else []
    return "".join(f" {word}" for word in words)
