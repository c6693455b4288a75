"""The main screen: four tables, the line to filter or go somewhere, and what is to be said about the data.

Messages go up (what the operator wants), calls come down (what is to be shown); nothing here blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen
from textual.widgets import ContentSwitcher, DataTable, Static

from lumctl.inventory.hints import nearest
from lumctl.site.observation import Observation
from lumctl.tui.bars import Answer, KeyBar, TopBar, tabs_line
from lumctl.tui.keys import MAIN, bindings
from lumctl.tui.marks import Marks
from lumctl.tui.panes import PANES
from lumctl.tui.prompt import Prompt
from lumctl.tui.rows import trouble_cell
from lumctl.tui.table import PaneTable


@dataclass
class DetailWanted(Message):
    """Show all that is known of a component."""

    component: str


@dataclass
class PlanWanted(Message):
    """Plan a swap for an accelerator."""

    accelerator: str


class RefreshWanted(Message):
    """Read everything again now."""


class MainScreen(Screen[None]):
    """Racks, accelerators, circuits, findings."""

    BINDINGS = bindings(MAIN)  # type: ignore[assignment]

    def __init__(self, title: str, target: str, marks: Marks, now: Callable[[], float]) -> None:
        super().__init__()
        self._title = title
        self._target = target
        self._marks = marks
        self._now = now
        self._observation: Observation | None = None
        self._filters: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield TopBar(self._title, self._target)
        yield Static(id="tabs")
        yield Static(id="banner", markup=False)
        yield Static(id="shown", markup=False)
        with ContentSwitcher(initial=PANES[0].id):
            for pane in PANES:
                yield PaneTable(pane)
        yield Answer()
        yield Prompt()
        yield KeyBar(MAIN)

    def on_mount(self) -> None:
        """Begin on the first pane, before anything was read."""
        self._show_tabs()
        self._table.focus()
        self._say_what_is_shown("nothing was read yet")

    def show(self, observation: Observation) -> None:
        """Show what was observed."""
        self._observation = observation
        self._show_tabs()
        self._show_rows()

    def tick(self, freshness: Text, trouble: str | None) -> None:
        """Once a second: let ages grow, say how fresh the data are and what stands in the way of fresher ones."""
        self.query_one(TopBar).say(freshness)
        banner = self.query_one("#banner", Static)
        banner.set_class(trouble is not None, "-open")
        banner.update(trouble or "")
        if self._observation is not None:
            self._table.tick(self._now(), self._observation.inventory.thresholds.stale_after_s)

    def say(self, text: str) -> None:
        """Answer the operator in one line; an empty text takes the line away."""
        self.query_one(Answer).say(text)

    def action_show_pane(self, pane: str) -> None:
        """Switch to a pane."""
        self.query_one(ContentSwitcher).current = pane
        self.say("")
        self._show_tabs()
        self._show_rows()
        self._table.focus()

    def action_turn(self, by: int) -> None:
        """Switch to the next pane or the one before; while a name is typed, complete it."""
        prompt = self.query_one(Prompt)
        if prompt.opened:
            prompt.complete()
            return
        ids = [pane.id for pane in PANES]
        self.action_show_pane(ids[(ids.index(self._pane_id) + by) % len(ids)])

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self._table.move_cursor(row=self._table.cursor_row + by)

    def action_details(self) -> None:
        """Ask for the details of the selected component."""
        if (row := self._table.selected) is not None:
            self.post_message(DetailWanted(row.component))

    def action_plan_swap(self) -> None:
        """Ask for a plan for the selected accelerator."""
        row = self._table.selected
        if self._pane_id != "accelerators":
            self.say("to plan a swap, select the failed accelerator among the accelerators (2), then press p")
        elif row is not None:
            self.post_message(PlanWanted(row.component))

    def action_refresh_now(self) -> None:
        """Ask for a new reading."""
        self.say("")
        self.post_message(RefreshWanted())

    def action_filter(self) -> None:
        """Open the line for a filter."""
        self.say("")
        self.query_one(Prompt).open("/", self._filters.get(self._pane_id, ""))

    def action_go_to(self) -> None:
        """Open the line for a name."""
        self.say("")
        self.query_one(Prompt).open(":", names=self._names())

    def action_back(self) -> None:
        """Close what is open, else take the filter away."""
        prompt = self.query_one(Prompt)
        if prompt.opened:
            prompt.close()
        self.say("")
        if self._filters.pop(self._pane_id, None):
            self._show_rows()

    def on_prompt_filtered(self, event: Prompt.Filtered) -> None:
        """Filter the pane while the words are typed."""
        self._filters[self._pane_id] = event.words
        self._show_rows()

    def on_prompt_closed(self) -> None:
        """Give the keys back to the table."""
        self._table.focus()

    def on_prompt_gone_to(self, event: Prompt.GoneTo) -> None:
        """Go to a pane or to a component, or name the nearest."""
        by_name = {name.lower(): name for name in self._names()}
        name = by_name.get(event.name.lower())
        if name is None:
            near = nearest(event.name.lower(), by_name)
            self.say(f"no pane or component {event.name!r}" + (f"; did you mean {by_name[near]!r}?" if near else ""))
        elif name in _PANE_IDS:
            self.action_show_pane(name)
        else:
            self._go_to_component(name)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter, or a click on the selected line."""
        event.stop()
        self.action_details()

    def _go_to_component(self, component: str) -> None:
        """Select its line where it has one, filtered or not; else show its details."""
        for pane in PANES[:-1]:
            if self._observation and any(r.component == component for r in pane.rows(self._observation, self._marks)):
                self._filters.pop(pane.id, None)
                self.action_show_pane(pane.id)
                self._table.select(component)
                return
        self.post_message(DetailWanted(component))

    def _names(self) -> list[str]:
        """Where one can go: panes first, then components."""
        if self._observation is None:
            return list(_PANE_IDS)
        inventory = self._observation.inventory
        components = (inventory.accelerators, self._observation.report.circuits, inventory.hosts, inventory.devices)
        names = [*_PANE_IDS, *(name for group in components for name in group), *inventory.transponders]
        return list(dict.fromkeys([*names, *inventory.racks]))

    @property
    def _pane_id(self) -> str:
        return self.query_one(ContentSwitcher).current or PANES[0].id

    @property
    def _table(self) -> PaneTable:
        return self.query_one(f"#{self._pane_id}", PaneTable)

    def _show_tabs(self) -> None:
        seen = self._observation
        tabs = [(pane.id, pane.title, trouble_cell(pane.trouble(seen) if seen else (), self._marks)) for pane in PANES]
        self.query_one("#tabs", Static).update(tabs_line(tabs, self._pane_id))

    def _show_rows(self) -> None:
        """Only the pane that is seen is kept up to date; the others are when they are turned to."""
        if self._observation is None:
            return
        pane = next(pane for pane in PANES if pane.id == self._pane_id)
        everything = pane.rows(self._observation, self._marks)
        words = self._filters.get(pane.id, "")
        rows = [row for row in everything if row.matches(words.lower().split())]
        self._table.show(rows, self._now(), self._observation.inventory.thresholds.stale_after_s)
        if words:
            self._say_what_is_shown(f"{len(rows)} of {len(everything)} {pane.noun} match {words!r} (esc: all)")
        elif everything:
            self._say_what_is_shown(f"{len(everything)} {pane.noun}")
        else:
            self._say_what_is_shown(f"no {pane.noun}")

    def _say_what_is_shown(self, text: str) -> None:
        self.query_one("#shown", Static).update(text)


_PANE_IDS = tuple(pane.id for pane in PANES)
