"""The screen of one component; its readings and their ages continue changing while it is open."""

from collections.abc import Callable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STALE_STYLE, STATE_STYLES, Marks, age, duration
from lumctl.tui.screens.main import PlanWanted, Wanted
from lumctl.tui.screens.plot import PLOT_KIND
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.threads.history_reader import HistoryAsker, HistoryRead
from lumctl.tui.views.details import Detail, Section
from lumctl.tui.views.history import History
from lumctl.tui.views.readings import shown
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.sparkline import sparkline

_LABEL_WIDTH = 22
_NAME_WIDTH, _VALUE_WIDTH, _LINE_WIDTH = 18, 10, 15
_LINE_S = 900.0
_READ_AGAIN_S = 5.0


class DetailScreen(KeyedScreen[None], keys="facts"):
    """Shows the result of ``describe``, once a second, beside the last minutes from ``read``."""

    def __init__(
        self,
        component: str,
        target: str,
        describe: Callable[[], Detail | None],
        read: Callable[[float], History],
        marks: Marks,
        now: Callable[[], float],
    ) -> None:
        super().__init__()
        self._component = component
        self._target = target
        self._describe = describe
        self._marks = marks
        self._now = now
        self._history = History()
        self._asker = HistoryAsker(read, self.post_message)

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars."""
        yield TopBar(self._component, self._target)
        with VerticalScroll():
            yield Static(id="detail")
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Show it now and each second."""
        self.query_one(VerticalScroll).focus()
        self._show()
        self.set_interval(1.0, self._show)
        self._ask()
        self.set_interval(_READ_AGAIN_S, self._ask)

    def action_plan_swap(self) -> None:
        """Plan for this component; if that is not possible, the answer has the reason."""
        self.post_message(PlanWanted(self._component))

    def action_plot(self) -> None:
        """Show the readings over time."""
        self.post_message(Wanted(PLOT_KIND, self._component))

    def on_history_read(self, event: HistoryRead) -> None:
        """Show earlier readings; a failed read of the store is reported."""
        event.stop()
        self._history = event.history
        if event.history.trouble:
            self.query_one(AnswerLine).say(f"could not read the history: {event.history.trouble}")
        self._show()

    def _ask(self) -> None:
        self._asker.ask(_LINE_S)

    def _show(self) -> None:
        if (detail := self._describe()) is not None:
            text = detail_text(detail, self._marks, self._now(), self._history)
            self.query_one("#detail", Static).update(text)


class TransponderScreen(DetailScreen, keys="transponder"):
    """The same of a component that is measured: its history is offered."""


class AcceleratorScreen(DetailScreen, keys="accelerator"):
    """The same of one in whose place a spare can be put: that is offered too."""


def detail_text(detail: Detail, marks: Marks, now: float, history: History | None = None) -> Text:
    """A component's detail as text: state, findings with their advice, then what was read, now and before."""
    text = Text()
    text.append(marks.state(detail.state), style=STATE_STYLES[detail.state])
    text.append(f"  {detail.kind}\n")
    if detail.maintenance:
        _line(text, "in maintenance", detail.maintenance)
    for said in detail.acknowledgements:
        _line(text, "acknowledged", said)
    for finding in detail.findings:
        text.append(f"\n{marks.state(finding.state)}", style=STATE_STYLES[finding.state])
        text.append(f"  {finding.rule}", style="bold")
        text.append(f"  for {duration(now - finding.since)}\n", style=QUIET_STYLE)
        _line(text, "evidence", finding.evidence)
        _line(text, "what to do", finding.advice)
        if finding.acknowledged:
            _line(text, "acknowledged", finding.acknowledged)
    for section in detail.sections:
        if section.facts or section.readings:
            text.append(f"\n{section.heading}\n", style=HEADING_STYLE)
        _reading_lines(text, section, history or History(), marks, now)
        for label, value in section.facts:
            _line(text, label, value)
    return text


def _reading_lines(text: Text, section: Section, history: History, marks: Marks, now: float) -> None:
    """Each reading in one line: name, value, the last minutes, its age, and the limit that is nearest to it."""
    for reading in section.readings:
        points = history.of(reading.name)
        line = sparkline(points, now, seconds=_LINE_S, width=_LINE_WIDTH, ascii_only=marks.ascii_only)
        is_stale = now - reading.at > section.stale_after_s
        text.append(f"  {reading.name:<{_NAME_WIDTH}}", style=QUIET_STYLE)
        text.append(f" {reading.text:>{_VALUE_WIDTH}} {line} ")
        old = f"{age(reading.at, now)}{' !' if is_stale else ''}"
        text.append(f"{old:>7} ", style=STALE_STYLE if is_stale else QUIET_STYLE)
        if (limit := reading.nearest) is not None:
            text.append(f" {limit.words} {shown(limit.value, reading.unit)}", style=QUIET_STYLE)
        text.append("\n")


def _line(text: Text, label: str, value: str) -> None:
    text.append(f"  {label:<{_LABEL_WIDTH}}", style=QUIET_STYLE)
    text.append(f" {value}\n")
