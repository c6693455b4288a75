"""The screen of readings over time: of one component or several, one reading or several, five minutes to seven days."""

from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from lumctl.health.quantities import UNITS
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STALE_STYLE, duration
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.readers import HistoryAsker, HistoryRead
from lumctl.tui.views.incidents import named
from lumctl.tui.views.plot_curves import Curves, curves_of, events_of, siblings_of
from lumctl.tui.views.readings import is_kept, readings_of
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.plot import ZOOMS, Zoom, curve_style, letter_of, plot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lumctl.tui.views.history import History

PLOT_KIND = "plot"
"""The kind of this screen, for messages that open it; the key is names of components with spaces between."""
_OFTEN_S, _RARELY_S = 5.0, 60.0
_FINE_S = 3600.0
"""Plots up to this span are read again every ``_OFTEN_S``, longer ones every ``_RARELY_S``."""


class PlotScreen(KeyedScreen[None], keys="plot"):
    """Reads the history in a thread; the present plot remains until the new one is there, and moves with the clock."""

    def __init__(self, components: tuple[str, ...], context: ScreenContext) -> None:
        super().__init__()
        self._given = self._components = components
        self._shared = context
        self._level = 1
        self._chosen = ""
        self._added: tuple[str, ...] = ()
        self._histories: Mapping[str, History] = {}
        self._read_for: tuple[tuple[str, ...], float] | None = None
        self._asked_at = 0.0
        self._drawn_size = (0, 0)
        self._asker = HistoryAsker(context.sources.readings, self.post_message)

    def compose(self) -> ComposeResult:
        """The displayed readings, and their plot, between the bars."""
        yield TopBar(f"{named(self._given)} over time", self._shared.target)
        yield Static(id="plot-heading", markup=False)
        yield Static(id="plot", markup=False)
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Start reading, and draw each second."""
        self._ask()
        self._show()
        self.set_interval(1.0, self._tick)

    def on_resize(self) -> None:
        """Draw in the new size."""
        self.call_after_refresh(self._show)

    def action_turn(self, by: int) -> None:
        """Show the next or the previous reading."""
        if names := self._offered():
            self._chosen = names[(names.index(self._current(names)) + by) % len(names)]
            self._show()

    def action_add(self) -> None:
        """Keep the reading in the plot while others are selected, or remove it again."""
        if names := self._offered():
            name = self._current(names)
            self._added = tuple(n for n in self._added if n != name) if name in self._added else (*self._added, name)
            told = "kept in the plot: select others with ]" if name in self._added else "no longer kept in the plot"
            self.query_one(AnswerLine).say(f"{name} {told}")
            self._show()

    def action_turn_siblings(self) -> None:
        """Also show the others of its host, or it alone again."""
        seen = self._shared.seen()
        siblings = siblings_of(seen.observation, self._given[0]) if seen is not None else self._given
        if len(self._given) > 1 or len(siblings) == 1:
            self.query_one(AnswerLine).say("its host has no other readings to show")
            return
        self._components = siblings if self._components == self._given else self._given
        self._ask()
        self._show()

    def action_zoom(self, by: int) -> None:
        """Show more time, or less."""
        zoom = min(max(self._level + by, 0), len(ZOOMS) - 1)
        if zoom != self._level:
            self._level = zoom
            self._ask()
            self._show()

    def on_history_read(self, event: HistoryRead) -> None:
        """Show the readings, or report that the store could not be read."""
        event.stop()
        # The answer may belong to an earlier request: the operator has zoomed since.
        self._histories, self._read_for = event.histories, (tuple(event.histories), event.seconds)
        if event.trouble:
            self.query_one(AnswerLine).say(f"could not read the history: {event.trouble}")
        self._show()

    @property
    def _zoomed(self) -> Zoom:
        return ZOOMS[self._level]

    @property
    def _is_read(self) -> bool:
        return self._read_for == (self._components, self._zoomed.seconds)

    def _tick(self) -> None:
        again_s = _OFTEN_S if self._zoomed.seconds <= _FINE_S else _RARELY_S
        if self._shared.now() - self._asked_at >= again_s:
            self._ask()
        self._show()

    def _ask(self) -> None:
        self._asked_at = self._shared.now()
        self._asker.ask(self._components, self._zoomed.seconds)

    def _offered(self) -> list[str]:
        seen = self._shared.seen()
        found = {series.name for history in self._histories.values() for series in history.series}
        if seen is not None:
            found |= {reading.name for each in self._components for reading in readings_of(seen.observation, each)}
        return [name for name in UNITS if name in found]

    def _current(self, names: list[str]) -> str:
        return self._chosen if self._chosen in names else names[0]

    def _shown(self, names: list[str]) -> tuple[str, ...]:
        """The readings in the plot: those that are kept there, and the one that is selected."""
        current = self._current(names)
        return tuple(name for name in names if name == current or name in self._added)

    def _show(self) -> None:
        names, now, seen = self._offered(), self._shared.now(), self._shared.seen()
        heading, drawing = self.query_one("#plot-heading", Static), self.query_one("#plot", Static)
        if not names:
            heading.update(Text(self._why_nothing()))
            drawing.update("")
            return
        observation, start = seen.observation if seen is not None else None, now - self._zoomed.seconds
        found = curves_of(observation, self._histories, self._components, self._shown(names), start)
        heading.update(self._heading(names, found, now))
        self._drawn_size = (drawing.size.width, drawing.size.height)
        # The heading just set may have more lines than before, which the plot's size shows only after a layout.
        self.call_after_refresh(self._fit)
        if any(curve.points for curve in found.curves) and drawing.size.width:
            ascii_only = self._shared.marks.ascii_only
            events = events_of(seen, self._components, start) if seen is not None else ()
            zoom, size = self._zoomed, self._drawn_size
            drawing.update(plot(found.curves, now, zoom, found.unit, size, events=events, ascii_only=ascii_only))
        else:
            why = f"no reading in the last {self._zoomed.words}: lumctl watch stores readings while it runs"
            drawing.update(Text(why if self._is_read else "", style=QUIET_STYLE))

    def _fit(self) -> None:
        """Draw it again if the heading has left it another size."""
        size = self.query_one("#plot", Static).size
        if (size.width, size.height) != self._drawn_size:
            self._show()

    def _heading(self, names: list[str], found: Curves, now: float) -> Text:
        shown, curves = self._shown(names), found.curves
        text = Text()
        unit = f" in {found.unit}" if found.unit else ""
        text.append(f"{', '.join(shown)}{unit}", style=HEADING_STYLE)
        if len({UNITS[name] for name in shown}) > 1:
            text.append(" of each one's scale", style=QUIET_STYLE)
        text.append(f"  {names.index(self._current(names)) + 1} of {len(names)}", style=QUIET_STYLE)
        value = f"  now {curves[0].now}" if len(curves) == 1 else ""
        text.append(f"{value}  last {self._zoomed.words}", style="not bold")
        if not self._is_read:
            text.append("  reading...", style=STALE_STYLE)
        elif newest := max((p.at + p.span_s for curve in curves for p in curve.points[-1:]), default=0):
            text.append(f"  newest {duration(now - newest)} ago", style=QUIET_STYLE)
        if len(curves) > 1:
            text.append("\n")
            for number, curve in enumerate(curves):
                text.append(f"{letter_of(number)} {curve.label}", style=curve_style(number))
                text.append(f" {curve.now}   ")
            if found.omitted:
                text.append(f"and {found.omitted} more, not drawn", style=QUIET_STYLE)
        return text

    def _why_nothing(self) -> str:
        if self._read_for is None:
            return "reading..."
        seen = self._shared.seen()
        if seen is not None and not any(is_kept(seen.observation, each) for each in self._components):
            return f"{named(self._given)} has no readings over time: only accelerators and transponders have"
        return "no stored reading, and none now: lumctl watch stores readings while it runs"
