"""The screen of a component's readings over time: one of them at a time, from five minutes to seven days."""

from functools import partial

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from lumctl.health.quantities import UNITS
from lumctl.store.packed_hours import Point
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STALE_STYLE, duration
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.history_reader import HistoryAsker, HistoryRead
from lumctl.tui.views.history import History
from lumctl.tui.views.readings import Reading, is_kept, readings_of, shown
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.plot import ZOOMS, Zoom, plot

PLOT_KIND = "plot"
"""The kind of this screen, for messages that open it."""
_OFTEN_S, _RARELY_S = 5.0, 60.0
_FINE_S = 3600.0
"""Up to this span a new point is shown at once."""


class PlotScreen(KeyedScreen[None], keys="plot"):
    """What is kept is read in a thread; what is shown stays until it is there, and continues with the clock."""

    def __init__(self, component: str, context: ScreenContext) -> None:
        super().__init__()
        self._component = component
        self._shared = context
        self._level = 1
        self._chosen = ""
        self._history = History()
        self._read_for: float | None = None
        self._asked_at = 0.0
        self._asker = HistoryAsker(partial(context.sources.readings, component), self.post_message)

    def compose(self) -> ComposeResult:
        """What is shown, and its plot, between the bars."""
        yield TopBar(f"{self._component} over time", self._shared.target)
        yield Static(id="plot-heading", markup=False)
        yield Static(id="plot", markup=False)
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Read, and show what there is each second."""
        self._ask()
        self._show()
        self.set_interval(1.0, self._tick)

    def on_resize(self) -> None:
        """Draw it again."""
        self.call_after_refresh(self._show)

    def action_turn(self, by: int) -> None:
        """Show the next reading, or the one before."""
        if names := self._offered():
            self._chosen = names[(names.index(self._current(names)) + by) % len(names)]
            self._show()

    def action_zoom(self, by: int) -> None:
        """Show more time, or less."""
        zoom = min(max(self._level + by, 0), len(ZOOMS) - 1)
        if zoom != self._level:
            self._level = zoom
            self._ask()
            self._show()

    def on_history_read(self, event: HistoryRead) -> None:
        """Show the readings; a failed read of the store is reported."""
        event.stop()
        self._history, self._read_for = event.history, event.seconds
        trouble = event.history.trouble
        self.query_one(AnswerLine).say(f"could not read the history: {trouble}" if trouble else "")
        self._show()

    @property
    def _zoomed(self) -> Zoom:
        return ZOOMS[self._level]

    def _tick(self) -> None:
        again_s = _OFTEN_S if self._zoomed.seconds <= _FINE_S else _RARELY_S
        if self._shared.now() - self._asked_at >= again_s:
            self._ask()
        self._show()

    def _ask(self) -> None:
        self._asked_at = self._shared.now()
        self._asker.ask(self._zoomed.seconds)

    def _offered(self) -> list[str]:
        found = {series.name for series in self._history.series} | {reading.name for reading in self._readings()}
        return [name for name in UNITS if name in found]

    def _current(self, names: list[str]) -> str:
        return self._chosen if self._chosen in names else names[0]

    def _readings(self) -> tuple[Reading, ...]:
        seen = self._shared.seen()
        return readings_of(seen.observation, self._component) if seen is not None else ()

    def _show(self) -> None:
        names, now = self._offered(), self._shared.now()
        heading, drawing = self.query_one("#plot-heading", Static), self.query_one("#plot", Static)
        if not names:
            heading.update(Text(self._why_nothing()))
            drawing.update("")
            return
        name = self._current(names)
        reading = next((each for each in self._readings() if each.name == name), None)
        points = [each for each in self._history.of(name) if now - self._zoomed.seconds < each.at + each.span_s]
        heading.update(self._heading(names, name, reading, points, now))
        if points and drawing.size.width:
            limits = reading.limits if reading else ()
            size = (drawing.size.width, drawing.size.height)
            ascii_only = self._shared.marks.ascii_only
            drawing.update(plot(points, now, self._zoomed, limits, UNITS[name], size, ascii_only=ascii_only))
        else:
            is_reading = self._read_for != self._zoomed.seconds
            why = (
                "" if is_reading else f"no reading in the last {self._zoomed.words}: lumctl watch keeps them as it runs"
            )
            drawing.update(Text(why, style=QUIET_STYLE))

    def _heading(self, names: list[str], name: str, reading: Reading | None, points: list[Point], now: float) -> Text:
        unit = UNITS[name]
        text = Text()
        text.append(f"{name}{f' in {unit}' if unit else ''}", style=HEADING_STYLE)
        text.append(f"  {names.index(name) + 1} of {len(names)}", style=QUIET_STYLE)
        text.append(
            f"  now {shown(reading.value, unit) if reading else '-'}  last {self._zoomed.words}", style="not bold"
        )
        if self._read_for != self._zoomed.seconds:
            text.append("  reading...", style=STALE_STYLE)
        elif points:
            newest = points[-1].at + points[-1].span_s
            text.append(f"  newest {duration(now - newest)} ago", style=QUIET_STYLE)
        return text

    def _why_nothing(self) -> str:
        if self._read_for is None:
            return "reading..."
        seen = self._shared.seen()
        if seen is not None and not is_kept(seen.observation, self._component):
            return f"{self._component} has no readings over time: only accelerators and transponders have"
        return "no reading of it is kept, and there is none now: lumctl watch keeps them as it runs"
