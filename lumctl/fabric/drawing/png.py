"""A picture painted as PNG. Needs Pillow."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING

from lumctl.errors import UsageError
from lumctl.fabric.drawing.model import Curve, Dot, Item, Label, Line, Picture
from lumctl.fabric.drawing.paper import Point

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

_FINER = 3
"""Everything is painted so much larger and then made smaller: Pillow's own edges are not smooth."""
_MOST_PIXELS = 60_000_000
"""Of the finished picture; while it is painted it takes 27 bytes for each."""
_STEPS = 10
_WEIGHTS = tuple(
    ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
    for t in (step / _STEPS for step in range(1, _STEPS + 1))
)
"""What the four points of a curve weigh at the end of each straight piece that it is painted in."""


def painted(sheet: Picture, scale: float) -> bytes:
    """The picture as the bytes of a PNG file, ``scale`` pixels to a unit of the sheet.

    Raises:
        UsageError: Pillow is not installed, or the scale makes no picture.
    """
    try:
        from PIL import Image, ImageDraw  # noqa: PLC0415 - an extra
    except ImportError as missing:
        raise UsageError("PNG needs the package Pillow", hint="pip install 'lumctl[png]', or draw SVG") from missing
    size = round(sheet.width * scale), round(sheet.height * scale)
    if not 0 < size[0] * size[1] <= _MOST_PIXELS:
        raise UsageError(f"a picture of {size[0]} x {size[1]} pixels cannot be", hint="choose another scale, or SVG")
    large = Image.new("RGB", (size[0] * _FINER, size[1] * _FINER), "#ffffff")
    brush = _Brush(ImageDraw.Draw(large), scale * _FINER)
    for item in sheet.items():
        brush.paint(item)
    file = BytesIO()
    large.resize(size, Image.Resampling.BOX).save(file, "PNG")
    return file.getvalue()


class _Brush:
    """Paints items; ``scale`` is pixels to a unit of the sheet."""

    def __init__(self, draw: "ImageDraw.ImageDraw", scale: float) -> None:
        self._draw = draw
        self._scale = scale
        self._fonts: dict[float, ImageFont.ImageFont | ImageFont.FreeTypeFont] = {}

    def paint(self, item: Item) -> None:
        match item:
            case Line():
                self._line(item)
            case Dot():
                self._dot(item.at, item.radius + item.width / 2, item.colour or item.fill)
                self._dot(item.at, item.radius - item.width / 2, item.fill)
            case Label():
                self._label(item)

    def _line(self, line: Line) -> None:
        points = [(x * self._scale, y * self._scale) for x, y in _points(line)]
        if line.fill:
            self._draw.polygon(points, fill=line.fill)
        if not line.width:
            return
        width = line.width * self._scale
        lengths = [length * self._scale for length in line.dashes]
        for piece in _pieces(points, lengths) if lengths else [points]:
            self._stroke(piece, line.colour, width)

    def _stroke(self, points: Sequence[Point], colour: str, width: float) -> None:
        """A line with round ends and joints. Pillow's own lines have a whole number of pixels and uneven joints."""
        half = width / 2
        for (x0, y0), (x1, y1) in pairwise(points):
            length = hypot(x1 - x0, y1 - y0) or 1.0
            dx, dy = (x1 - x0) / length * half, (y1 - y0) / length * half
            self._draw.polygon([(x0 - dy, y0 + dx), (x1 - dy, y1 + dx), (x1 + dy, y1 - dx), (x0 + dy, y0 - dx)], colour)
        for point in points:
            self._disc(point, half, colour)

    def _dot(self, at: Point, radius: float, colour: str) -> None:
        self._disc((at[0] * self._scale, at[1] * self._scale), radius * self._scale, colour)

    def _disc(self, at: Point, radius: float, colour: str) -> None:
        """A disc in pixels; Pillow paints the last row and column too."""
        x, y = at
        self._draw.ellipse((x - radius, y - radius, x + radius - 1, y + radius - 1), fill=colour)

    def _label(self, label: Label) -> None:
        at = label.at[0] * self._scale, label.at[1] * self._scale
        self._draw.text(
            at,
            label.text,
            fill=label.colour,
            font=self._font(label.size),
            anchor="mm" if label.centred else "lm",
            stroke_width=label.size * self._scale / 40 if label.bold else 0,  # the one font that is built in is light
        )

    def _font(self, size: float) -> "ImageFont.ImageFont | ImageFont.FreeTypeFont":
        """The font that is built into Pillow: the picture is the same on every machine."""
        if size not in self._fonts:
            from PIL import ImageFont  # noqa: PLC0415 - an extra

            self._fonts[size] = ImageFont.load_default(size * self._scale)
        return self._fonts[size]


def _points(line: Line) -> Iterator[Point]:
    """A line as straight pieces."""
    yield line.start
    start = line.start
    for curve in line.curves:
        yield from _curve(start, curve)
        start = curve[2]


def _curve(start: Point, curve: Curve) -> Iterator[Point]:
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = start, *curve
    for a, b, c, d in _WEIGHTS:
        yield a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3


def _pieces(points: Sequence[Point], lengths: Sequence[float]) -> Iterator[list[Point]]:
    """The dashes of a line: lengths of dash and gap by turns."""
    at, left, piece = 0, lengths[0], [points[0]]
    for start, end in pairwise(points):
        here, whole = 0.0, hypot(end[0] - start[0], end[1] - start[1])
        while whole - here > left:
            here += left
            share = here / whole
            corner = (start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share)
            if at % 2 == 0:
                yield [*piece, corner]
            piece = [corner]
            at += 1
            left = lengths[at % len(lengths)]
        left -= whole - here
        piece.append(end)
    if at % 2 == 0:
        yield piece
