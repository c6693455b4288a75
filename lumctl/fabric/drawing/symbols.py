"""What a PUC, a circuit and a port look like on paper."""

from math import pi

from lumctl.devices.types import PucState
from lumctl.fabric.drawing.carried import Circuit
from lumctl.fabric.drawing.colours import dashes, ink_on, line_colour, outline, tint
from lumctl.fabric.drawing.lanes import ASIDE, GATE, Lanes
from lumctl.fabric.drawing.model import Curve, Dot, Label, Line, polygon, straight
from lumctl.fabric.drawing.paper import Point, along
from lumctl.fabric.tracing import TURN

EDGE = 60.0
"""The length of the shortest edge on the sheet."""
PAGE, INK, QUIET, GLASS = "#ffffff", "#1b232c", "#5c6873", "#c3ccd5"
THIN = 1.6
BADGE = 8.2
"""The radius of a circuit's badge."""

_THICK, _GAP = 4.2, 1.3
_LANE = "#98a4b0"
_BAR_GATE, _CROSS_GATE, _STUCK_GATE, _DAMAGED_GATE = "#f6f8fa", "#dbe2e9", "#ffe9a8", "#4b5560"
_ROUND_LANES, _ROUND_STUCK = 0.065, 0.105
"""How far the gate's frame runs outside its lanes, in edge lengths."""


def gate(lanes: Lanes, puc: int, state: PucState, *, stuck: bool = False, damaged: bool = False) -> tuple[Line, ...]:
    """A PUC: a frame with its two lanes in it, side by side in bar, over each other in cross.

    A stuck one has a heavy frame, a damaged one is dark and crossed out.
    """
    corners = _frame(lanes, puc, _ROUND_STUCK if stuck else _ROUND_LANES)
    if damaged:
        strokes = ((corners[0], corners[2]), (corners[1], corners[3]))
        crossed = (Line(a, (straight(a, b),), PAGE, THIN) for a, b in strokes)
        return (polygon(corners, fill=_DAMAGED_GATE, colour=INK, width=1.2), *crossed)
    fill = _STUCK_GATE if stuck else _CROSS_GATE if state is PucState.CROSS else _BAR_GATE
    frame = polygon(corners, fill=fill, colour=INK if stuck else GLASS, width=2.4 if stuck else 1.0)
    legs = ((terminal, terminal ^ TURN[state]) for terminal in (4 * puc, 4 * puc + 1))
    return (frame, *(Line(lanes.gate_end(leg[0]), (lanes.passing(leg),), _LANE, THIN) for leg in legs))


def circuit_line(start: Point, curves: tuple[Curve, ...], number: int) -> tuple[Line, ...]:
    """A circuit's line, apart from what lies under it by a gap; where it is dashed, pale between the dashes.

    A colour too light for that, yellow, has dark dashes.
    """
    colour, pattern, edge = line_colour(number), dashes(number), outline(line_colour(number))
    lines = [Line(start, curves, PAGE, _THICK + 2 * _GAP)]
    if edge:
        lines.append(Line(start, curves, edge, _THICK + 1.4))
    below, dashed = (colour, edge) if edge else (tint(colour), colour)
    lines.append(Line(start, curves, below if pattern else colour, _THICK))
    if pattern:
        lines.append(Line(start, curves, dashed, _THICK, tuple(length * EDGE for length in pattern)))
    return tuple(lines)


def badge(at: Point, circuit: Circuit) -> tuple[Dot | Label, ...]:
    """A circuit's letter on its colour."""
    colour = line_colour(circuit.number)
    size = 10.5 if len(circuit.letter) == 1 else 8.0
    return Dot(at, BADGE, colour, PAGE, 1.4), Label(at, circuit.letter, size, ink_on(colour), bold=True)


def free_port(at: Point) -> Dot:
    """A port without a circuit."""
    return Dot(at, 3.2, PAGE, _LANE, THIN)


def blocked_port(at: Point) -> tuple[Dot | Line, ...]:
    """A ring with a bar across."""
    radius = 6.0
    a, b = along(at, pi / 4, -radius), along(at, pi / 4, radius)
    return Dot(at, radius, PAGE, INK, 2.0), Line(a, (straight(a, b),), INK, 2.0)


def _frame(lanes: Lanes, puc: int, room: float) -> list[Point]:
    a, b = lanes.paper.ends[puc]
    angle = lanes.paper.corners[4 * puc].edge
    middle = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
    half = ASIDE + room
    ends = [along(middle, angle, -GATE), along(middle, angle, GATE)]
    sides = ((ends[0], -half), (ends[1], -half), (ends[1], half), (ends[0], half))
    return [lanes.at(along(end, angle + pi / 2, aside)) for end, aside in sides]
