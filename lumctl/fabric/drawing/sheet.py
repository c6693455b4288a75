"""The layout of a mesh on paper: its corners, and the room at each in which waveguides turn or leave the mesh.

The unit of length is the shortest edge. ``x`` grows to the right and ``y`` downwards, so angles grow clockwise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import atan2, cos, hypot, pi, sin

from lumctl.errors import UsageError
from lumctl.fabric.geometry import FREE, Mesh

Point = tuple[float, float]

_SAME = 1e-9
"""Angles that differ by less than this, in radians, count as equal."""


@dataclass(frozen=True, slots=True)
class Corner:
    """The room on one side of an edge's end, up to the next edge. A terminal's waveguide turns in it.

    ``vertex`` is the end of the edge, and ``edge`` the direction of the edge from there, in radians. ``width`` is the
    angle to the next edge, positive clockwise.
    """

    vertex: Point
    edge: float
    width: float

    @property
    def middle(self) -> float:
        """The angle in the middle of the room."""
        return self.edge + self.width / 2

    @property
    def quarter(self) -> float:
        """The angle in the middle of the half next to this edge, for marks that share the room, not the waveguide."""
        return self.edge + self.width / 4

    @property
    def lone(self) -> bool:
        """Whether no other edge ends here."""
        return abs(self.width) > 2 * pi - _SAME


@dataclass(frozen=True, slots=True)
class Paper:
    """A mesh on paper: the two ``ends`` of every PUC, and the corner of every terminal in ``corners``."""

    ends: tuple[tuple[Point, Point], ...]
    corners: tuple[Corner, ...]


def paper(mesh: Mesh) -> Paper:
    """Lay a mesh on paper.

    Raises:
        UsageError: the mesh has no positions, or they cannot be drawn.
    """
    if not mesh.points:
        raise UsageError(
            f"mesh {mesh.name} cannot be drawn: its positions are not known",
            hint="give a position to every junction of its geometry",
        )
    lengths = [hypot(*_from(mesh.points[a], mesh.points[b])) for a, b in mesh.ends]
    unit = min(lengths)
    if unit <= 0:
        puc = lengths.index(unit)
        raise UsageError(f"mesh {mesh.name} cannot be drawn: both ends of PUC {puc} have the same position")
    points = [(x / unit, y / unit) for x, y in mesh.points]
    ends = tuple((points[a], points[b]) for a, b in mesh.ends)
    return Paper(ends, _corners(mesh, points))


def along(start: Point, angle: float, length: float) -> Point:
    """The point at distance ``length`` from ``start`` in the direction ``angle``."""
    return start[0] + length * cos(angle), start[1] + length * sin(angle)


def _from(a: Point, b: Point) -> Point:
    return b[0] - a[0], b[1] - a[1]


def _corners(mesh: Mesh, points: list[Point]) -> tuple[Corner, ...]:
    angles: list[float] = []  # by terminal, the direction of its edge from the vertex there
    stars: dict[int, list[float]] = {}
    for pair in mesh.ends:
        for end in (0, 1):
            dx, dy = _from(points[pair[end]], points[pair[1 - end]])
            angles += 2 * [atan2(dy, dx)]
            stars.setdefault(pair[end], []).append(angles[-1])
    corners: list[Corner] = []
    for puc, pair in enumerate(mesh.ends):
        mirrored = _mirrored(mesh, puc, angles)
        for terminal in range(4 * puc, 4 * puc + 4):
            end, side = terminal >> 1 & 1, terminal & 1
            here = angles[terminal]
            # Seen from end 0 side 0 is the clockwise one, seen from end 1 side 1.
            sign = 1 if (end == side) != mirrored else -1
            others = (sign * (angle - here) % (2 * pi) for angle in stars[pair[end]])
            width = min((turn for turn in others if _SAME < turn < 2 * pi - _SAME), default=2 * pi)
            corners.append(Corner(points[pair[end]], here, sign * width))
    return tuple(corners)


def _mirrored(mesh: Mesh, puc: int, angles: list[float]) -> bool:
    """Whether a PUC's sides are swapped compared with the meshes made here; this happens in meshes from data.

    Its waveguides show the swap: the neighbour that is connected to a side lies on that side.
    """
    agreed = 0.0
    for terminal in range(4 * puc, 4 * puc + 4):
        peer = mesh.peers[terminal]
        if peer != FREE:
            clockwise = sin(angles[peer] - angles[terminal])
            agreed += clockwise if terminal >> 1 & 1 == terminal & 1 else -clockwise
    return agreed < -_SAME


Curve = tuple[Point, Point, Point]
"""A cubic Bezier curve that starts at the present end of the line: its two control points and its end."""

# Wide enough for a line of text in any common sans-serif; a label must not run out of the sheet.
_NARROW, _WIDE = 0.62, 1.0


@dataclass(frozen=True, slots=True)
class PictureLine:
    """A line of curves. With ``fill`` it is a closed area; with a ``width`` of 0 the line itself is not drawn."""

    start: Point
    curves: tuple[Curve, ...]
    colour: str = ""
    width: float = 0.0
    dashes: tuple[float, ...] = ()
    fill: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A circle."""

    at: Point
    radius: float
    fill: str
    colour: str = ""
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Label:
    """Text on one line, centred at a point or starting there; the point is at half the height of its capitals."""

    at: Point
    text: str
    size: float
    colour: str
    centred: bool = True
    bold: bool = False


Item = PictureLine | Dot | Label


@dataclass(frozen=True, slots=True)
class Group:
    """Items that form one object. ``kind`` says what it is, ``title`` names the single object."""

    kind: str
    items: tuple[Item, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A sheet and its items, the lowest first. ``title`` and ``description`` are for readers who cannot see it."""

    width: float
    height: float
    title: str
    description: str
    groups: tuple[Group, ...]

    def items(self) -> Iterator[Item]:
        """Everything on the sheet, the lowest first."""
        for group in self.groups:
            yield from group.items


def straight(start: Point, end: Point) -> Curve:
    """A straight piece of a line."""
    return _between(start, end, 1 / 3), _between(start, end, 2 / 3), end


def polygon(points: Sequence[Point], *, fill: str, colour: str = "", width: float = 0.0) -> PictureLine:
    """An area with straight sides."""
    sides = zip(points, (*points[1:], points[0]), strict=True)
    return PictureLine(points[0], tuple(straight(a, b) for a, b in sides), colour, width, fill=fill)


def text_width(text: str, size: float) -> float:
    """An upper bound of the width of a text."""
    return size * sum(_WIDE if char in "MWmw@%" or not char.isascii() else _NARROW for char in text)


def _between(a: Point, b: Point, share: float) -> Point:
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share
