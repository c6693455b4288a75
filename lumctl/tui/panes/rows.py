"""The data of a table as plain values: what a pane shows, before any widget is touched."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lumctl.health.states import HARMLESS, SEVERITY, State, worst
from lumctl.printable import counted
from lumctl.tui.look.marks import STATE_STYLES, Marks
from lumctl.tui.views.records import RecordedLook

AGE = "age"
"""The key of the column that the table itself fills in, each second, from a row's ``at``."""
COMPONENT = "component"
"""The kind of the screen for anything that the inventory names."""


TROUBLE = frozenset(State) - HARMLESS
"""The states that need attention: unknown does; disabled, which is out of service, does not."""


class Cell(NamedTuple):
    """The text of one cell and its Rich style."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``width`` is the least width in characters; a longer cell widens it.

    With ``has_numbers`` it is sorted by the least number in a cell. With ``is_name`` it may shrink to its least width.
    """

    key: str
    heading: str
    width: int
    right: bool = False
    has_numbers: bool = False
    is_name: bool = False

    @property
    def is_numeric(self) -> bool:
        """Whether its cells are sorted as numbers: right-aligned columns are."""
        return self.right or self.has_numbers


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a pane: its component, its cells in column order (without the age), and the time for its age.

    ``opens`` is the kind and the key of the screen that enter opens, if it differs from the pane's. ``beneath`` is the
    key of the row into which this row folds; empty if it folds into none. ``known``: its fault is acknowledged or in
    maintenance, so it is not counted.
    """

    key: str
    component: str
    state: State
    cells: tuple[Cell, ...]
    at: float | None
    opens: tuple[str, str] | None = None
    beneath: str = ""
    known: bool = False

    def matches(self, words: Sequence[str]) -> bool:
        """Whether every word (lower case) is in the text of the row."""
        text = "\n".join(cell.text for cell in self.cells).lower()
        return all(word in text for word in words)


def nothing_wrong(_seen: RecordedLook) -> tuple[State, ...]:
    """The trouble of a pane that never has any."""
    return ()


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the dashboard's tables. ``goes_stale``: its ages are those of readings, and an old one is marked.

    ``trouble`` are the states of everything that is not ok, for the pane's tab. ``lines`` is the height of a row.
    ``opens`` is the kind of screen that enter opens for a row. ``lists_components``: a component can be found here.
    ``can_act``: its rows are components that can be acknowledged, maintained and drained.
    ``counts`` are the states of rows that are counted while they are out of sight; a record of the past counts none.
    ``folds_at`` is the index of the cell that shows whether the rows beneath a row are folded. ``one`` is the singular
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
    folds_at: int | None = None
    one: str = ""
    counts: frozenset[State] = TROUBLE
    can_act: bool = False
    short: str = ""
    """The title for a narrow terminal, if it is not the title itself."""

    @property
    def optional_columns(self) -> tuple[Column, ...]:
        """The columns that may be hidden: not the first two, which name the row, and not a text of several lines."""
        return self.columns[2:] if self.lines == 1 else self.columns[2:-1]

    def count(self, number: int) -> str:
        """A number of rows in words, such as ``3 circuits``."""
        return counted(number, self.noun, self.one)


def state_cell(state: State, marks: Marks) -> Cell:
    """A state as glyph, word and colour."""
    return Cell(marks.state(state), STATE_STYLES[state])


def counts_cell(states: Iterable[State]) -> Cell:
    """The number in each state, worst first, in the colour of the worst; ``-`` if there are none."""
    numbers = Counter(states)
    if not numbers:
        return Cell("-")
    ranked = sorted(numbers, key=SEVERITY.index, reverse=True)
    return Cell(", ".join(f"{numbers[state]} {state}" for state in ranked), STATE_STYLES[ranked[0]])


def number_cell(value: float | None, unit: str = "") -> Cell:
    """A whole number, or ``-`` if the host did not report it."""
    return Cell("-" if value is None else f"{value:.0f}{unit}")


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Rows by severity; those of one state stay in the same order."""
    return sorted(rows, key=lambda row: -SEVERITY.index(row.state))


def not_well(states: Iterable[State]) -> tuple[State, ...]:
    """The states that need attention."""
    return tuple(state for state in states if state in TROUBLE)


def trouble_cell(states: tuple[State, ...], marks: Marks) -> Cell:
    """The number of components in the worst state, for a pane's tab, with the mark and the colour of that state.

    Empty if all are ok.
    """
    if not states:
        return Cell("")
    of_all = worst(states)
    return Cell(f"{marks.glyphs.get(of_all, '')}{states.count(of_all)}", STATE_STYLES[of_all])


# Texts without a maximum length come last, so that the age stays visible.
STATE = Column("state", "STATE", 10)
AGE_OF_READING = Column(AGE, "AGE", 5, right=True)
FOR = Column(AGE, "FOR", 5, right=True)
AGO = Column(AGE, "AGO", 5, right=True)
