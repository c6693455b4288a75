"""The first screen: the strip, the racks as a heat map, the links below, and from 140 columns the details."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static

from lumctl.health.observation import Observation
from lumctl.health.states import SEVERITY, State
from lumctl.tui.look.marks import STATE_STYLES, Marks
from lumctl.tui.look.signs import with_states
from lumctl.tui.look.truncation import cut_line, wrapped
from lumctl.tui.views.detail_text import VALUE_AT, detail_text
from lumctl.tui.views.details import describe
from lumctl.tui.views.headline import news_of
from lumctl.tui.views.heat_layout import HeatBlock, HeatLayout, blocks_of, layout_of
from lumctl.tui.views.heat_map import QUANTITIES, Heat, HeatQuantity, legend
from lumctl.tui.views.history import History
from lumctl.tui.views.links import DrawnLink, link_lines, links_of, summary
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.strip import strip_lines
from lumctl.tui.widgets.heat import HeatPicture
from lumctl.tui.widgets.picture import PictureWidget
from lumctl.tui.widgets.table import TOLD_EACH_S

BESIDE_FROM = 140
"""The width in columns from which the details of the chosen accelerator are next to the picture."""
_LEFT, _LEAST_DETAILS, _MOST_DETAILS = 112, 54, 92
_BESIDE_DETAILS = 1
_LEAST_LINKS = 4
_LEAST_HEAT = 4


class RackView(Vertical):
    """The racks, with one accelerator chosen, at first the worst. With ``rack``, only this rack is shown.

    It draws the observations that it is given; :class:`HeatPicture` posts messages for its keys.
    """

    class Redrawn(Message):
        """Another accelerator was chosen, or another quantity."""

    def __init__(
        self,
        marks: Marks,
        now: Callable[[], float],
        rack: str | None = None,
        remembered: Callable[[str], History] = lambda _: History(),
    ) -> None:
        super().__init__(id="rack-view")
        self._marks = marks
        self._now = now
        self._rack = rack
        self._remembered = remembered
        self._seen: RecordedLook | None = None
        self._of: Observation | None = None
        self._blocks: tuple[HeatBlock, ...] = ()
        self._links: tuple[DrawnLink, ...] = ()
        self._room: tuple[object, ...] = ()
        self._layout = HeatLayout()
        self._taken: Mapping[str, str] = {}
        self._drawn: tuple[object, ...] = (None,) * 5
        self._drawn_at = 0.0
        self._strip_lines = 0
        self.quantity: HeatQuantity = QUANTITIES[0]
        self.chosen: str | None = None

    def compose(self) -> ComposeResult:
        """The strip above; the picture, the chosen accelerator and its links; the details at the right."""
        yield Static(id="strip")
        with Horizontal():
            with Vertical(id="rack-left"):
                yield HeatPicture()
                yield PictureWidget(id="chosen")
                yield PictureWidget(id="links")
            yield PictureWidget(id="rack-details")

    @property
    def picture(self) -> HeatPicture:
        """The heat map."""
        return self.query_one(HeatPicture)

    @property
    def legend(self) -> str:
        """The meaning of the numbers; before that, the faults out of sight, if any."""
        return self._legend()

    def _legend(self, *, short: bool = False) -> str:
        hidden, told = self.picture.out_of_sight, legend(self.quantity, short=short)
        return f"{hidden} (pgup, pgdn); {told}" if hidden else told

    @property
    def legend_with_states(self) -> str:
        """The legend, and the signs of the states that are seen on the screen, as far as they fit beside it.

        If they do not all fit, the key for other numbers is omitted, which the key bar also names.
        """
        if self._seen is None:
            return self.legend
        report = self._seen.observation.report
        shown = {health.state for group in (report.circuits, report.devices) for health in group.values()}
        shown |= self.picture.states
        # The headline shows a run under way by the sign of a degraded component, and the picture the spares it takes.
        words = {State.DEGRADED: "in progress"} if self._seen.under_way and State.DEGRADED not in shown else {}
        shown.update(words)
        width = self.size.width - 2
        line, is_whole = with_states(self._legend(), self._marks, shown, width, words)
        return line if is_whole else with_states(self._legend(short=True), self._marks, shown, width, words)[0]

    def show(self, seen: RecordedLook) -> None:
        """Show an observation; if it is shown already, draw only what has changed."""
        observation = seen.observation
        if self._of is not observation:
            if self._of is None or self._of.inventory is not observation.inventory:
                self._blocks = blocks_of(observation, self._rack)
            self._links = links_of(observation, self._rack)
        self._seen, self._of = seen, observation
        begins = self.chosen not in observation.inventory.accelerators
        if begins:
            self.chosen = self._worst(observation)
        self._draw()
        # Not before the refresh, which gives the picture the height that ``_draw`` has set.
        if begins and self.chosen is not None:
            self.call_after_refresh(self.picture.bring, self.chosen)

    def tick(self) -> None:
        """Update the ages, unless they were updated within the last second."""
        # The difference is negative after the clock was set back; then it is time to draw, too.
        if not 0 <= self._now() - self._drawn_at < TOLD_EACH_S:
            self._draw()

    def on_resize(self) -> None:
        """Draw it in the new size."""
        self.call_after_refresh(self._draw)

    def choose(self, accelerator: str) -> bool:
        """Choose an accelerator and scroll to it; return whether it is in the picture."""
        if accelerator not in self._layout.spots:
            return False
        self.chosen = accelerator
        self._draw()
        self.query_one("#links", PictureWidget).scroll_home(animate=False)
        self.query_one("#rack-details", PictureWidget).scroll_home(animate=False)
        self.picture.bring(accelerator)
        self.post_message(self.Redrawn())
        return True

    def turn_quantity(self) -> None:
        """Show the next quantity."""
        self.quantity = QUANTITIES[(QUANTITIES.index(self.quantity) + 1) % len(QUANTITIES)]
        self._draw()
        self.post_message(self.Redrawn())

    def scroll_links(self, lines: int) -> None:
        """Scroll the links."""
        self.query_one("#links", PictureWidget).scroll_relative(y=lines, animate=False)

    def on_heat_picture_chosen(self, event: HeatPicture.Chosen) -> None:
        """Choose the item that the keys or the mouse selected."""
        event.stop()
        self.choose(event.accelerator)

    def _draw(self) -> None:
        if self._seen is None or not self.is_mounted or not self.size.width:
            return
        observation, width = self._seen.observation, self.size.width
        self._drawn_at = self._now()
        strip = strip_lines(self._seen, self._marks, self._now(), width - 2)
        # Only another number of lines moves what is below; other text needs no layout of the whole screen.
        self.query_one("#strip", Static).update(Text("\n").join(strip), layout=len(strip) != self._strip_lines)
        self._strip_lines = len(strip)
        details = min(max(width - _LEFT, _LEAST_DETAILS), _MOST_DETAILS) if width >= BESIDE_FROM else 0
        # The picture gets the height that the links do not need.
        height = max(self.size.height - len(strip) - 1 - _LEAST_LINKS, _LEAST_HEAT)
        room = (self._blocks, width - details - 2, height)
        if room != self._room:
            self._room, self._layout = room, layout_of(*room)
        if (taken := self._seen.taken) != self._taken:
            self._taken = taken
        drawn = (observation, self.quantity, self._layout, self.chosen, self._taken)
        if any(new is not old for new, old in zip(drawn, self._drawn, strict=True)):  # else only ages have changed
            self._drawn = drawn
            picture = self.picture
            picture.styles.height = min(len(self._layout.lines), height)
            picture.show(Heat(observation, self.quantity, self._marks, self._taken), self._layout, self.chosen)
            self._draw_links(observation, width - details)
        self._draw_details(observation, details)

    def _draw_links(self, observation: Observation, width: int) -> None:
        lines = link_lines(self._links, self.chosen, self._marks)
        columns = max((line.cell_len for line in lines), default=0)
        self.query_one("#links", PictureWidget).show(len(lines), columns, lambda number: lines[number])
        if self.chosen is not None:
            told = summary(observation, self.chosen, self._marks)
            cut_line(told, width, self._marks)
            self.query_one("#chosen", PictureWidget).show(1, told.cell_len, lambda _line: told)

    def _draw_details(self, observation: Observation, width: int) -> None:
        beside = self.query_one("#rack-details", PictureWidget)
        beside.display = bool(width)
        if width and self.chosen is not None:
            beside.styles.width = width
            now = self._now()
            detail = describe(observation, self.chosen, now)
            text = Text().append(f"{self.chosen}\n", "bold")
            if self._seen is not None and (told := self._seen.run_of(self.chosen)):
                text.append(f"{told}\n", STATE_STYLES[State.DEGRADED])
                advice = f"nothing: {told} (6: its steps)"
                detail = replace(detail, findings=tuple(replace(each, advice=advice) for each in detail.findings))
            # Always without the columns of a scroll bar: one that appears would hide the ends of the lines.
            columns = width - 2 * _BESIDE_DETAILS - beside.styles.scrollbar_size_vertical
            text.append_text(detail_text(detail, self._marks, now, self._remembered(self.chosen), columns))
            lines = wrapped(text, columns, VALUE_AT, self.app.console)
            beside.show(len(lines), columns, lambda number: lines[number])

    def _worst(self, observation: Observation) -> str | None:
        """The accelerator to begin with: one that the headline names, else the first of the worst."""
        here = [each.id for block in self._blocks for group in block.by_host for each in group]
        health = observation.report.accelerators
        news = news_of(self._seen) if self._seen is not None else ()
        named = next((each.swaps for each in news if each.swaps), ())
        if named and named[0] in here:
            return named[0]

        def weight(name: str) -> int:
            state = health[name].state if name in health else State.UNKNOWN
            # Out of service is no fault, and nothing to begin with.
            return SEVERITY.index(state) if state is not State.DISABLED else 0

        return max(here, key=weight, default=None)
