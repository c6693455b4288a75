"""The heat map of a rack: each accelerator with a number and a colour; those not ok with a glyph; pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from rich.text import Text

from lumctl.fleet.readings import GpuReading
from lumctl.health.identity import gpu_readings
from lumctl.health.observation import Observation, places
from lumctl.health.states import State, is_fault, worst
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import initial_assignment
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks
from lumctl.tui.views.heat_layout import HOST, NARROWEST, TITLE, HeatLayout, HeatPart, blocks_of
from lumctl.tui.views.records import RecordedLook

LEVELS = 5
"""The number of colours of the scale."""
_FULL_TEMPERATURE_C = 90.0
_FULL_POWER_W = 700.0
_NAMED, _PLACED, _MARKED, _NUMBER = 21, 11, 6, 4
"""The least widths at which an accelerator shows its name, its job and rank, and a mark; the width of its number."""


@dataclass(frozen=True, slots=True)
class HeatQuantity:
    """A quantity to show: a reading, and the values at the two ends of the colour scale."""

    id: str
    title: str
    unit: str
    read: Callable[[GpuReading], float | None]
    low: float
    high: float

    def level(self, value: float) -> int:
        """The colour level of a value, from 0 to ``LEVELS - 1``."""
        share = (value - self.low) / (self.high - self.low)
        return max(0, min(int(share * LEVELS), LEVELS - 1))

    def digit(self, value: float) -> str:
        """The value on the scale as one digit, from 0 to 9."""
        share = (value - self.low) / (self.high - self.low)
        return str(max(0, min(int(share * 10), 9)))


QUANTITIES = (
    HeatQuantity("utilization", "utilisation", "%", lambda gpu: gpu.utilization_percent, 0.0, 100.0),
    HeatQuantity("temperature", "temperature", "C", lambda gpu: gpu.temperature_c, 25.0, _FULL_TEMPERATURE_C),
    HeatQuantity("power", "power", "W", lambda gpu: gpu.power_w, 0.0, _FULL_POWER_W),
)
"""The quantities in the order in which the key shows them."""


class Piece(NamedTuple):
    """A text and the name of its style."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Heat:
    """The heat map of one observation; states and numbers are computed once."""

    observation: Observation
    quantity: HeatQuantity
    marks: Marks
    taken: Mapping[str, str] = field(default_factory=dict)
    """The spares that runs in progress take, with the run for each."""

    @cached_property
    def values(self) -> Mapping[str, float | None]:
        """The value of each accelerator that has a reading."""
        readings = gpu_readings(self.observation.inventory, self.observation.snapshot)
        return {name: self.quantity.read(gpu) for name, gpu in readings.items()}

    @cached_property
    def uses(self) -> Mapping[str, str]:
        """The use of each accelerator: ``JOB/RANK``, ``spare``, the run that takes it, or ``out`` (of service)."""
        # As ``Observation.role_of`` decides for one; for a thousand, the places are looked up once.
        placed, first = self.observation.places(), places(initial_assignment(self.observation.inventory))
        uses: dict[str, str] = {}
        for each in self.observation.inventory.accelerators.values():
            place = placed.get(each.id)
            spare = each.role is Role.SPARE and each.id not in first
            unused = self.taken.get(each.id, "spare") if spare else "out"
            uses[each.id] = f"{place[0]}/{place[1]}" if place else unused
        return uses

    def joined_to(self, accelerator: str) -> frozenset[str]:
        """The accelerators to which circuits join an accelerator."""
        if (known := self._joined.get(accelerator)) is not None:
            return known
        inventory = self.observation.inventory
        lanes = {lane.id for lane in inventory.transponders_of(accelerator)}
        ends = ((a.transponder, b.transponder) for a, b in (c.ends for c in self.observation.report.circuits.values()))
        far = (b if a in lanes else a for a, b in ends if a in lanes or b in lanes)
        found = self._joined[accelerator] = frozenset(inventory.transponders[lane].accelerator for lane in far)
        return found

    @cached_property
    def _joined(self) -> dict[str, frozenset[str]]:
        return {}

    @cached_property
    def states(self) -> Mapping[str, State]:
        """The state of each accelerator; if the accelerator itself is ok, a fault of its worst lane counts.

        A lane that only suffers from a fault elsewhere makes the accelerator degraded.
        """
        report = self.observation.report
        known = {name: health.state for name, health in report.accelerators.items()}
        states = {name: known.get(name, State.UNKNOWN) for name in self.observation.inventory.accelerators}
        elsewhere = bool(self.causes)
        transponders = self.observation.inventory.transponders
        for link in report.links.values():
            lane = None if link.state is State.OK else transponders.get(link.id)
            if lane is not None and is_fault(link.state) and known.get(lane.accelerator) is State.OK:
                suffers = elsewhere and lane.accelerator not in self.causes
                state = State.DEGRADED if suffers else link.state
                states[lane.accelerator] = worst((states[lane.accelerator], state))
        return states

    @cached_property
    def causes(self) -> frozenset[str]:
        """The accelerators that are not ok themselves, and those whose lane is the cause of a fault."""
        transponders = self.observation.inventory.transponders
        lanes = {transponders[r.cause].accelerator for r in self.observation.remedies if r.cause in transponders}
        own = {name for name, health in self.observation.report.accelerators.items() if health.state is not State.OK}
        return frozenset(lanes | own)

    def out_of_sight(self, layout: HeatLayout, top: int, height: int) -> str:
        """A text with the number of accelerators with a fault above and below the visible lines; empty if none."""
        faults = [line for name, (line, _) in layout.spots.items() if is_fault(self.states[name])]
        above, below = sum(line < top for line in faults), sum(line >= top + height for line in faults)
        told = ((above, "above"), (below, "below"))
        return ", ".join(f"{count} with a fault {where}" for count, where in told if count)

    def line(self, layout: HeatLayout, number: int, chosen: str | None) -> list[Piece]:
        """The pieces of one line, including gaps; adjacent pieces of one style are joined."""
        column, pieces, text, style = 0, list[Piece](), "", ""
        joined = self.joined_to(chosen) if chosen is not None else frozenset[str]()
        for part in layout.lines[number]:
            own, its = self._part(part, chosen, joined)
            for more, of in ((" " * (part.column - column), ""), (own, its)):
                # Of pieces of one style, the terminal gets one sequence of colours.
                if of == style or not more:
                    text += more
                else:
                    pieces.append(Piece(text, style))
                    text, style = more, of
            column = part.column + len(own)
        return [*pieces, Piece(text, style)]

    def _part(self, part: HeatPart, chosen: str | None, joined: frozenset[str]) -> tuple[str, str]:
        """The text of a part in its width, and its style."""
        if part.kind == TITLE:
            return _cut(part.name, part.width - 1, self.marks).ljust(part.width), HEADING_STYLE
        if part.kind == HOST:
            health = self.observation.report.hosts.get(part.name)
            state = health.state if health is not None else State.UNKNOWN
            return part.label.ljust(part.width), QUIET_STYLE if state is State.OK else STATE_STYLES[state]
        text, style = self._cell(part.name, part.width - 1, chosen, joined)
        # The gap after a narrow cell has the cell's style, so that cells of one style are one piece.
        return (f"{text} " if part.width <= NARROWEST else text), style

    def _cell(self, accelerator: str, width: int, chosen: str | None, joined: frozenset[str]) -> tuple[str, str]:
        """The text and the style of an accelerator; without its name, those of many are the same."""
        is_chosen, is_joined = accelerator == chosen, accelerator in joined
        kind: object = accelerator
        if width < _PLACED:
            use, state = self.uses[accelerator], self.states[accelerator]
            value, is_cause = self.values.get(accelerator), accelerator in self.causes
            kind = (state, is_cause, use == "spare", self._is_taken(accelerator), value)
        key = (kind, width, is_chosen, is_joined)
        known = self._cells.get(key)
        if known is None:
            mark = "chosen " if is_chosen else "joined " if is_joined else ""
            text = self.text(accelerator, width, is_chosen=is_chosen, is_joined=is_joined)
            known = self._cells[key] = (text, f"{mark}{self.style(accelerator)}")
        return known

    @cached_property
    def _cells(self) -> dict[object, tuple[str, str]]:
        return {}

    def style(self, accelerator: str) -> str:
        """The style of an accelerator: by its state if it is not ok, else by its value."""
        state = self.states[accelerator]
        if self._is_taken(accelerator):
            return STATE_STYLES[State.DEGRADED]
        if is_fault(state) and accelerator in self.causes:
            return f"fill {state}"
        if state is not State.OK:
            return STATE_STYLES[state]
        value = self.values.get(accelerator)
        return QUIET_STYLE if value is None else f"$heat-{self.quantity.level(value)}"

    def text(self, accelerator: str, width: int, *, is_chosen: bool = False, is_joined: bool = False) -> str:
        """An accelerator in ``width`` characters: mark, glyph, name, use and number, as far as there is room."""
        state, use, value = self.states[accelerator], self.uses[accelerator], self.values.get(accelerator)
        glyph = "s" if use == "spare" else " "
        if self._is_taken(accelerator):
            glyph = self.marks.glyphs.get(State.DEGRADED, "?")
        elif state is not State.OK:
            glyph = self.marks.glyphs.get(state, "?")
        if width < _MARKED - 3:
            # No room for a glyph and a number: what is wrong, or a spare, comes before a reading.
            quiet = glyph == " " and value is not None
            return (self.quantity.digit(value) if quiet and value is not None else glyph).ljust(width)
        mark = ">" if is_chosen else "*" if is_joined else " "
        if width < _MARKED:
            number = "" if value is None else f"{value:.0f}"
            room = width - (0 if glyph == " " else 1)
            return f"{glyph.strip()}{number[:room]:>{room}}" if len(number) <= room else f"{glyph}".center(width)
        number = f"{'-' if value is None else f'{value:.0f}{self.quantity.unit}':>{_NUMBER}}"
        head, room = f"{mark}{glyph} ", max(width - len(number), 2)
        if width >= _NAMED:
            short = self._short(accelerator)
            head = f"{head}{short} "
        if width >= _PLACED:
            head += _cut(use, max(room - len(head), 0), self.marks)
        return f"{head[:room]:<{room}}{number}"[:width]

    def _is_taken(self, accelerator: str) -> bool:
        """Whether a run in progress takes this accelerator, which is ok and runs no rank yet."""
        run = self.taken.get(accelerator)
        return run is not None and self.uses[accelerator] == run and self.states[accelerator] is State.OK

    def _short(self, accelerator: str) -> str:
        host = self.observation.inventory.accelerators[accelerator].host
        return accelerator.removeprefix(host).lstrip("-/_.:") or accelerator


def _cut(text: str, width: int, marks: Marks) -> str:
    """The text, cut in its middle if it is too long: the beginning identifies the job, the end the rank."""
    if len(text) <= width:
        return text
    if width < 3:  # noqa: PLR2004 - beginning, mark and end
        return text[-width:] if width else ""
    end = min(3, width - 2)
    return f"{text[: width - end - 1]}{'~' if marks.ascii_only else '…'}{text[-end:]}"


def legend(quantity: HeatQuantity, *, short: bool = False) -> str:
    """The meaning of the numbers and marks, and the key for other numbers; without that key if ``short``."""
    following = QUANTITIES[(QUANTITIES.index(quantity) + 1) % len(QUANTITIES)]
    key = "" if short else f" (m: {following.title})"
    return f"{quantity.title} in {quantity.unit}{key}; s spare, * linked to >"


def host_lines(seen: RecordedLook, host: str = "") -> Iterator[Text]:
    """The racks in words: a line for each host, or one host, with its accelerators' uses, states and utilisation."""
    observation = seen.observation
    heat = Heat(observation, QUANTITIES[0], Marks({}, ascii_only=True), seen.taken)
    for block in blocks_of(observation):
        for name, accelerators in zip(block.hosts, block.by_host, strict=True):
            if host in {"", name}:
                told = (_in_words(heat, each.id) for each in accelerators)
                yield Text(f"{name}: {'; '.join(told)}.")


def _in_words(heat: Heat, accelerator: str) -> str:
    state, value = heat.states[accelerator], heat.values.get(accelerator)
    measured = "" if value is None else f" {value:.0f}{heat.quantity.unit}"
    wrong = "" if state is State.OK else f" {state}"
    return f"{accelerator} {heat.uses[accelerator]}{wrong}{measured}"
