"""The position of each accelerator in the picture of one or several racks, for a given size; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lumctl.health.observation import Observation
from lumctl.inventory.model import Accelerator

WIDEST = 26
NARROWEST = 4
"""The least width at which an accelerator's number is shown: three digits and a gap."""
_SMALL_WIDTHS = (10, 8, 6, NARROWEST, 2)
_GAP = 3
"""The columns between columns of hosts, or between racks side by side."""


@dataclass(frozen=True, slots=True)
class HeatBlock:
    """A column of hosts of one rack, each with its accelerators by index; ``title`` may be empty."""

    title: str
    hosts: tuple[str, ...]
    by_host: tuple[tuple[Accelerator, ...], ...]

    @property
    def most(self) -> int:
        """The greatest number of accelerators of a host."""
        return max(map(len, self.by_host), default=0)

    @property
    def label_width(self) -> int:
        """The width of the hosts' labels, with the gap after them."""
        return max((len(self.label(host)) for host in self.hosts), default=0) + 1

    def label(self, host: str) -> str:
        """The name of a host, without its rack's name if that is the block's title."""
        return (host.removeprefix(self.title).lstrip("-/_.:") if self.title else host) or host

    @property
    def lines(self) -> int:
        """The height of the block, in lines."""
        return len(self.hosts) + bool(self.title)

    def columns(self, cell: int) -> int:
        """The width of the block with cells of this width; a longer title is cut."""
        return self.label_width + self.most * cell


@dataclass(frozen=True, slots=True)
class HeatPart:
    """A part of a line: the title of a rack, a host with its label, or an accelerator."""

    column: int
    width: int
    kind: str
    name: str
    label: str = ""


@dataclass(frozen=True)
class HeatLayout:
    """The parts of each line from left to right, the width of an accelerator, and each accelerator's position."""

    lines: tuple[tuple[HeatPart, ...], ...] = ()
    columns: int = 0
    cell: int = WIDEST
    spots: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The line and column of each accelerator."""

    def at(self, line: int, column: int) -> HeatPart | None:
        """The part at a position; ``None`` if there is none."""
        if not 0 <= line < len(self.lines):
            return None
        return next((part for part in self.lines[line] if part.column <= column < part.column + part.width), None)

    def beside(self, accelerator: str, across: int, down: int) -> str:
        """The accelerator ``across`` places right and ``down`` lines below, or the last one in that direction."""
        if accelerator not in self.spots:
            return accelerator
        line, column = self.spots[accelerator]
        if down:
            lines = [at for at, parts in enumerate(self.lines) if any(part.kind == ACCELERATOR for part in parts)]
            line = lines[max(0, min(lines.index(line) + down, len(lines) - 1))]
        here = [part for part in self.lines[line] if part.kind == ACCELERATOR]
        nearest = min(range(len(here)), key=lambda at: abs(here[at].column - column))
        return here[max(0, min(nearest + across, len(here) - 1))].name


TITLE, HOST, ACCELERATOR = "title", "host", "accelerator"


def blocks_of(observation: Observation, rack: str | None = None) -> tuple[HeatBlock, ...]:
    """A block for each rack of an observation, or for one of them, with its hosts in the order of the inventory."""
    inventory = observation.inventory
    on: dict[str, list[Accelerator]] = {host: [] for host in inventory.hosts}
    for accelerator in inventory.accelerators.values():
        on[accelerator.host].append(accelerator)
    names = [name for name in inventory.racks if rack in {None, name}]
    hosts: dict[str, list[str]] = {name: [] for name in names}
    for host in inventory.hosts.values():
        if host.rack in hosts:
            hosts[host.rack].append(host.name)
    return tuple(
        HeatBlock(
            name if len(names) > 1 else "",
            tuple(hosts[name]),
            tuple(tuple(sorted(on[host], key=lambda each: each.index)) for host in hosts[name]),
        )
        for name in names
    )


def layout_of(blocks: Sequence[HeatBlock], width: int, height: int) -> HeatLayout:
    """The layout that fits into ``width`` columns and ``height`` lines; the smallest one if none fits.

    One rack gets as few columns of hosts as the height allows; several racks are drawn small, side by side.
    """
    blocks = [block for block in blocks if block.most]
    if not blocks:
        return HeatLayout()
    if len(blocks) == 1:
        return _one(blocks[0], width, height)
    for cell in _SMALL_WIDTHS:
        layout = _several(blocks, width, cell)
        if len(layout.lines) <= height and layout.columns <= width:
            return layout
    return layout


def _one(block: HeatBlock, width: int, height: int) -> HeatLayout:
    """The layout of one rack: hosts from top to bottom, in several columns if one column is too high."""
    count = len(block.hosts)
    cell, rows = NARROWEST, count
    for columns in range(1, count + 1):
        room = (width - (columns - 1) * _GAP) // columns - block.label_width
        fits = room // block.most
        # More columns do not fit: keep the last number that did, and let the picture scroll.
        if columns > 1 and fits < NARROWEST:
            break
        cell, rows = max(NARROWEST, min(WIDEST, fits)), -(-count // columns)
        if rows <= max(height, 1):
            break
    pieces = [
        HeatBlock("", block.hosts[first : first + rows], block.by_host[first : first + rows])
        for first in range(0, count, rows)
    ]
    lines: list[list[HeatPart]] = [[] for _ in range(rows)]
    for number, piece in enumerate(pieces):
        left = number * (block.label_width + block.most * cell + _GAP)
        _draw(piece, lines, 0, left, block.label_width, cell)
    return _finished(lines, cell)


def _several(blocks: Sequence[HeatBlock], width: int, cell: int) -> HeatLayout:
    """The layout of several racks in rows; a row is as high as its highest rack."""
    lines: list[list[HeatPart]] = []
    left = top = 0
    for block in blocks:
        wide = max(block.columns(cell), min(len(block.title) + 1, width))
        if left and left + wide > width:
            left, top = 0, len(lines) + 1  # a blank line between rows of racks
        lines += ([] for _ in range(top + block.lines - len(lines)))
        _draw(block, lines, top, left, block.label_width, cell)
        left += wide + _GAP
    return _finished(lines, cell)


def _draw(block: HeatBlock, lines: list[list[HeatPart]], top: int, left: int, label: int, cell: int) -> None:
    if block.title:
        lines[top].append(HeatPart(left, max(len(block.title) + 1, block.columns(cell)), TITLE, block.title))
        top += 1
    for row, (host, accelerators) in enumerate(zip(block.hosts, block.by_host, strict=True)):
        lines[top + row].append(HeatPart(left, label, HOST, host, block.label(host)))
        lines[top + row] += (
            HeatPart(left + label + place * cell, cell, ACCELERATOR, each.id) for place, each in enumerate(accelerators)
        )


def _finished(lines: Sequence[Sequence[HeatPart]], cell: int) -> HeatLayout:
    spots = {
        part.name: (line, part.column) for line, parts in enumerate(lines) for part in parts if part.kind == ACCELERATOR
    }
    columns = max((part.column + part.width for parts in lines for part in parts), default=0)
    return HeatLayout(tuple(map(tuple, lines)), columns, cell, spots)
