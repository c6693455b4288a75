"""All that is known of a component as text: state, findings with their advice, readings as bars with their history."""

from rich.text import Text

from lumctl.health.states import Finding
from lumctl.tui.look.marks import (
    HEADING_STYLE,
    QUIET_STYLE,
    STALE_STYLE,
    STATE_STYLES,
    Marks,
    age,
    duration,
)
from lumctl.tui.views.history import History
from lumctl.tui.views.readings import Reading, shown
from lumctl.tui.views.sections import Detail, Section
from lumctl.tui.widgets.gauges import gauge, share_of, sparkline

_LABEL, _VALUE, _AGE = 18, 9, 7
VALUE_AT = 2 + _LABEL + 1
"""The column in which a value begins."""
_ROOMY = 72
"""From how many columns a reading has its limit in words and its age."""
_MOST_GAUGE, _MOST_LINE = 40, 60
LINE_S = 900.0
"""The time span of the lines next to the readings."""
IN_WORDS = 0
"""In place of a width: no bars, a reading is a sentence."""


def detail_text(detail: Detail, marks: Marks, now: float, history: History | None = None, width: int = 76) -> Text:
    """A component's detail: state, findings with their advice, then the readings, now and earlier."""
    text = Text()
    text.append(marks.state(detail.state), style=STATE_STYLES[detail.state])
    text.append(f"  {detail.kind}\n")
    if detail.maintenance:
        add_fact(text, "in maintenance", detail.maintenance)
    for said in detail.acknowledgements:
        add_fact(text, "acknowledged", said)
    for finding in detail.findings:
        text.append("\n")
        about = "" if finding.component == detail.id else f"{finding.component}: "
        add_finding(text, finding, marks, now, about=about)
    limits = (len(_limit_words(reading)) for section in detail.sections for reading in section.readings)
    lines = _ReadingLines(marks, now, history or History(), width, max(limits, default=0))
    bars_before = False
    for section in detail.sections:
        if section.facts or section.readings:
            gap = "" if bars_before and section.readings else "\n"
            text.append(f"{gap}{section.heading}\n", style=HEADING_STYLE)
        bars_before = bool(section.readings)
        for reading in section.readings:
            lines.add_reading(text, reading, is_stale=now - reading.at > section.stale_after_s)
        lines.add_processes(text, section)
        for label, value in section.facts:
            add_fact(text, label, value)
    return text


class _ReadingLines:
    """Each reading in one line: name, value, bar, nearest limit, last minutes, age; in less space without the words."""

    def __init__(self, marks: Marks, now: float, history: History, width: int, limit_width: int) -> None:
        self._marks = marks
        self._now = now
        self._history = history
        self._in_words = width == IN_WORDS
        self._roomy = width >= _ROOMY
        self._limit = limit_width
        # 5: the two characters before the label, and one after each of label, value and bar.
        left = width - _LABEL - _VALUE - 5 - (limit_width + _AGE + 2 if self._roomy else 1)
        self._gauge = max(min(left // 2, _MOST_GAUGE), 1)
        self._line = max(min(left - self._gauge, _MOST_LINE), 1)

    def add_reading(self, text: Text, reading: Reading, *, is_stale: bool) -> None:
        old = age(reading.at, self._now)
        words = _limit_words(reading)
        text.append(f"  {reading.name:<{_LABEL}} ", style=QUIET_STYLE)
        if self._in_words:
            mean = f"mean of {duration(reading.over_s)}" if reading.over_s else ""
            stale = "too old to rely on" if is_stale else ""
            text.append(", ".join(filter(None, (reading.text, words, mean, f"{old} old", stale))) + "\n")
            return
        text.append(f"{reading.text:>{_VALUE}} ")
        text.append_text(self._bar(reading)).append(" ")
        line = sparkline(
            self._history.of(reading.name),
            self._now,
            seconds=LINE_S,
            width=self._line,
            scale=(reading.low, reading.high),
            ascii_only=self._marks.ascii_only,
        )
        if self._roomy:
            text.append(f"{words:<{self._limit}} ", style=QUIET_STYLE).append(line)
            said = f" {f'{old} !' if is_stale else old:>{_AGE}}"
        else:
            text.append(line)
            said = "!" if is_stale else ""
        text.append(f"{said}\n", style=STALE_STYLE if is_stale else QUIET_STYLE)

    def _bar(self, reading: Reading) -> Text:
        if reading.high is None:
            return Text(" " * self._gauge)
        limits = [share_of(limit.value, reading.low, reading.high) for limit in reading.limits]
        share = share_of(reading.value, reading.low, reading.high)
        # Of temperatures only: other limits are what a part can do at most, which a busy GPU should reach.
        hot = reading.unit == "C" and any(reading.value >= limit.value for limit in reading.limits)
        style = STALE_STYLE if hot else ""
        return gauge(share, limits, self._gauge, ascii_only=self._marks.ascii_only, style=style)

    def add_processes(self, text: Text, section: Section) -> None:
        """Each process with the memory that it holds, as a share of the whole."""
        for process in section.processes:
            memory = "unknown" if process.memory_mib is None else shown(process.memory_mib, "MiB")
            text.append(f"  {f'pid {process.pid}':<{_LABEL}} ", style=QUIET_STYLE)
            if self._in_words:
                text.append(f"{process.name}, memory {memory}\n")
                continue
            text.append(f"{memory:>{_VALUE}} ")
            if process.memory_mib is None or not section.memory_mib:
                text.append(" " * self._gauge)
            else:
                share = share_of(process.memory_mib, 0.0, section.memory_mib)
                text.append_text(gauge(share, (), self._gauge, ascii_only=self._marks.ascii_only))
            text.append(f" {process.name}\n")


def _limit_words(reading: Reading) -> str:
    limit = reading.nearest
    return f"{limit.words} {shown(limit.value, reading.unit)}" if limit is not None else ""


def add_finding(
    text: Text, finding: Finding, marks: Marks, now: float, label_width: int = _LABEL, about: str = ""
) -> None:
    """Append a finding: its state, rule and duration, then its evidence, its advice and who acknowledged it."""
    text.append(marks.state(finding.state), style=STATE_STYLES[finding.state])
    text.append(f"  {about}{finding.rule}", style="bold")
    text.append(f"  for {duration(now - finding.since)}\n", style=QUIET_STYLE)
    add_fact(text, "evidence", finding.evidence, label_width)
    add_fact(text, "what to do", finding.advice, label_width)
    if finding.acknowledged:
        add_fact(text, "acknowledged", finding.acknowledged, label_width)


def add_fact(text: Text, label: str, value: str, label_width: int = _LABEL) -> None:
    """Append a line with a label and a text."""
    text.append(f"  {label:<{label_width}}", style=QUIET_STYLE)
    text.append(f" {value}\n")
