"""The drawing of a mesh, and a table row for each circuit with its letter; pure."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.text import Text

from lumctl.errors import UsageError
from lumctl.fabric import Mesh, Route, condition_of, mesh_of
from lumctl.fabric.drawing import Row as Glyphs
from lumctl.fabric.drawing import carried, marks_row, text
from lumctl.fabric.drawing.text import grid
from lumctl.health.states import State
from lumctl.inventory.model import Device, DeviceKind
from lumctl.inventory.wiring import FREE
from lumctl.printable import counted
from lumctl.tui.look.circuit_styles import style_name
from lumctl.tui.look.marks import QUIET_STYLE, STATE_STYLES, Marks, power
from lumctl.tui.panes.circuits import receivers
from lumctl.tui.panes.rows import AGE_OF_READING, STATE, Cell, Column, Pane, Row, state_cell, worst_first
from lumctl.tui.views.meshes import Led, MeshView
from lumctl.tui.views.ports import Written, with_powers

T = TypeVar("T")

_ROOM_FOR_POWERS = (0, 7, 14)
"""Columns to keep free for powers outside the mesh: none, at one side, or at both sides."""

_WIDER = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)
"""Factors of the width that are tried in order: a drawing that does not fit the screen is wider and scrolls."""

LED = Pane(
    "led",
    "Circuits",
    "circuits",
    "The circuits of a mesh or a switch.",
    (
        Column("letter", "", 2),
        STATE,
        Column("id", "CIRCUIT", 8),
        Column("ports", "PORTS", 5),
        Column("power", "RX dBm", 7),
        Column("way", "WAY", 7),
        AGE_OF_READING,
    ),
    lambda _seen, _marks: [],
)


@dataclass(frozen=True, slots=True)
class Chip:
    """A drawing: its lines, all of one length, and the legend of its marks.

    ``begins`` is the line and column where the chosen circuit first appears. ``ports`` have their power in the drawing.
    """

    lines: tuple[Text, ...]
    marks: Text
    begins: tuple[int, int] | None = None
    ports: frozenset[int] = frozenset()

    @property
    def columns(self) -> int:
        """The length of the lines."""
        return max((len(line) for line in self.lines), default=0)


def chip(
    device: Device,
    view: MeshView,
    leds: Sequence[Led],
    *,
    width: int,
    marks: Marks,
    chosen: str | None = None,
    height: int = 0,
) -> Chip:
    """Draw a mesh in ``width`` columns, or in more if it does not fit; the ``chosen`` circuit is highlighted.

    If there is room within ``width`` and ``height`` lines, the circuits' ports have their power next to them.

    Raises:
        UsageError: the mesh cannot be drawn in characters.
    """
    mesh, condition = mesh_of(device), condition_of(device)
    routes, names = _routes(leds)
    numbers = None if chosen is None else [number for number, name in enumerate(names) if name == chosen]

    def rows(columns: int) -> Sequence[Glyphs]:
        return text(
            mesh,
            view.states,
            routes,
            condition=condition,
            names=names,
            ascii_only=marks.ascii_only,
            width=columns,
            chosen=numbers,
        )

    shown = carried(mesh, view.states, routes, condition, names)
    meanings = styled(marks_row(shown, ascii_only=marks.ascii_only))
    powers = {port: view.powers[port] for led in leds for port in led.ports if port in view.powers}
    written = _with_powers(rows, mesh, powers, width, height) if powers else None
    found = written.rows if written else fitting(rows, width)
    return Chip(tuple(map(styled, found)), meanings, _first_chosen(found), written.ports if written else frozenset())


def _with_powers(
    rows: Callable[[int], Sequence[Glyphs]], mesh: Mesh, powers: Mapping[int, float], width: int, height: int
) -> Written | None:
    """The largest drawing with powers at the ports that fits; ``None`` if none fits."""
    for less in _ROOM_FOR_POWERS:
        try:
            found = with_powers(rows(width - less), mesh, grid(mesh, width - less), powers)
        except UsageError:
            return None  # too narrow for the mesh, and the next one is narrower still
        if found.columns <= width and len(found.rows) <= height:
            return found
    return None


def _first_chosen(rows: Sequence[Glyphs]) -> tuple[int, int] | None:
    places = (
        (line, column) for line, row in enumerate(rows) for column, glyph in enumerate(row) if "chosen" in glyph.style
    )
    return next(places, None)


def fitting(drawn: Callable[[int], T], width: int) -> T:
    """A drawing in ``width`` columns, or in the least greater width that works.

    Raises:
        UsageError: it cannot be drawn in characters.
    """
    trouble: UsageError | None = None
    for times in _WIDER:
        try:
            return drawn(int(width * times))
        except UsageError as error:
            trouble = error
    raise trouble or UsageError("it cannot be drawn")


def styled(row: Glyphs) -> Text:
    """A row of a drawing as Rich text."""
    return Text.assemble(*((glyph.char, style_name(glyph.style)) for glyph in row), no_wrap=True, end="")


def _routes(leds: Sequence[Led]) -> tuple[list[Route], list[str]]:
    """The routes to draw, and the ids of their circuits."""
    drawn = [(led.route, led.circuit.id) for led in leds if led.route is not None]
    return [route for route, _ in drawn], [name for _, name in drawn]


def letters(device: Device, leds: Sequence[Led]) -> dict[str, tuple[str, str]]:
    """The letter and its style for each drawn circuit, by id."""
    if device.geometry is None:
        return {}
    routes, names = _routes(leds)
    # The routes alone decide the letters, so the states may be missing.
    shown = carried(mesh_of(device), {}, routes, condition_of(device), names)
    return {each.name: (each.letter, style_name(f"circuit:{each.number}")) for each in shown.circuits}


def led_rows(
    device: Device, view: MeshView | None, leds: Sequence[Led], marks: Marks, drawn: Collection[int] = ()
) -> list[Row]:
    """A row for each circuit, worst first; below them, connections of a switch that no job needs.

    ``drawn`` are ports whose power is in the drawing; it is not repeated.
    """
    known = letters(device, leds)
    rows = worst_first(_row(led, known.get(led.circuit.id, ("", "")), view, marks, drawn) for led in leds)
    if view is not None and device.kind is DeviceKind.SWITCH:
        rows += _other_joins(view, leds)
    return rows


def _row(led: Led, letter: tuple[str, str], view: MeshView | None, marks: Marks, drawn: Collection[int]) -> Row:
    circuit, health = led.circuit, led.health
    heard = " / ".join(power(end.rx_power_dbm) for end in receivers(health)) if health else "-"
    cells = (
        Cell(*letter),
        state_cell(led.state, marks),
        Cell(circuit.id),
        Cell(led.between),
        Cell(heard),
        _way(led, view, drawn),
    )
    return Row(circuit.id, circuit.id, led.state, cells, health.read_at if health else None)


def _way(led: Led, view: MeshView | None, drawn: Collection[int]) -> Cell:
    """Whether the device carries the circuit, and the power at its ports if the device measures that."""
    if led.leads_to is None:
        joined_with_none = view is not None and view.cells
        return Cell("not connected", STATE_STYLES[State.FAILED]) if joined_with_none else Cell("not known")
    if not led.made:
        return Cell(f"to {led.leads_to}, not {led.ports[1] if len(led.ports) > 1 else '?'}", STATE_STYLES[State.FAILED])
    made = counted(len(led.route.pucs), "PUCs") if led.route else "connected"
    told = view is not None and view.powers and not set(led.ports) <= set(drawn)
    powers = [view.powers.get(port) for port in led.ports] if view and told else []
    return Cell(f"{made}, at the ports {' / '.join(map(power, powers))}" if powers else made)


def _other_joins(view: MeshView, leds: Sequence[Led]) -> Iterator[Row]:
    # In either order: a duplex circuit joins its ports both ways.
    needed = {frozenset(led.ports) for led in leds}
    for ingress, egress in sorted(view.cells.items()):
        if egress == FREE or frozenset((ingress, int(egress))) in needed:
            continue
        words = ("", "", "no job needs it", f"{ingress}:{egress}", "-", "connected")
        yield Row(f"connection {ingress}", "", State.OK, tuple(Cell(word, QUIET_STYLE) for word in words), None)
