"""What stands under the picture of a mesh: its circuits one by one, and what its marks mean."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import ceil

from lumctl.counts import counted
from lumctl.devices.types import PucState
from lumctl.fabric.drawing.carried import Carried, Circuit
from lumctl.fabric.drawing.lanes import Lanes
from lumctl.fabric.drawing.model import Group, Item, Label, Line, straight, text_width
from lumctl.fabric.drawing.paper import Point, paper
from lumctl.fabric.drawing.symbols import BADGE, EDGE, INK, QUIET, badge, blocked_port, circuit_line, gate
from lumctl.fabric.geometry import FREE, Mesh

_SIZE, _SMALL = 12.0, 11.0
_STEP = 26.0
"""From one line of the key to the next."""
_ENTRY = 36.0
"""From one circuit to the next: a name and a line of numbers."""
_SWATCH = 50.0
_MARK = 32.0
_SPACE = 28.0

_ONE_PUC = Mesh("one PUC", ((0, 1),), (FREE,) * 4, (0, 1, 2, 3), ((0.0, 0.0), (1.0, 0.0)))
"""What the gates of the key are drawn from."""


def key(shown: Carried, corner: Point, room: float) -> tuple[tuple[Group, ...], Point]:
    """The key's parts, from its upper left corner on and ``room`` wide where that is enough; its lower right corner."""
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


def _entry(circuit: Circuit, at: Point) -> Group:
    x, y = at[0] + BADGE, at[1]
    line = circuit_line((x, y), (straight((x, y), (x + _SWATCH, y)),), circuit.number)
    words = x + _SWATCH + 8
    name = Label((words, y - 7), circuit.name, _SIZE, INK, centred=False, bold=True)
    numbers = Label((words, y + 8), _numbers(circuit), _SMALL, QUIET, centred=False)
    return Group("key", (*line, *badge((x, y), circuit), name, numbers))


def _numbers(circuit: Circuit) -> str:
    a, b = circuit.ports
    count = len(circuit.legs)
    return f"ports {a}:{b}, {counted(count, 'PUCs')}, {circuit.loss_db:.1f} dB"


def _marks(shown: Carried, at: Point, room: float) -> Iterator[Group]:
    """The marks side by side, those that the picture has: bar and cross always."""
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


def _gate(at: Point, *, state: PucState, stuck: bool = False, damaged: bool = False) -> tuple[Line, ...]:
    lanes = Lanes(_ONE_PUC, paper(_ONE_PUC), EDGE, (at[0] - EDGE / 2, at[1]))
    return gate(lanes, 0, state, stuck=stuck, damaged=damaged)


def _room(groups: Iterable[Group]) -> Point:
    """The lower right corner of what the labels of groups take."""
    labels = [item for group in groups for item in group.items if isinstance(item, Label) and not item.centred]
    right = max(label.at[0] + text_width(label.text, label.size) for label in labels)
    return right, max(label.at[1] for label in labels)
