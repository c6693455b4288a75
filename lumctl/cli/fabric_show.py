"""``lumctl fabric show``: the circuits that the jobs need, and the meshes drawn with what they carry."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.fabric_mesh import NamedMesh, of_inventory
from lumctl.cli.fabric_trace import mesh_of_plan, read_plan
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import Output, OutputColumn, OutputFormat
from lumctl.cli.verbs import verb
from lumctl.context import Context
from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import Route, circuit_losses, trace
from lumctl.fabric.documents import read_planned
from lumctl.files import put
from lumctl.inventory.model import DeviceKind
from lumctl.inventory.wiring import FREE, circuits_of

if TYPE_CHECKING:
    from lumctl.fabric.drawing import Glyph

_COLUMNS = (
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("DEVICE", "device"),
    OutputColumn("PORTS", "ports"),
    OutputColumn("FROM", "a"),
    OutputColumn("TO", "b"),
    OutputColumn("LOSS dB", "loss_db", right=True),
    OutputColumn("RECORD", "record"),
)
_WIDTH = 120
"""Columns of a drawing that goes into a pipe."""


def register(app: typer.Typer) -> None:
    """Add ``show`` to the commands of ``fabric``."""
    verb(app, "show")(command)


def command(
    cx: Invocation,
    plan: Annotated[
        str | None,
        typer.Argument(metavar="[PLAN]", help="Draw what route or matchings -o json printed in place of the rack."),
    ] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="ID", help="This mesh only.")] = None,
    mesh: Annotated[
        str | None, typer.Option("--mesh", metavar="SHAPE", help="The mesh of the PLAN, if not the one that it names.")
    ] = None,
    matching: Annotated[int, typer.Option("--matching", metavar="N", help="Which matching of a plan.")] = 0,
    draw: Annotated[
        bool | None,
        typer.Option("--draw/--no-draw", help="Draw the meshes here; a single one on a terminal is drawn anyway."),
    ] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write the drawing as SVG.")] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Write the drawing as PNG. Needs lumctl[png].")
    ] = None,
) -> None:
    """Show every circuit that the jobs need, whether the recorded states of the meshes make it, and a drawing.

    This reads the store only; ``lumctl status`` reads which transmitter each receiver really hears.
    """
    if plan is None:
        _circuits(cx, device)
        subjects = [of_inventory(cx, each) for each in _meshes(cx, device)]
    else:
        subjects = [_planned(plan, mesh, matching)]
    wanted = sys.stdout.isatty() and len(subjects) == 1 if draw is None else draw
    if wanted and not cx.out.structured and cx.out.format is not OutputFormat.NAME:
        for each in subjects:
            _print(cx.out, each)
    if svg or png:
        if len(subjects) != 1:
            raise UsageError(f"{len(subjects)} meshes to draw, and one file", hint="choose one with --device")
        _write(cx, subjects[0], svg, png)


def _circuits(cx: Invocation, device: str | None) -> None:
    with Context(cx.inventory, cx.target) as context:
        circuits = [c for c in circuits_of(context.inventory, context.assignment()) if device in {None, c.device}]
        held = {d.id: context.known_cells(d.id) for d in context.inventory.devices.values() if d.kind.carries_light}
    losses: dict[str, float] = {}
    for each, states in held.items():
        if states:
            losses |= circuit_losses(cx.inventory.devices[each], states, [c for c in circuits if c.device == each])
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
        known = {d: {"known": bool(states), **_state(cx, d, states)} for d, states in held.items()}
        cx.out.document("fabric", {"target": str(cx.target), "circuits": rows, "devices": known})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row["id"] for row in rows])
    else:
        cx.out.table(_COLUMNS, rows)


def _state(cx: Invocation, device: str, cells: Mapping[int, str]) -> dict[str, Any]:
    """What a device holds: a mesh's PUCs in cross, or a switch's joins."""
    if cx.inventory.devices[device].kind is DeviceKind.SWITCH:
        return {"crosses": [], "joins": [[port, int(to)] for port, to in sorted(cells.items()) if to != FREE]}
    return {"crosses": sorted(puc for puc, state in cells.items() if state == PucState.CROSS)}


def _meshes(cx: Invocation, device: str | None) -> list[str]:
    meshes = [each.id for each in cx.inventory.devices.values() if each.kind is DeviceKind.MESH]
    return meshes if device is None else [device]


def _planned(plan: str, named: str | None, matching: int) -> NamedMesh:
    document = read_plan(plan)
    mesh = mesh_of_plan(document, named)
    planned = read_planned(document, mesh)
    if not 0 <= matching < len(planned):
        raise UsageError(f"no matching {matching} in the plan", hint=f"it has 0 to {len(planned) - 1}")
    chosen = planned[matching]
    return NamedMesh(
        mesh, mesh.name, mesh.name, states=chosen.states, live={f"{a}:{b}": (a, b) for a, b in chosen.circuits}
    )


def _carried(about: NamedMesh) -> tuple[dict[int, PucState], list[Route], list[str]]:
    """What the mesh really carries: the ways that light takes, which need not be the ones that were meant."""
    states = {**about.states, **about.condition.stuck}
    ways = [trace(about.mesh, states, a) for a, _ in about.live.values()]
    return states, [Route((way.port, way.exit), way.passes) for way in ways], list(about.live)


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
        drawn = drawing.svg(about.mesh, states, routes, condition=about.condition, names=names, title=about.name)
        _save(cx, svg, drawn.encode())
    if png:
        image = drawing.png(about.mesh, states, routes, condition=about.condition, names=names, title=about.name)
        _save(cx, png, image)


def _save(cx: Invocation, path: Path, drawn: bytes) -> None:
    put(path, drawn)
    cx.out.narrate(f"written: {path}")
