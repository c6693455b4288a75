"""A picture written as SVG that stands alone: no style sheet, no script, no font but what the reader has."""

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

from lumctl.fabric.drawing.model import Dot, Group, Item, Label, Line, Picture
from lumctl.fabric.drawing.paper import Point

_FONTS = "Helvetica, Arial, Liberation Sans, sans-serif"
_CAPITALS = 0.36
"""Half the height of capitals, in font sizes: how far below its middle a label's baseline lies."""
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
        case Line():
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


def _line(line: Line) -> str:
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
    """A number with two places at most. No sign stands before nothing: a drawing is the same on every machine."""
    rounded = round(number, 2)
    return f"{0.0 if rounded == 0 else rounded:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    """Text as XML takes it: what XML has no way to write is shown as a replacement mark."""
    return escape(_NOT_XML.sub("\ufffd", text))
