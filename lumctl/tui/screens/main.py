"""The main screen: the tables, the line to filter or to open a name, and messages about the data.

Messages go up (the operator's wishes), calls come down (what to show); nothing here blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import ContentSwitcher, Static

from lumctl.inventory.problems import nearest
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes import PANES
from lumctl.tui.panes.rows import COMPONENT, Pane, trouble_cell
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.views.folds import Folding
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, Tabs, TopBar
from lumctl.tui.widgets.prompt import Prompt
from lumctl.tui.widgets.table import PaneTable


@dataclass
class Wanted(Message):
    """Show all that is known of something: of which kind (a pane's ``opens``), and its key."""

    kind: str
    key: str


@dataclass
class PlanWanted(Message):
    """Plan a swap for an accelerator."""

    accelerator: str


class RefreshWanted(Message):
    """Read everything again now."""


class MainScreen(KeyedScreen[None], keys="main"):
    """Racks, accelerators, circuits, findings."""

    def __init__(self, title: str, target: str, marks: Marks, now: Callable[[], float]) -> None:
        super().__init__()
        self._title = title
        self._target = target
        self._marks = marks
        self._now = now
        self._seen: RecordedLook | None = None
        self._filters: dict[str, str] = {}
        self._folding = Folding()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield TopBar(self._title, self._target)
        yield Tabs()
        yield Static(id="banner", markup=False)
        yield Static(id="shown", markup=False)
        with ContentSwitcher(initial=PANES[0].id):
            for pane in PANES:
                yield PaneTable(pane)
        yield AnswerLine()
        yield Prompt()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Begin on the first pane, before anything was read."""
        self._show_tabs()
        self._table.focus()
        self._say_what_is_shown("nothing was read yet")

    def show(self, seen: RecordedLook) -> None:
        """Show what was seen."""
        self._seen = seen
        self._show_tabs()
        self._show_rows()

    def tick(self, freshness: Text, trouble: str | None) -> None:
        """Once a second: update ages, and show how fresh the data are and what hinders fresher ones."""
        if not self.query("#freshness"):  # the screen is being taken down, and what stands deepest went first
            return
        self.query_one(TopBar).say(freshness)
        banner = self.query_one("#banner", Static)
        if banner.content != (trouble or ""):
            banner.set_class(trouble is not None, "-open")
            banner.update(trouble or "")
        if self._seen is not None:
            self._table.tick(self._now(), self._seen.observation.inventory.thresholds.stale_after_s)

    def say(self, text: str) -> None:
        """Answer the operator in one line; an empty text takes the line away."""
        self.query_one(AnswerLine).say(text)

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
            pane = self._pane
            kind, key = row.opens or (pane.opens, row.component if pane.opens == COMPONENT else row.key)
            self.post_message(Wanted(kind, key))

    def action_plan_swap(self) -> None:
        """Ask for a plan for the selected accelerator."""
        row, swaps = self._table.selected, self._pane.swaps
        if self._seen is not None and self._seen.forbidden:
            self.say(self._seen.forbidden)
        elif swaps is None:
            self.say("to plan a swap, select the failed accelerator among the accelerators (2), then press p")
        elif row is not None and self._seen is not None:
            accelerator = swaps(self._seen, row)
            if accelerator is not None:
                self.post_message(PlanWanted(accelerator))
            else:
                self.say(f"no single accelerator is the cause of {row.component}'s trouble: open it (enter)")

    def action_fold(self) -> None:
        """Fold or unfold the rows beneath the selected line's head; the cursor stays or moves to the head."""
        row, pane = self._table.selected, self._pane
        if row is None or pane.folds_at is None or self._seen is None or self._filters.get(pane.id):
            return
        head = self._folding.turn(row, pane.rows(self._seen, self._marks))
        self._show_rows()
        selected = self._table.selected
        if head and (selected is None or selected.key != row.key):
            self._table.select_key(head)

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
        self.query_one(Prompt).open(":", names=self.names())

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
        """Return the keys to the table."""
        self._table.focus()

    def on_prompt_gone_to(self, event: Prompt.GoneTo) -> None:
        """Go to a pane or to a component, or name the nearest."""
        by_name = {name.lower(): name for name in self.names()}
        name = by_name.get(event.name.lower())
        if name is None:
            near = nearest(event.name.lower(), by_name)
            self.say(f"no pane or component {event.name!r}" + (f"; did you mean {by_name[near]!r}?" if near else ""))
        else:
            self.go_to(name)

    def go_to(self, name: str) -> None:
        """Go to a pane or to a component that :meth:`names` knows."""
        if name in _PANE_IDS:
            self.action_show_pane(name)
        else:
            self._go_to_component(name)

    def on_pane_table_row_selected(self, event: PaneTable.RowSelected) -> None:
        """Enter, or a click on the selected line."""
        event.stop()
        self.action_details()

    def _go_to_component(self, component: str) -> None:
        """Select its line where it has one, filtered or not; else show its details."""
        for pane in PANES:
            if not pane.lists_components or self._seen is None:
                continue
            inventory = self._seen.observation.inventory
            found = [row for row in pane.rows(self._seen, self._marks) if row.component == component]
            if found:
                self._filters.pop(pane.id, None)
                self._folding.unfold(found[0])
                self.action_show_pane(pane.id)
                self._table.select(component)
                if component in inventory.racks or component in {device.id for device in inventory.light_devices}:
                    self.action_details()  # These are drawn: naming one opens its drawing.
                return
        self.post_message(Wanted(COMPONENT, component))

    def names(self) -> list[str]:
        """Where one can go: panes first, then components."""
        if self._seen is None:
            return list(_PANE_IDS)
        observation = self._seen.observation
        inventory = observation.inventory
        components = (inventory.accelerators, observation.report.circuits, inventory.hosts, inventory.devices)
        names = [*_PANE_IDS, *(name for group in components for name in group), *inventory.transponders]
        return list(dict.fromkeys([*names, *inventory.racks]))

    @property
    def _pane_id(self) -> str:
        return self.query_one(ContentSwitcher).current or PANES[0].id

    @property
    def _pane(self) -> Pane:
        return next(pane for pane in PANES if pane.id == self._pane_id)

    @property
    def _table(self) -> PaneTable:
        return self.query_one(f"#{self._pane_id}", PaneTable)

    def _show_tabs(self) -> None:
        seen = self._seen
        tabs = [(pane.id, pane.title, trouble_cell(pane.trouble(seen) if seen else (), self._marks)) for pane in PANES]
        self.query_one(Tabs).show(tabs, self._pane_id)

    def _show_rows(self) -> None:
        """Only the pane that is seen is kept up to date; the others are when they are turned to."""
        if self._seen is None:
            return
        pane = self._pane
        everything = pane.rows(self._seen, self._marks)
        words = self._filters.get(pane.id, "")
        rows = everything
        if words:
            rows = [row for row in everything if row.matches(words.lower().split())]
        elif pane.folds_at is not None:
            rows = self._folding.seen(everything, pane.folds_at, self._marks)
        self._table.show(rows, self._now(), self._seen.observation.inventory.thresholds.stale_after_s)
        if words:
            match = "matches" if len(rows) == 1 else "match"
            self._say_what_is_shown(f"{len(rows)} of {pane.count(len(everything))} {match} {words!r} (esc: all)")
        elif everything:
            folded = len(everything) - len(rows)
            away = f", {folded} of them folded away (space: unfold)" if folded else ""
            self._say_what_is_shown(f"{pane.count(len(everything))}{away}")
        else:
            self._say_what_is_shown(f"no {pane.noun}")

    def _say_what_is_shown(self, text: str) -> None:
        shown = self.query_one("#shown", Static)
        if shown.content != text:
            shown.update(text, layout=False)


_PANE_IDS = tuple(pane.id for pane in PANES)
