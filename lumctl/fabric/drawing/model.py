"""A picture as data: lines, dots and labels on a sheet. What writes SVG and what paints PNG both start from here.

Lengths are those of the sheet: ``x`` to the right and ``y`` downwards from its upper left corner.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumctl.fabric.drawing.paper import Point

Curve = tuple[Point, Point, Point]
"""A cubic Bezier curve from where the line has come to: its two control points and its end."""

# Wide enough for a line of text in any common sans-serif; a label must not run out of the sheet.
_NARROW, _WIDE = 0.62, 1.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line of curves, or an area that one encloses: with ``fill`` it is closed. No ``width``, no line."""

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
    """Text on one line, centred at a point or starting there, always halfway up its capitals."""

    at: Point
    text: str
    size: float
    colour: str
    centred: bool = True
    bold: bool = False


Item = Line | Dot | Label


@dataclass(frozen=True, slots=True)
class Group:
    """Things that are one thing to the reader. ``kind`` names what it is, ``title`` this one of them."""

    kind: str
    items: tuple[Item, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A sheet with all that is on it, the lowest first. ``title`` and ``description`` are for who cannot see it."""

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


def polygon(points: Sequence[Point], *, fill: str, colour: str = "", width: float = 0.0) -> Line:
    """An area with straight sides."""
    sides = zip(points, (*points[1:], points[0]), strict=True)
    return Line(points[0], tuple(straight(a, b) for a, b in sides), colour, width, fill=fill)


def text_width(text: str, size: float) -> float:
    """The room to leave for a text, never less than it takes."""
    return size * sum(_WIDE if char in "MWmw@%" or not char.isascii() else _NARROW for char in text)


def _between(a: Point, b: Point, share: float) -> Point:
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share
