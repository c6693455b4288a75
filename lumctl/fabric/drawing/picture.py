"""Draws a mesh with its circuits as a picture, with a legend of the letters and marks below it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, cos, hypot, pi, tan

from lumctl.devices.types import PucState
from lumctl.fabric.drawing.circuits import Carried, DrawnCircuit, Leg
from lumctl.fabric.drawing.colours import dashes, ink_on, line_colour, outline, tint
from lumctl.fabric.drawing.sheet import (
    Corner,
    Curve,
    Dot,
    Group,
    Item,
    Label,
    Paper,
    Picture,
    PictureLine,
    Point,
    along,
    paper,
    polygon,
    straight,
    text_width,
)
from lumctl.fabric.geometry import FREE, TURN, Mesh
from lumctl.printable import counted

# In lengths of the shortest edge:
ASIDE = 0.105
"""The distance of a waveguide from its edge."""
GATE = 0.23
"""Half the length of a PUC's gate, in which light keeps or changes its side."""
REACH = 0.6
"""The distance of a port's end from its vertex."""
_APART = 0.17
"""Half the distance between the two ports of one vertex."""


@dataclass(frozen=True, slots=True)
class Tracks:
    """A mesh's waveguides on a sheet. An edge has the length ``scale``; the paper's origin is at ``origin``."""

    mesh: Mesh
    paper: Paper
    scale: float
    origin: Point

    def at(self, point: Point) -> Point:
        """A point of the paper on the sheet."""
        return self.origin[0] + point[0] * self.scale, self.origin[1] + point[1] * self.scale

    def gate_end(self, terminal: int) -> Point:
        """The end of a PUC's gate at a terminal."""
        return self.at(self._gate_end(terminal))

    def port(self, port: int) -> Point:
        """The end of a port."""
        return self.at(port_at(self.paper.corners[self.mesh.ports[port]]))

    def passing(self, leg: Leg) -> Curve:
        """The curve through a gate: straight on in bar, over to the other side in cross."""
        start, end = self._gate_end(leg[0]), self._gate_end(leg[1])
        if leg[0] ^ leg[1] == 2:  # noqa: PLR2004 - bar, by the numbering of terminals
            return self._curve(straight(start, end))
        inward, outward = self.paper.corners[leg[0]].edge, self.paper.corners[leg[1]].edge
        return self._curve((along(start, inward, GATE), along(end, outward, GATE), end))

    def turning(self, terminal: int) -> Curve:
        """The curve from the gate's end at a terminal round the corner to the next gate."""
        peer = self.mesh.peers[terminal]
        start, end = self._gate_end(terminal), self._gate_end(peer)
        return self._curve((self._pull(terminal, start, end), self._pull(peer, end, start), end))

    def leaving(self, port: int) -> Curve:
        """The curve from the gate's end at a port's terminal out of the mesh."""
        terminal = self.mesh.ports[port]
        corner = self.paper.corners[terminal]
        start, end = self._gate_end(terminal), port_at(corner)
        reach = hypot(end[0] - start[0], end[1] - start[1]) / 2.5
        return self._curve((along(start, corner.edge + pi, reach), along(end, corner.middle + pi, reach), end))

    def way(self, legs: Sequence[Leg]) -> tuple[Point, tuple[Curve, ...]]:
        """The line of a circuit from port to port: its start, and its curves through gates and round corners."""
        first, last = self.mesh.port_at[legs[0][0]], self.mesh.port_at[legs[-1][1]]
        curves = [_back(self.leaving(first), self.gate_end(legs[0][0]))]
        for leg in legs:
            curves.append(self.passing(leg))
            if self.mesh.peers[leg[1]] != FREE:
                curves.append(self.turning(leg[1]))
        return self.port(first), (*curves, self.leaving(last))

    def idle(self, colour: str, width: float) -> list[PictureLine]:
        """All waveguides between the gates, each once."""
        lines: list[PictureLine] = []
        for terminal, peer in enumerate(self.mesh.peers):
            if peer > terminal:
                lines.append(PictureLine(self.gate_end(terminal), (self.turning(terminal),), colour, width))
            elif peer == FREE:
                out = self.leaving(self.mesh.port_at[terminal])
                lines.append(PictureLine(self.gate_end(terminal), (out,), colour, width))
        return lines

    def _gate_end(self, terminal: int) -> Point:
        corner = self.paper.corners[terminal]
        a, b = self.paper.ends[terminal >> 2]
        middle = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
        aside = pi / 2 if corner.width > 0 else -pi / 2
        return along(along(middle, corner.edge, -GATE), corner.edge + aside, ASIDE)

    def _pull(self, terminal: int, start: Point, end: Point) -> Point:
        """The control point of a turn, in the direction of the point where the two tracks would meet."""
        corner = self.paper.corners[terminal]
        distance = hypot(start[0] - corner.vertex[0], start[1] - corner.vertex[1])
        half = abs(corner.width) / 2
        meeting = distance - ASIDE / tan(half) if half < pi / 2 else distance
        most = hypot(end[0] - start[0], end[1] - start[1])
        return along(start, corner.edge + pi, 0.72 * min(max(meeting, 0.0), most))

    def _curve(self, curve: Curve) -> Curve:
        return self.at(curve[0]), self.at(curve[1]), self.at(curve[2])


def port_at(corner: Corner) -> Point:
    """The end of a port on paper: next to the middle of the room at its vertex, on the side of its own edge."""
    sideways = -pi / 2 if corner.width > 0 else pi / 2
    return along(along(corner.vertex, corner.middle, REACH), corner.middle + sideways, _APART)


def port_number_at(corner: Corner) -> Point:
    """The position of a port's number: outside the port, and a little further from the neighbouring port."""
    away = 0.27 + 0.07 * abs(cos(corner.middle))  # numbers are wider than they are high
    sideways = -pi / 2 if corner.width > 0 else pi / 2
    return along(along(port_at(corner), corner.middle, away), corner.middle + sideways, 0.03)


def _back(curve: Curve, start: Point) -> Curve:
    """The same curve, from its end to its start."""
    return curve[1], curve[0], start


EDGE = 60.0
"""The length of the shortest edge on the sheet."""
_MARGIN = 24.0
_HEADING, _COUNTS, _NUMBER = 17.0, 12.0, 11.0
_HEAD = 40.0
"""The height of the heading."""
_RIM = (REACH + 0.45) * EDGE
"""The room for ports round the mesh."""
_SIZE, _SMALL = 12.0, 11.0
_STEP = 26.0
"""The distance between lines of the key."""
_ENTRY = 36.0
"""The distance between circuits in the key: each has a name and a line of numbers."""
_SWATCH = 50.0
_MARK = 32.0
_SPACE = 28.0
_ONE_PUC = Mesh("one PUC", ((0, 1),), (FREE,) * 4, (0, 1, 2, 3), ((0.0, 0.0), (1.0, 0.0)))
"""The mesh from which the gates of the key are drawn."""
PAGE, INK, QUIET, GLASS = "#ffffff", "#1b232c", "#5c6873", "#c3ccd5"
THIN = 1.6
BADGE = 8.2
"""The radius of a circuit's badge."""
_THICK, _GAP = 4.2, 1.3
_LANE = "#98a4b0"
_BAR_GATE, _CROSS_GATE, _STUCK_GATE, _DAMAGED_GATE = "#f6f8fa", "#dbe2e9", "#ffe9a8", "#4b5560"
_ROUND_LANES, _ROUND_STUCK = 0.065, 0.105
"""The distance of the gate's frame from its tracks, in edge lengths."""


def picture(shown: Carried, title: str) -> Picture:
    """Draw a mesh.

    Raises:
        UsageError: the mesh has no positions.
    """
    mesh, on_paper = shown.mesh, paper(shown.mesh)
    left, top, right, bottom = _extent(on_paper)
    origin = (_MARGIN + _RIM - left * EDGE, _MARGIN + _HEAD + _RIM - top * EDGE)
    tracks = Tracks(mesh, on_paper, EDGE, origin)
    room = (right - left) * EDGE + 2 * _RIM
    below = _MARGIN + _HEAD + (bottom - top) * EDGE + 2 * _RIM
    keys, (key_right, key_bottom) = key(shown, (_MARGIN, below), room)
    count = len(shown.circuits)
    counts = f"{mesh.puc_count} PUCs, {mesh.port_count} ports, {counted(count, 'circuits')}"
    heading = (
        Label((_MARGIN, _MARGIN + 8), title, _HEADING, INK, centred=False, bold=True),
        Label((_MARGIN, _MARGIN + 30), counts, _COUNTS, QUIET, centred=False),
    )
    widest = max(_MARGIN + text_width(label.text, label.size) for label in heading)
    return Picture(
        width=max(_MARGIN + room, key_right, widest) + _MARGIN,
        height=key_bottom + _MARGIN,
        title=f"{title}: {counts}",
        description="; ".join(f"{c.letter}: {c.name}, ports {c.ports[0]} and {c.ports[1]}" for c in shown.circuits),
        groups=(
            Group("heading", heading),
            Group("waveguides", tuple(tracks.idle(GLASS, THIN))),
            *(_puc(shown, tracks, puc) for puc in range(mesh.puc_count)),
            *(_circuit(tracks, circuit) for circuit in shown.circuits),
            *(_port(shown, tracks, port) for port in range(mesh.port_count)),
            *keys,
        ),
    )


def _extent(on_paper: Paper) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of all vertices."""
    points = [point for pair in on_paper.ends for point in pair]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def _puc(shown: Carried, tracks: Tracks, puc: int) -> Group:
    condition, state = shown.condition, shown.state(puc)
    stuck, damaged = puc in condition.stuck, puc in condition.damaged
    words = [f"PUC {puc}", state.word, *(["stuck"] if stuck else []), *(["damaged"] if damaged else [])]
    words += [f"carries {circuit.letter}" for circuit in shown.circuits_through(puc)]
    return Group("puc", gate(tracks, puc, state, stuck=stuck, damaged=damaged), ", ".join(words))


def _circuit(tracks: Tracks, circuit: DrawnCircuit) -> Group:
    a, b = circuit.ports
    start, curves = tracks.way(circuit.legs)
    title = f"{circuit.letter}: {circuit.name}, ports {a} and {b}, {len(circuit.legs)} PUCs, {circuit.loss_db:.1f} dB"
    return Group("circuit", circuit_line(start, curves, circuit.number), title)


def _port(shown: Carried, tracks: Tracks, port: int) -> Group:
    at, terminal = tracks.port(port), shown.mesh.ports[port]
    circuit = shown.lit.get(terminal)
    number = tracks.at(port_number_at(tracks.paper.corners[terminal]))
    label = Label(number, str(port), _NUMBER, INK if circuit else QUIET, bold=circuit is not None)
    items: tuple[Item, ...] = (free_port(at),)
    title = f"port {port}"
    if circuit:
        items, title = badge(at, circuit), f"{title}, {circuit.letter}"
    if port in shown.condition.blocked_ports:
        items, title = blocked_port(at), f"{title}, blocked"
    return Group("port", (*items, label), title)


def key(shown: Carried, corner: Point, room: float) -> tuple[tuple[Group, ...], Point]:
    """The parts of the key, and its lower right corner. ``corner`` is the upper left one, ``room`` the usual width."""
    left, top = corner
    marks = tuple(_marks(shown, (left, top + _STEP / 2), room))
    if not shown.circuits:
        return marks, _room(marks)
    _, lowest = _room(marks)
    size = max(max(text_width(c.name, _SIZE), text_width(_numbers(c), _SMALL)) for c in shown.circuits)
    column = BADGE + _SWATCH + 8 + size + _SPACE
    lines = ceil(len(shown.circuits) / max(1, int((room + _SPACE) // column)))
    entries = tuple(
        _entry(circuit, (left + at // lines * column, lowest + _STEP * 1.6 + at % lines * _ENTRY))
        for at, circuit in enumerate(shown.circuits)
    )
    right, bottom = _room((*marks, *entries))
    return (*marks, *entries), (right, bottom + _SMALL)


def _entry(circuit: DrawnCircuit, at: Point) -> Group:
    x, y = at[0] + BADGE, at[1]
    line = circuit_line((x, y), (straight((x, y), (x + _SWATCH, y)),), circuit.number)
    words = x + _SWATCH + 8
    name = Label((words, y - 7), circuit.name, _SIZE, INK, centred=False, bold=True)
    numbers = Label((words, y + 8), _numbers(circuit), _SMALL, QUIET, centred=False)
    return Group("key", (*line, *badge((x, y), circuit), name, numbers))


def _numbers(circuit: DrawnCircuit) -> str:
    a, b = circuit.ports
    count = len(circuit.legs)
    return f"ports {a}:{b}, {counted(count, 'PUCs')}, {circuit.loss_db:.1f} dB"


def _marks(shown: Carried, at: Point, room: float) -> Iterator[Group]:
    """The marks of the legend, side by side: bar and cross always, others only if the picture has them."""
    x, y = at
    for word, symbol in _symbols(shown):
        width = _MARK + 6 + text_width(word, _SIZE)
        if x > at[0] and x + width > at[0] + room:
            x, y = at[0], y + _STEP
        label = Label((x + _MARK + 6, y), word, _SIZE, INK, centred=False)
        yield Group("key", (*symbol((x + _MARK / 2, y)), label))
        x += width + _SPACE


def _symbols(shown: Carried) -> Iterator[tuple[str, Callable[[Point], tuple[Item, ...]]]]:
    for state in PucState:
        yield state.word, partial(_gate, state=state)
    for state in PucState:
        if state in shown.condition.stuck.values():
            yield f"stuck in {state.word}", partial(_gate, state=state, stuck=True)
    if shown.condition.damaged:
        yield "damaged", partial(_gate, state=PucState.BAR, damaged=True)
    if shown.condition.blocked_ports:
        yield "blocked port", blocked_port


def _gate(at: Point, *, state: PucState, stuck: bool = False, damaged: bool = False) -> tuple[PictureLine, ...]:
    tracks = Tracks(_ONE_PUC, paper(_ONE_PUC), EDGE, (at[0] - EDGE / 2, at[1]))
    return gate(tracks, 0, state, stuck=stuck, damaged=damaged)


def _room(groups: Iterable[Group]) -> Point:
    """The lower right corner of the area of the groups' labels."""
    labels = [item for group in groups for item in group.items if isinstance(item, Label) and not item.centred]
    right = max(label.at[0] + text_width(label.text, label.size) for label in labels)
    return right, max(label.at[1] for label in labels)


def gate(
    tracks: Tracks, puc: int, state: PucState, *, stuck: bool = False, damaged: bool = False
) -> tuple[PictureLine, ...]:
    """A PUC: a frame with its two tracks in it, side by side in bar, over each other in cross.

    A stuck PUC has a heavy frame; a damaged PUC is dark and crossed out.
    """
    corners = _frame(tracks, puc, _ROUND_STUCK if stuck else _ROUND_LANES)
    if damaged:
        strokes = ((corners[0], corners[2]), (corners[1], corners[3]))
        crossed = (PictureLine(a, (straight(a, b),), PAGE, THIN) for a, b in strokes)
        return (polygon(corners, fill=_DAMAGED_GATE, colour=INK, width=1.2), *crossed)
    fill = _STUCK_GATE if stuck else _CROSS_GATE if state is PucState.CROSS else _BAR_GATE
    frame = polygon(corners, fill=fill, colour=INK if stuck else GLASS, width=2.4 if stuck else 1.0)
    legs = ((terminal, terminal ^ TURN[state]) for terminal in (4 * puc, 4 * puc + 1))
    return (frame, *(PictureLine(tracks.gate_end(leg[0]), (tracks.passing(leg),), _LANE, THIN) for leg in legs))


def circuit_line(start: Point, curves: tuple[Curve, ...], number: int) -> tuple[PictureLine, ...]:
    """A circuit's line, with a gap to lines under it. A dashed line is pale between its dashes.

    Yellow is too light for that: its dashes are dark.
    """
    colour, pattern, edge = line_colour(number), dashes(number), outline(line_colour(number))
    lines = [PictureLine(start, curves, PAGE, _THICK + 2 * _GAP)]
    if edge:
        lines.append(PictureLine(start, curves, edge, _THICK + 1.4))
    below, dashed = (colour, edge) if edge else (tint(colour), colour)
    lines.append(PictureLine(start, curves, below if pattern else colour, _THICK))
    if pattern:
        lines.append(PictureLine(start, curves, dashed, _THICK, tuple(length * EDGE for length in pattern)))
    return tuple(lines)


def badge(at: Point, circuit: DrawnCircuit) -> tuple[Dot | Label, ...]:
    """A circuit's letter on its colour."""
    colour = line_colour(circuit.number)
    size = 10.5 if len(circuit.letter) == 1 else 8.0
    return Dot(at, BADGE, colour, PAGE, 1.4), Label(at, circuit.letter, size, ink_on(colour), bold=True)


def free_port(at: Point) -> Dot:
    """A port without a circuit."""
    return Dot(at, 3.2, PAGE, _LANE, THIN)


def blocked_port(at: Point) -> tuple[Dot | PictureLine, ...]:
    """A ring with a bar across: a blocked port."""
    radius = 6.0
    a, b = along(at, pi / 4, -radius), along(at, pi / 4, radius)
    return Dot(at, radius, PAGE, INK, 2.0), PictureLine(a, (straight(a, b),), INK, 2.0)


def _frame(tracks: Tracks, puc: int, room: float) -> list[Point]:
    a, b = tracks.paper.ends[puc]
    angle = tracks.paper.corners[4 * puc].edge
    middle = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
    half = ASIDE + room
    ends = [along(middle, angle, -GATE), along(middle, angle, GATE)]
    sides = ((ends[0], -half), (ends[1], -half), (ends[1], half), (ends[0], half))
    return [tracks.at(along(end, angle + pi / 2, aside)) for end, aside in sides]
