"""The data of a table as plain values: what a pane shows, before any widget is touched."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lumctl.health.states import SEVERITY, State, worst
from lumctl.site.observation import Observation
from lumctl.tui.marks import STATE_STYLES, Marks

AGE = "age"
"""The key of the column that the table itself fills in, each second, from a row's ``at``."""


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
    """One line of a pane: which component it speaks of, its cells in column order without the age, and since when."""

    key: str
    component: str
    state: State
    cells: tuple[Cell, ...]
    at: float | None

    def matches(self, words: Sequence[str]) -> bool:
        """Whether every word (lower case) is found somewhere in the line."""
        text = "\n".join(cell.text for cell in self.cells).lower()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the dashboard's tables. ``goes_stale``: its ages are those of readings, and an old one is marked.

    ``trouble`` are the states of whatever is not well, for the pane's tab; ``lines`` how many a row takes.
    """

    id: str
    title: str
    noun: str
    help: str
    columns: tuple[Column, ...]
    rows: Callable[[Observation, Marks], list[Row]]
    trouble: Callable[[Observation], tuple[State, ...]]
    goes_stale: bool = True
    lines: int = 1


def state_cell(state: State, marks: Marks) -> Cell:
    """A state as glyph, word and colour."""
    return Cell(marks.state(state), STATE_STYLES[state])


def counts_cell(states: Iterable[State]) -> Cell:
    """How many are in which state, worst first, in the colour of the worst; ``-`` of none."""
    counted = Counter(states)
    if not counted:
        return Cell("-")
    ranked = sorted(counted, key=SEVERITY.index, reverse=True)
    return Cell(", ".join(f"{counted[state]} {state}" for state in ranked), STATE_STYLES[worst(tuple(counted))])


def number_cell(value: float | None, unit: str = "") -> Cell:
    """A whole number, or ``-`` where the host did not say."""
    return Cell("-" if value is None else f"{value:.0f}{unit}")


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Rows by severity; those of one state keep their order."""
    return sorted(rows, key=lambda row: -SEVERITY.index(row.state))


def not_well(states: Iterable[State]) -> tuple[State, ...]:
    """Those that ask for a look: what is unknown does, what was taken out of service does not."""
    return tuple(state for state in states if state not in {State.OK, State.DISABLED})


def trouble_cell(states: tuple[State, ...], marks: Marks) -> Cell:
    """How many are not well, as a pane's tab says it: with the mark and the colour of the worst; empty of none."""
    if not states:
        return Cell("")
    of_all = worst(states)
    return Cell(f"{marks.glyphs.get(of_all, '')}{len(states)}", STATE_STYLES[of_all])
