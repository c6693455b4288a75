"""Writes a picture as SVG or PNG. The SVG is self-contained: no style sheet, no script, only the reader's own fonts."""

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from lumctl.errors import UsageError
from lumctl.fabric.drawing.sheet import Curve, Dot, Group, Item, Label, Picture, PictureLine, Point

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

_FONTS = "Helvetica, Arial, Liberation Sans, sans-serif"
_CAPITALS = 0.36
"""Half the height of capitals, in font sizes: the distance of a label's baseline below its middle."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def written(sheet: Picture) -> str:
    """The picture as the text of an SVG file."""
    width, height = _short(sheet.width), _short(sheet.height)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title description"',
        f'font-family="{_FONTS}">',
        f'<title id="title">{_text(sheet.title)}</title>',
        f'<desc id="description">{_text(sheet.description)}</desc>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *(line for group in sheet.groups for line in _group(group)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _group(group: Group) -> Iterator[str]:
    yield f'<g class="{group.kind}">'
    if group.title:
        yield f"<title>{_text(group.title)}</title>"
    yield from (_item(item) for item in group.items)
    yield "</g>"


def _item(item: Item) -> str:
    match item:
        case PictureLine():
            return _line(item)
        case Dot():
            x, y = _numbers(item.at)
            ring = _stroke(item.colour, item.width)
            return f'<circle cx="{x}" cy="{y}" r="{_short(item.radius)}" fill="{item.fill}"{ring}/>'
        case Label():
            x, y = _numbers((item.at[0], item.at[1] + _CAPITALS * item.size))
            anchor = ' text-anchor="middle"' if item.centred else ""
            weight = ' font-weight="bold"' if item.bold else ""
            look = f'font-size="{_short(item.size)}" fill="{item.colour}"{anchor}{weight}'
            return f'<text x="{x}" y="{y}" {look}>{_text(item.text)}</text>'


def _line(line: PictureLine) -> str:
    way = "M" + " ".join(_numbers(line.start))
    for curve in line.curves:
        way += "C" + " ".join(number for point in curve for number in _numbers(point))
    ends = "" if line.fill else ' stroke-linecap="round"'
    dashed = f' stroke-dasharray="{" ".join(_short(length) for length in line.dashes)}"' if line.dashes else ""
    stroke = _stroke(line.colour, line.width)
    return f'<path d="{way}{"Z" if line.fill else ""}" fill="{line.fill or "none"}"{stroke}{ends}{dashed}/>'


def _stroke(colour: str, width: float) -> str:
    return f' stroke="{colour}" stroke-width="{_short(width)}" stroke-linejoin="round"' if width else ""


def _numbers(point: Point) -> tuple[str, str]:
    return _short(point[0]), _short(point[1])


def _short(number: float) -> str:
    """A number with at most two decimals. Zero has no sign, so that a drawing is the same on every machine."""
    rounded = round(number, 2)
    return f"{0.0 if rounded == 0 else rounded:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    """Text for XML; a character that XML cannot contain becomes a replacement mark."""
    return escape(_NOT_XML.sub("\ufffd", text))


_FINER = 3
"""The picture is painted larger by this factor and then reduced, because Pillow's own edges are not smooth."""
_MOST_PIXELS = 60_000_000
"""Most pixels of the finished picture; while it is painted, it takes 27 bytes for each pixel."""
_STEPS = 10
_WEIGHTS = tuple(
    ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
    for t in (step / _STEPS for step in range(1, _STEPS + 1))
)
"""A curve is painted as straight pieces; these are the weights of its four points at the end of each piece."""


def painted(sheet: Picture, scale: float) -> bytes:
    """The picture as the bytes of a PNG file; ``scale`` is in pixels per unit of the sheet.

    Raises:
        UsageError: Pillow is not installed, or the scale is invalid.
    """
    try:
        from PIL import Image, ImageDraw  # noqa: PLC0415 - an extra
    except ImportError as missing:
        raise UsageError("PNG needs the package Pillow", hint="pip install 'lumctl[png]', or draw SVG") from missing
    size = round(sheet.width * scale), round(sheet.height * scale)
    if not 0 < size[0] * size[1] <= _MOST_PIXELS:
        raise UsageError(
            f"a picture of {size[0]} x {size[1]} pixels is not possible", hint="choose another scale, or SVG"
        )
    large = Image.new("RGB", (size[0] * _FINER, size[1] * _FINER), "#ffffff")
    brush = _Brush(ImageDraw.Draw(large), scale * _FINER)
    for item in sheet.items():
        brush.paint(item)
    file = BytesIO()
    large.resize(size, Image.Resampling.BOX).save(file, "PNG")
    return file.getvalue()


class _Brush:
    """Paints items; ``scale`` is in pixels per unit of the sheet."""

    def __init__(self, draw: "ImageDraw.ImageDraw", scale: float) -> None:
        self._draw = draw
        self._scale = scale
        self._fonts: dict[float, ImageFont.ImageFont | ImageFont.FreeTypeFont] = {}

    def paint(self, item: Item) -> None:
        match item:
            case PictureLine():
                self._line(item)
            case Dot():
                self._dot(item.at, item.radius + item.width / 2, item.colour or item.fill)
                self._dot(item.at, item.radius - item.width / 2, item.fill)
            case Label():
                self._label(item)

    def _line(self, line: PictureLine) -> None:
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
        """Paint a line with round ends and joints: Pillow's own lines have integer widths and uneven joints."""
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
        """Paint a disc in pixels; Pillow includes the last row and column."""
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
            stroke_width=label.size * self._scale / 40 if label.bold else 0,  # the only built-in font is light
        )

    def _font(self, size: float) -> "ImageFont.ImageFont | ImageFont.FreeTypeFont":
        """The font that is built into Pillow, so that the picture is the same on every machine."""
        if size not in self._fonts:
            from PIL import ImageFont  # noqa: PLC0415 - an extra

            self._fonts[size] = ImageFont.load_default(size * self._scale)
        return self._fonts[size]


def _points(line: PictureLine) -> Iterator[Point]:
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
    """The dashes of a line; ``lengths`` alternate between dash and gap."""
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
