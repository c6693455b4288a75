"""The screen of a mesh or a switch: its states, and the jobs' circuits traced through it.

A thread reads the device. The answer is shown with its age until the next one arrives.
"""

import threading
from dataclasses import dataclass
from functools import partial

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message
from textual.widgets import Static

from lumctl.errors import LumctlError
from lumctl.health.states import State
from lumctl.inventory.model import Device
from lumctl.printable import counted
from lumctl.tui.look.marks import STALE_STYLE, STATE_STYLES, age
from lumctl.tui.panes.rows import COMPONENT, counts_cell
from lumctl.tui.screens.requests import LOSSES_KIND, MATRIX_KIND, Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.mesh_drawing import LED, Chip, chip, led_rows
from lumctl.tui.views.meshes import Led, MeshView, circuits_on
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.picture import PictureWidget
from lumctl.tui.widgets.table import PaneTable

_READ_AGAIN_S = 10.0
_OTHER_LINES = 4
"""The number of lines above and below the drawing if the table is next to it."""
_TABLE_WIDTHS = (66, 46)
"""Widths of a table next to the drawing: complete, or up to the powers. If neither fits, the table is below."""


@dataclass
class MeshRead(Message):
    """The device was read; if there is not even a record, ``view`` is ``None`` and ``trouble`` is the reason."""

    view: MeshView | None
    trouble: str = ""


class MeshScreen(KeyedScreen[None], keys="mesh"):
    """Draws a device again when its states, the observation, the chosen circuit or the terminal's size changes."""

    def __init__(self, device: Device, context: ScreenContext) -> None:
        super().__init__()
        self._device = device
        self._shared = context
        self._view: MeshView | None = None
        self._trouble = ""
        self._undrawable = ""
        self._reading = False
        self._filling = False
        self._chosen: str | None = None
        self._brought: str | None = None
        self._leds: tuple[Led, ...] = ()
        self._shown: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """Create the drawing and the table of circuits, side by side if there is room."""
        yield TopBar(self._device.id, self._shared.target)
        yield Static(id="about", markup=False)
        yield AnswerLine()
        with Container(id="sides"):
            yield PictureWidget(id="chip")
            yield PaneTable(LED)
        yield PictureWidget(id="marks")
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Start reading the device, and show the known data in the meantime."""
        for picture in self.query(PictureWidget):
            picture.display = self._device.geometry is not None
        table = self.query_one(PaneTable)
        table.focus()
        self.watch(table, "cursor_row", self._choose, init=False)
        self.action_refresh_now()
        self._show()
        self.set_interval(1.0, self._show)
        self.set_interval(_READ_AGAIN_S, self.action_refresh_now)

    def on_screen_resume(self) -> None:
        """Read the device again: a swap may have been applied on another screen."""
        self.action_refresh_now()

    def on_resize(self) -> None:
        """Draw the device in the new size."""
        self.call_after_refresh(self._show)

    def action_refresh_now(self) -> None:
        """Read the device, unless a reading is in progress."""
        # Not beneath another screen, where it is not visible; ``on_screen_resume`` draws it then.
        if not self._reading and self.is_current:
            self._reading = True
            threading.Thread(target=self._read_in_thread, name="lumctl-mesh", daemon=True).start()

    def action_choose(self, by: int) -> None:
        """Highlight the next or the previous circuit."""
        table = self.query_one(PaneTable)
        table.move_cursor(row=table.cursor_row + by)
        self._choose()

    def action_sort(self, by: int) -> None:
        """Sort by the next or the previous column."""
        self.query_one(PaneTable).action_sort(by)

    def action_reverse(self) -> None:
        """Reverse the order."""
        self.query_one(PaneTable).action_reverse()

    def action_problem(self, by: int) -> None:
        """Highlight the next or the previous circuit with a fault."""
        if self.query_one(PaneTable).to_problem(by):
            self._choose()

    def action_choose_none(self) -> None:
        """Remove the highlight from all circuits."""
        self._chosen = None
        self._show()

    def action_scroll_chip(self, columns: int, lines: int) -> None:
        """Scroll the drawing."""
        self.query_one("#chip", PictureWidget).scroll_relative(columns, lines, animate=False)

    def action_details(self) -> None:
        """Open the circuit under the cursor."""
        if (row := self.query_one(PaneTable).selected) is not None and row.component:
            self.post_message(Wanted(COMPONENT, row.component))

    def action_device_details(self) -> None:
        """Open the details of the device."""
        self.post_message(Wanted("facts", self._device.id))

    def action_matrix(self) -> None:
        """Open the link matrix of the device."""
        self.post_message(Wanted(MATRIX_KIND, self._device.id))

    def action_losses(self) -> None:
        """Open the screen of the loss budgets of its circuits."""
        self.post_message(Wanted(LOSSES_KIND, self._device.id))

    def on_pane_table_row_selected(self, event: PaneTable.RowSelected) -> None:
        """Open the selected line after enter or a click."""
        event.stop()
        self.action_details()

    def on_mesh_read(self, event: MeshRead) -> None:
        """Show the device's answer; if it has not answered, keep the earlier one."""
        event.stop()
        self._reading = False
        self._trouble = event.trouble
        if event.view is not None:
            self._view = event.view
        self._show()

    def _read_in_thread(self) -> None:
        try:
            self.post_message(MeshRead(self._shared.sources.mesh(self._device.id)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(MeshRead(None, self._shared.sources.aimed(one_line(error))))

    def _choose(self) -> None:
        """Highlight the circuit under the cursor, but not while the table is being filled."""
        row = self.query_one(PaneTable).selected
        if not self._filling and row is not None:
            self._chosen = row.component or None
            self._show()

    def _show(self) -> None:
        """Update the ages each second; draw again only if something has changed."""
        if not self.is_mounted or (seen := self._shared.seen()) is None:
            return
        observation = seen.observation
        shown = (observation, self._view, self._chosen, self.size)
        table = self.query_one(PaneTable)
        # Textual makes a new ``Size`` at each call. Observation and view are compared by identity, which is fast.
        same = (now is before for now, before in zip(shown[:2], self._shown, strict=False))
        if shown[2:] == self._shown[2:] and all(same):
            table.tick(self._shared.now(), observation.inventory.thresholds.stale_after_s)
            self._say()
            return
        self._shown = shown
        self._leds = circuits_on(observation, self._device, self._view)
        drawn = self._draw()
        rows = led_rows(self._device, self._view, self._leds, self._shared.marks, drawn.ports if drawn else ())
        # Filling the table may move its cursor, which is not the operator's choice of a circuit.
        self._filling = True
        table.show(rows, self._shared.now(), observation.inventory.thresholds.stale_after_s)
        self._filling = False
        self._say()

    def _say(self) -> None:
        """Show the device's kind and state, the age of the reading, and any trouble."""
        seen, view = self._shared.seen(), self._view
        health = seen.observation.report.devices.get(self._device.id) if seen else None
        state = health.state if health else State.UNKNOWN
        about = Text(f" {self._shared.marks.state(state)}", style=STATE_STYLES[state])
        shape = f"{self._device.geometry.described}, " if self._device.geometry else ""
        about.append(f"  {self._device.kind}, {shape}{self._device.port_count} ports; circuits: ", style="not bold")
        counts = counts_cell(led.state for led in self._leds)
        about.append(counts.text, style=counts.style)
        self.query_one("#about", Static).update(about)
        self.query_one(TopBar).say(self._age(view))
        said = [text for text in (self._trouble, self._undrawable) if text]
        if view is not None and view.trouble:
            what = "the record of the last write" if view.cells else "nothing: the record is uncertain"
            said.append(f"{view.trouble}; the picture shows {what}")
        if view is not None and view.astray:
            where = ", ".join(map(str, view.astray[:8])) + (", ..." if len(view.astray) > 8 else "")  # noqa: PLR2004
            said.append(f"it differs from what was written at {counted(len(view.astray), 'cells')}: {where}")
        self.query_one(AnswerLine).say("; ".join(said))

    def _age(self, view: MeshView | None) -> Text:
        if view is None:
            return Text("reading " if self._reading else "not read ", style="" if self._reading else STALE_STYLE)
        if view.read_at is None:
            return Text("from the record ", style=STALE_STYLE)
        return Text(
            f"device read {age(view.read_at, self._shared.now())} ago ", style=STALE_STYLE * bool(self._trouble)
        )

    def _draw(self) -> Chip | None:
        self._undrawable = ""
        if self._device.geometry is None or self._view is None or not self._view.cells:
            return None
        try:
            drawn, beside = self._fitted(self._view)
        except LumctlError as error:
            self._undrawable = error.message
            return None
        self.set_class(beside, "-beside")
        picture = self.query_one("#chip", PictureWidget)
        picture.styles.width = drawn.columns + 2 if beside else "1fr"
        picture.show(len(drawn.lines), drawn.columns, lambda line: drawn.lines[line])
        # Only for a new choice: at each drawing it would undo what the operator has scrolled.
        if drawn.begins is not None and self._chosen != self._brought:
            picture.bring(*drawn.begins, width=6, height=3)
        self._brought = self._chosen
        self.query_one("#marks", PictureWidget).show(1, len(drawn.marks), lambda _line: drawn.marks)
        return drawn

    def _fitted(self, view: MeshView) -> tuple[Chip, bool]:
        """The largest drawing that leaves room for the table next to it, and whether there is room for both."""
        drawn_on = partial(chip, self._device, view, self._leds, marks=self._shared.marks, chosen=self._chosen)
        width, height = self.size
        for room in _TABLE_WIDTHS:
            drawn = drawn_on(width=max(width - room, 10), height=height - _OTHER_LINES)
            if drawn.columns + room <= width:
                return drawn, True
        return drawn_on(width=width - 2), False
