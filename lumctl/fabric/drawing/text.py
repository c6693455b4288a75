"""A mesh in characters: rows of cells, each a character and the key of a style."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from lumctl.devices.types import PucState
from lumctl.fabric.condition import Condition
from lumctl.fabric.drawing.circuits import Carried, Circuit, carried
from lumctl.fabric.drawing.grid import Cell, Grid, grid
from lumctl.fabric.geometry import Mesh
from lumctl.fabric.routing import Route

BEYOND = "+"
"""Stands for a circuit that has no single letter of its own, the 47th and all after it."""

_BAR = {"|": "│", "-": "─", "/": "╱", "\\": "╲"}  # noqa: RUF001 - meant
_CROSS, _CROSS_ASCII = "╳", "x"  # noqa: RUF001 - meant
_CLOSED, _CLOSED_ASCII = "▒", "#"
_STUCK = {PucState.BAR: "!", PucState.CROSS: "*"}


class Glyph(NamedTuple):
    """One character cell; :func:`~lumctl.fabric.drawing.colours.terminal_style` says what the style key means."""

    char: str
    style: str = ""


Row = tuple[Glyph, ...]
Chosen = Collection[int] | None
"""Numbers of the circuits that stand out from the others; ``None`` where all are drawn alike."""

_BLANK = Glyph(" ")


def text(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Sequence[Route],
    *,
    condition: Condition,
    names: Sequence[str] = (),
    ascii_only: bool = False,
    width: int = 120,
    chosen: Chosen = None,
) -> tuple[Row, ...]:
    """Draw a mesh with its circuits on at most ``width`` columns, all rows of one length.

    ``chosen`` circuits, by their numbers, stand out and the others are quiet; without it all are drawn alike.

    Raises:
        UsageError: the mesh has no positions, or does not fit.
        InconsistentFabricError: a route is no way through this mesh.
    """
    shown = carried(mesh, states, routes, condition, names)
    places = grid(mesh, width)
    return rows_of(drawn(shown, places, ascii_only=ascii_only, chosen=chosen), places)


def drawn(shown: Carried, places: Grid, *, ascii_only: bool, chosen: Chosen = None) -> dict[Cell, Glyph]:
    """Everything that stands somewhere, by its place."""
    return {
        **_pucs(shown, places, ascii_only=ascii_only, chosen=chosen),
        **_lanes(shown, places, ascii_only=ascii_only, chosen=chosen),
    }


def rows_of(cells: Mapping[Cell, Glyph], places: Grid) -> tuple[Row, ...]:
    """The rows of a drawing, blank where nothing stands."""
    return tuple(
        tuple(cells.get((line, column), _BLANK) for column in range(places.columns)) for line in range(places.lines)
    )


def legend(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Sequence[Route],
    *,
    condition: Condition,
    names: Sequence[str] = (),
    ascii_only: bool = False,
) -> tuple[Row, ...]:
    """Say what the letters and marks of :func:`text` stand for: a row of marks, a heading, a row for each circuit.

    Raises:
        InconsistentFabricError: a route is no way through this mesh.
    """
    shown = carried(mesh, states, routes, condition, names)
    rows = [marks_row(shown, ascii_only=ascii_only)]
    if not shown.circuits:
        return (*rows, _plain("no circuits", "quiet"))
    table = [("", "CIRCUIT", "PORTS", "PUCS", "LOSS dB"), *(_entry(circuit) for circuit in shown.circuits)]
    widths = [max(len(entry[at]) for entry in table) for at in range(len(table[0]))]
    for entry, circuit in zip(table, (None, *shown.circuits), strict=True):
        letter, name, ports, pucs, loss = entry
        style = "heading" if circuit is None else style_of(circuit)
        rest = f"  {name:{widths[1]}}  {ports:>{widths[2]}}  {pucs:>{widths[3]}}  {loss:>{widths[4]}}"
        rows.append(_plain(f"{letter:{widths[0]}}", style) + _plain(rest, "heading" if circuit is None else ""))
    return tuple(rows)


def style_of(circuit: Circuit, chosen: Chosen = None) -> str:
    """The key of a circuit's style."""
    if chosen is None:
        return f"circuit:{circuit.number}"
    return f"chosen:{circuit.number}" if circuit.number in chosen else "quiet"


def _pucs(shown: Carried, places: Grid, *, ascii_only: bool, chosen: Chosen) -> dict[Cell, Glyph]:
    marks: dict[Cell, Glyph] = {}
    for puc, (cells, slant) in enumerate(zip(places.pucs, places.slants, strict=True)):
        marks.update(dict.fromkeys(cells, _puc(shown, puc, slant, ascii_only=ascii_only, chosen=chosen)))
    return marks


def _puc(shown: Carried, puc: int, slant: str, *, ascii_only: bool, chosen: Chosen) -> Glyph:
    state = shown.state(puc)
    if puc in shown.condition.damaged:
        return Glyph(_CLOSED_ASCII if ascii_only else _CLOSED, "damaged")
    if puc in shown.condition.stuck:
        return Glyph(_STUCK[state], "stuck")
    through = [circuit for circuit in shown.circuits_through(puc) if chosen is None or circuit.number in chosen]
    style = "shared" if len(through) > 1 else style_of(through[0], chosen) if through else "quiet"
    if state is PucState.CROSS:
        return Glyph(_CROSS_ASCII if ascii_only else _CROSS, style)
    return Glyph(slant if ascii_only else _BAR[slant], style)


def _lanes(shown: Carried, places: Grid, *, ascii_only: bool, chosen: Chosen) -> dict[Cell, Glyph]:
    """The letters, and the numbers of the ports: a port that carries a circuit has its style."""
    marks: dict[Cell, Glyph] = {}
    for terminal, circuit in shown.lit.items():
        letter = circuit.letter if len(circuit.letter) == 1 else BEYOND
        marks[places.letters[terminal]] = Glyph(letter, style_of(circuit, chosen))
    for port, terminal in enumerate(shown.mesh.ports):
        lit = shown.lit.get(terminal)
        style = style_of(lit, chosen) if lit else "port"
        if port in shown.condition.blocked_ports:
            style = "blocked"
            marks[places.letters[terminal]] = Glyph(_CLOSED_ASCII if ascii_only else _CLOSED, style)
        for cell, digit in zip(places.numbers[port], str(port), strict=True):
            marks[cell] = Glyph(digit, style)
    return marks


def marks_row(shown: Carried, *, ascii_only: bool) -> Row:
    """What the marks of the PUCs and ports stand for."""
    slants = tuple(_BAR) if ascii_only else tuple(_BAR.values())
    row = _plain(" ".join(slants) + " bar   ") + _plain((_CROSS_ASCII if ascii_only else _CROSS) + " cross")
    condition = shown.condition
    stuck = set(condition.stuck.values())
    for state in PucState:
        if state in stuck:
            row += _plain("   ") + _plain(_STUCK[state], "stuck") + _plain(f" stuck in {state.word}")
    closed = [word for word, found in (("damaged", condition.damaged), ("blocked", condition.blocked_ports)) if found]
    if closed:
        mark = _CLOSED_ASCII if ascii_only else _CLOSED
        row += _plain("   ") + _plain(mark, "damaged") + _plain(f" {' or '.join(closed)}")
    if any(len(circuit.letter) > 1 for circuit in shown.circuits):
        row += _plain(f"   {BEYOND} a circuit of two letters")
    return row


def _entry(circuit: Circuit) -> tuple[str, ...]:
    a, b = circuit.ports
    name = "".join(c if c.isprintable() else "?" for c in circuit.name)
    return circuit.letter, name, f"{a}:{b}", str(len(circuit.legs)), f"{circuit.loss_db:.1f}"


def _plain(words: str, style: str = "") -> Row:
    return tuple(Glyph(char, style) for char in words)
