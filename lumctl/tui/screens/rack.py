"""The screen of a rack: its accelerators in their places on the hosts, and the links between them."""

from functools import partial

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.inventory.model import Accelerator
from lumctl.printable import counted
from lumctl.tui.look.marks import STALE_STYLE, STATE_STYLES, age
from lumctl.tui.panes.rows import COMPONENT, counts_cell
from lumctl.tui.screens.main import PlanWanted, Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.views.rack_drawing import (
    LINES,
    LINK_MARGIN,
    Emphasis,
    Places,
    host_line,
    link_line,
    links_first,
    places_of,
    summary,
)
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.picture import PictureWidget

RACK_FACTS = "rack"
"""The kind of the screen of all that is known of a rack."""


class RackScreen(KeyedScreen[None], keys="rack"):
    """One accelerator is chosen, at first the worst; its links are listed first."""

    def __init__(self, rack: str, context: ScreenContext) -> None:
        super().__init__()
        self._rack = rack
        self._shared = context
        self._places = Places((), (), ())
        self._chosen: str | None = None
        self._drawn: tuple[Observation, str | None, int] | None = None

    def compose(self) -> ComposeResult:
        """The hosts above, the links below."""
        yield TopBar(self._rack, self._shared.target)
        yield Static(id="about")
        yield PictureWidget(id="hosts")
        yield PictureWidget(id="chosen")
        yield PictureWidget(id="links")
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Show it now and each second."""
        self._show()
        self.set_interval(1.0, self._show)

    def on_resize(self) -> None:
        """Draw it to the new size."""
        self.call_after_refresh(self._show)

    def action_choose(self, across: int, down: int) -> None:
        """Choose the accelerator beside, above or below; on a host with fewer the last one."""
        row, column = self._place()
        rows = [group for group in self._places.by_host if group]
        if not rows:
            return
        row = max(0, min(row + down, len(rows) - 1))
        column = max(0, min(column + across, len(rows[row]) - 1))
        self._choose(rows[row][column])

    def action_details(self) -> None:
        """Open the chosen accelerator."""
        if self._chosen is not None:
            self.post_message(Wanted(COMPONENT, self._chosen))

    def action_rack_details(self) -> None:
        """Open all that is known of the rack."""
        self.post_message(Wanted(RACK_FACTS, self._rack))

    def action_plan_swap(self) -> None:
        """Ask for a plan for the chosen accelerator."""
        if self._chosen is not None:
            self.post_message(PlanWanted(self._chosen))

    def action_scroll_links(self, lines: int) -> None:
        """Scroll the links."""
        self.query_one("#links", PictureWidget).scroll_relative(y=lines, animate=False)

    def on_picture_widget_clicked(self, event: PictureWidget.Clicked) -> None:
        """Choose what was clicked; a click on the chosen one opens it."""
        event.stop()
        row, cell = event.line // LINES, self._places.cell_width(self.size.width - 2)
        column = (event.column - self._places.label_width()) // cell
        if not 0 <= row < len(self._places.by_host) or not 0 <= column < len(self._places.by_host[row]):
            return
        clicked = self._places.by_host[row][column]
        if clicked.id == self._chosen:
            self.action_details()
        else:
            self._choose(clicked)

    def _choose(self, accelerator: Accelerator) -> None:
        self._chosen = accelerator.id
        self.query_one(AnswerLine).say("")
        self._show()
        self.query_one("#links", PictureWidget).scroll_home(animate=False)
        self._bring()

    def _bring(self) -> None:
        """Have the chosen accelerator in sight."""
        host = next((at for at, group in enumerate(self._places.by_host) if self._is_in(group)), None)
        if host is not None:
            cell = self._places.cell_width(self.size.width - 2)
            column = 0 if self._place()[1] == 0 else self._places.label_width() + self._place()[1] * cell
            self.query_one("#hosts", PictureWidget).bring(host * LINES, column, cell, LINES)

    def _is_in(self, group: tuple[Accelerator, ...]) -> bool:
        return any(each.id == self._chosen for each in group)

    def _place(self) -> tuple[int, int]:
        """The row among the hosts that have accelerators, and the column, of the chosen one."""
        rows = [group for group in self._places.by_host if group]
        for row, group in enumerate(rows):
            for column, each in enumerate(group):
                if each.id == self._chosen:
                    return row, column
        return 0, 0

    def _show(self) -> None:
        """Draw what is in sight again where the look, the choice or the size is another."""
        seen = self._shared.seen()
        if seen is None or not self.is_mounted:
            return
        observation = seen.observation
        begins = self._chosen is None
        if self._drawn is None or self._drawn[0] is not observation:
            self._places = places_of(observation, self._rack)
        self._say(observation)
        if begins:
            self._chosen = self._worst(observation)
        now = (observation, self._chosen, self.size.width)
        if self._drawn == now:
            return
        self._drawn = now
        places, marks, width = self._places, self._shared.marks, self.size.width - 2
        emphasis = Emphasis(self._chosen, places.joined_with(self._chosen))
        line = partial(host_line, places, observation, marks, emphasis, width)
        columns = places.label_width() + places.most * places.cell_width(width)
        self.query_one("#hosts", PictureWidget).show(len(places.hosts) * LINES, columns, line)
        links = links_first(places, self._chosen)
        longest = max((len(f"{link.a}{link.b}{link.circuit.id}") for link in links), default=0) + LINK_MARGIN
        self.query_one("#links", PictureWidget).show(
            len(links), longest, lambda at: link_line(links[at], marks, chosen=self._chosen)
        )
        if self._chosen is not None:
            told = summary(observation, self._chosen, marks)
            self.query_one("#chosen", PictureWidget).show(1, told.cell_len, lambda _line: told)
        if begins:
            self.call_after_refresh(self._bring)

    def _worst(self, observation: Observation) -> str | None:
        """The accelerator to begin with: the first that has failed, else the first at all."""
        here = [each.id for group in self._places.by_host for each in group]
        health = observation.report.accelerators
        failed = (each for each in here if each in health and health[each].state is State.FAILED)
        return next(failed, here[0] if here else None)

    def _say(self, observation: Observation) -> None:
        """How many are how, the devices of the rack, and the age of the look."""
        report, inventory = observation.report, observation.inventory
        here = [each for each in inventory.accelerators.values() if each.rack == self._rack]
        counts = counts_cell(h.state for each in here if (h := report.accelerators.get(each.id)) is not None)
        about = Text(f" {counted(len(self._places.hosts), 'hosts')}, {counted(len(here), 'accelerators')}: ")
        about.append(counts.text, style=counts.style)
        for device in inventory.light_devices:
            if device.rack == self._rack and (health := report.devices.get(device.id)) is not None:
                about.append(f"; {device.id} ", style="not bold")
                about.append(self._shared.marks.state(health.state), style=STATE_STYLES[health.state])
        self.query_one("#about", Static).update(about)
        old = self._shared.now() - observation.at
        stale = old > inventory.thresholds.stale_after_s
        said = f"read {age(observation.at, self._shared.now())} ago "
        self.query_one(TopBar).say(Text(said, style=STALE_STYLE if stale else ""))
