"""The data of a table as plain values: what a pane shows, before any widget is touched."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lumctl.health.states import SEVERITY, State, worst
from lumctl.printable import counted
from lumctl.tui.look.marks import STATE_STYLES, Marks
from lumctl.tui.views.records import RecordedLook

AGE = "age"
"""The key of the column that the table itself fills in, each second, from a row's ``at``."""
COMPONENT = "component"
"""The kind of the screen of whatever the inventory names."""


_QUIET = frozenset({State.OK, State.DISABLED})


class Cell(NamedTuple):
    """The text of one cell and its Rich style."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``width`` is the least width in characters; a longer cell widens it."""

    key: str
    heading: str
    width: int
    right: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a pane: its component, its cells in column order without the age, and since when.

    ``opens`` is the kind and the key of the screen that enter opens, if it differs from the pane's; ``beneath`` is
    the key of the row that it is folded into, empty for a row of its own.
    """

    key: str
    component: str
    state: State
    cells: tuple[Cell, ...]
    at: float | None
    opens: tuple[str, str] | None = None
    beneath: str = ""

    def matches(self, words: Sequence[str]) -> bool:
        """Whether every word (lower case) is found somewhere in the line."""
        text = "\n".join(cell.text for cell in self.cells).lower()
        return all(word in text for word in words)


def nothing_wrong(_seen: RecordedLook) -> tuple[State, ...]:
    """The trouble of a pane without any."""
    return ()


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the dashboard's tables. ``goes_stale``: its ages are those of readings, and an old one is marked.

    ``trouble`` are the states of everything that is not ok, for the pane's tab; ``lines`` is the height of a row;
    ``opens`` is the kind of screen that enter opens for a row, ``lists_components``: a component can be found here.
    ``swaps`` returns the accelerator of a row for which a swap is planned; ``None`` if there is none or several.
    ``folds_at`` is the index of the cell that shows whether the rows beneath one are folded. ``one`` is the singular
    of ``noun``, if it is not ``noun`` without its last letter.
    """

    id: str
    title: str
    noun: str
    help: str
    columns: tuple[Column, ...]
    rows: Callable[[RecordedLook, Marks], list[Row]]
    trouble: Callable[[RecordedLook], tuple[State, ...]] = nothing_wrong
    goes_stale: bool = True
    lines: int = 1
    opens: str = COMPONENT
    lists_components: bool = False
    swaps: Callable[[RecordedLook, Row], str | None] | None = None
    folds_at: int | None = None
    one: str = ""

    def count(self, number: int) -> str:
        """So many of what its rows are."""
        return counted(number, self.noun, self.one)


def state_cell(state: State, marks: Marks) -> Cell:
    """A state as glyph, word and colour."""
    return Cell(marks.state(state), STATE_STYLES[state])


def counts_cell(states: Iterable[State]) -> Cell:
    """How many are in which state, worst first, in the colour of the worst; ``-`` of none."""
    numbers = Counter(states)
    if not numbers:
        return Cell("-")
    ranked = sorted(numbers, key=SEVERITY.index, reverse=True)
    return Cell(", ".join(f"{numbers[state]} {state}" for state in ranked), STATE_STYLES[ranked[0]])


def number_cell(value: float | None, unit: str = "") -> Cell:
    """A whole number, or ``-`` if the host did not report it."""
    return Cell("-" if value is None else f"{value:.0f}{unit}")


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Rows by severity; those of one state keep their order."""
    return sorted(rows, key=lambda row: -SEVERITY.index(row.state))


def not_well(states: Iterable[State]) -> tuple[State, ...]:
    """Those that ask for a look: what is unknown does, what was taken out of service does not."""
    return tuple(state for state in states if state not in _QUIET)


def trouble_cell(states: tuple[State, ...], marks: Marks) -> Cell:
    """The number of components that are not ok, for a pane's tab.

    With the mark and the colour of the worst; empty if none.
    """
    if not states:
        return Cell("")
    of_all = worst(states)
    return Cell(f"{marks.glyphs.get(of_all, '')}{len(states)}", STATE_STYLES[of_all])


# Texts without a maximum length come last, so that the age stays visible.
STATE = Column("state", "STATE", 10)
AGE_OF_READING = Column(AGE, "AGE", 5, right=True)
FOR = Column(AGE, "FOR", 5, right=True)
AGO = Column(AGE, "AGO", 5, right=True)
