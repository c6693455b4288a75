"""The torus of each rack, layer by layer: where slices lie, what is free, and the fullest fibres; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase

from rich.text import Text

from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.inventory.model import Role
from lumctl.inventory.slice_records import torus_links
from lumctl.printable import counted, shape_text
from lumctl.slices.rack_state import RackState, rack_state
from lumctl.slices.torus import FibreEdge
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks
from lumctl.tui.views.heat_map import LEVELS

_FULLEST = 6
"""How many fibres are listed."""
_FREE, _SPARE, _WRITTEN, _KEPT = ".", "s", "#", "-"
_CELL, _GAP = 2, 3


@dataclass(frozen=True)
class TorusView:
    """The torus of one rack in an observation. Each slice has a letter; those after the 26th share letters."""

    observation: Observation
    rack: str

    @cached_property
    def state(self) -> RackState:
        """The rack as the allocator sees it; states are taken as certain at devices that answer."""
        devices = self.observation.devices
        return rack_state(self.observation, self.rack, lambda name: name in devices and not devices[name].problem)

    @cached_property
    def slices(self) -> Mapping[str, str]:
        """The letter of each slice of the rack."""
        names = [job.name for job in self.observation.inventory.jobs.values() if job.is_slice and job.rack == self.rack]
        return {name: ascii_uppercase[number % len(ascii_uppercase)] for number, name in enumerate(names)}

    @cached_property
    def fullest(self) -> tuple[FibreEdge, ...]:
        """The edges that carry circuits, those with the least room first."""
        used = [edge for edge in self.state.torus.edges if edge.used]
        return tuple(sorted(used, key=lambda edge: (edge.free, -edge.used, edge.name)))

    def cell(self, accelerator: str) -> tuple[str, str]:
        """The letter or mark of an accelerator, and its style."""
        place = self.observation.place_of(accelerator)
        if place is not None:
            if (letter := self.slices.get(place[0])) is not None:
                return letter, f"bold $heat-{list(self.slices).index(place[0]) % LEVELS}"
            return _WRITTEN, QUIET_STYLE
        if self.observation.role_of(accelerator) is Role.SPARE:
            return _SPARE, QUIET_STYLE
        return (_KEPT, QUIET_STYLE) if accelerator in self.state.kept_from else (_FREE, "")


def torus_lines(observation: Observation, marks: Marks, width: int) -> Iterator[Text]:
    """For each rack with a torus: its layers side by side (``width`` 0: one below the other), a legend, fibres."""
    racks = [name for name, rack in observation.inventory.racks.items() if rack.torus is not None]
    if not racks:
        yield Text("no rack of the inventory has a torus", style=QUIET_STYLE)
    for number, rack in enumerate(racks):
        if number:
            yield Text()
        view = TorusView(observation, rack)
        yield _head(view)
        yield from _layers(view, marks, width)
        yield from _legend(view)
        yield from _fibres(view)


def _head(view: TorusView) -> Text:
    torus = view.state.torus
    head = Text().append(f"{view.rack} {shape_text(torus.shape)}: ", HEADING_STYLE)
    return head.append(
        f"{len(torus.free)} free, {counted(len(view.slices), 'slices')}; layers of z, lines of x, columns of y"
    )


def _layers(view: TorusView, marks: Marks, width: int) -> Iterator[Text]:
    x_extent, y_extent, z_extent = view.state.torus.shape
    block = _CELL * y_extent + _GAP
    across = max(1, width // block) if width else 1
    for first in range(0, z_extent, across):
        layers = range(first, min(first + across, z_extent))
        yield Text("".join(f"{f'z={z}':<{block}}" for z in layers), style=QUIET_STYLE, no_wrap=True)
        for x in range(x_extent):
            line = Text(no_wrap=True)
            for z in layers:
                for y in range(y_extent):
                    _append_cell(line, view, view.state.accelerators.get((x, y, z)), marks)
                line.append(" " * _GAP)
            yield line


def _append_cell(line: Text, view: TorusView, accelerator: str | None, marks: Marks) -> None:
    """A letter and, if the accelerator is not ok, the mark of its state."""
    if accelerator is None:
        line.append(" " * _CELL)
        return
    health = view.observation.report.accelerators.get(accelerator)
    state = health.state if health is not None else State.UNKNOWN
    letter, style = view.cell(accelerator)
    if state is State.OK:
        line.append(letter, style)
        line.append(" ")
    else:
        line.append(f"{letter}{marks.glyphs.get(state, '?')}", STATE_STYLES[state])


def _legend(view: TorusView) -> Iterator[Text]:
    for name, letter in view.slices.items():
        job = view.observation.inventory.jobs[name]
        line = Text(f"{letter} ", style=f"bold $heat-{list(view.slices).index(name) % LEVELS}", no_wrap=True)
        ranks = view.observation.assignment[name]
        ill = [rank for rank in ranks if view.observation.report.accelerators[rank].state is not State.OK]
        line.append(f"{name}  {shape_text(torus_links(job).shape)}  {counted(len(ranks), 'ranks')}", "")
        if ill:
            line.append(f", {len(ill)} not ok: {', '.join(ill)}", STATE_STYLES[State.DEGRADED])
        yield line
    yield Text(
        f"{_FREE} free  {_SPARE} spare  {_WRITTEN} a job of the inventory  {_KEPT} not available", style=QUIET_STYLE
    )


def _fibres(view: TorusView) -> Iterator[Text]:
    edges: Sequence[FibreEdge] = view.fullest
    if not edges:
        yield Text("no fibre between servers carries a circuit", style=QUIET_STYLE)
        return
    line = Text("fullest fibres: ")
    for number, edge in enumerate(edges[:_FULLEST]):
        line.append(", " if number else "")
        full = edge.free == 0
        line.append(f"{edge.name} {edge.used}/{edge.capacity}", STATE_STYLES[State.DEGRADED] if full else "")
        line.append(" full" if full else "", STATE_STYLES[State.DEGRADED])
    if len(edges) > _FULLEST:
        line.append(f", and {len(edges) - _FULLEST} more in use", QUIET_STYLE)
    yield line
