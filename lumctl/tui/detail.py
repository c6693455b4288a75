"""The screen of one component; its readings and their ages go on changing while it is open."""

from collections.abc import Callable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from lumctl.tui.bars import Answer, KeyBar, TopBar
from lumctl.tui.details import Detail
from lumctl.tui.keys import DETAIL, bindings
from lumctl.tui.main import PlanWanted
from lumctl.tui.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, duration

_LABEL_WIDTH = 22


class DetailScreen(Screen[None]):
    """Shows what ``describe`` returns, once a second."""

    BINDINGS = bindings(DETAIL)  # type: ignore[assignment]

    def __init__(
        self, component: str, target: str, describe: Callable[[], Detail | None], marks: Marks, now: Callable[[], float]
    ) -> None:
        super().__init__()
        self._component = component
        self._target = target
        self._describe = describe
        self._marks = marks
        self._now = now

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars."""
        yield TopBar(self._component, self._target)
        with VerticalScroll():
            yield Static(id="detail")
        yield Answer()
        yield KeyBar(DETAIL)

    def on_mount(self) -> None:
        """Show it now and each second."""
        self.query_one(VerticalScroll).focus()
        self._show()
        self.set_interval(1.0, self._show)

    def action_back(self) -> None:
        """Go back."""
        self.dismiss()

    def action_plan_swap(self) -> None:
        """Ask for a plan for this component."""
        self.post_message(PlanWanted(self._component))

    def _show(self) -> None:
        if (detail := self._describe()) is not None:
            self.query_one("#detail", Static).update(detail_text(detail, self._marks, self._now()))


def detail_text(detail: Detail, marks: Marks, now: float) -> Text:
    """A component's detail as text: state, findings with their advice, then what was read."""
    text = Text()
    text.append(marks.state(detail.state), style=STATE_STYLES[detail.state])
    text.append(f"  {detail.kind}\n")
    if detail.maintenance:
        _line(text, "in maintenance", detail.maintenance)
    for finding in detail.findings:
        text.append(f"\n{marks.state(finding.state)}", style=STATE_STYLES[finding.state])
        text.append(f"  {finding.rule}", style="bold")
        text.append(f"  for {duration(now - finding.since)}\n", style=QUIET_STYLE)
        _line(text, "evidence", finding.evidence)
        _line(text, "what to do", finding.advice)
        if finding.acknowledged:
            _line(text, "acknowledged", finding.acknowledged)
    for section in detail.sections:
        if section.facts:
            text.append(f"\n{section.heading}\n", style=HEADING_STYLE)
        for label, value in section.facts:
            _line(text, label, value)
    return text


def _line(text: Text, label: str, value: str) -> None:
    text.append(f"  {label:<{_LABEL_WIDTH}}", style=QUIET_STYLE)
    text.append(f" {value}\n")
