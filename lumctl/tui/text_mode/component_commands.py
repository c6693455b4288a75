"""Commands about one component: its readings over time, its host's output and shell, a ticket, the last runbook."""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping

from lumctl.errors import UsageError
from lumctl.runbook.ticket import ticket_text
from lumctl.store.packed_hours import Point
from lumctl.time_text import length_s
from lumctl.tui.look.marks import clock, duration
from lumctl.tui.sources import Sources
from lumctl.tui.views.detail_text import LINE_S
from lumctl.tui.views.host_output import LAST_LINES, probe_lines
from lumctl.tui.views.plot_curves import events_of
from lumctl.tui.views.readings import is_kept, readings_of, shown
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.subject import WorkSubject

WorkLines = Callable[[RecordedLook, Sources, str, float], Iterator[str]]
"""Lines about the named component, from the newest observation and the readers, at a time (seconds since the epoch)."""


def _history(seen: RecordedLook, sources: Sources, words: str, now: float) -> Iterator[str]:
    """The answer to ``COMPONENT [DURATION]``: each reading with its least, mean and greatest; then the incidents.

    Raises:
        UsageError: the duration is not valid.
    """
    component, _, span = words.partition(" ")
    if not component:
        yield "Type history, the name of an accelerator or a transponder, and a time: history NAME 6h."
        return
    if not is_kept(seen.observation, component):
        yield f"{component} has no readings over time: only accelerators and transponders have."
        return
    seconds = length_s(span) if span else LINE_S
    history = sources.readings(component, seconds)
    if history.trouble:
        yield f"The history could not be read: {history.trouble}."
    current = {reading.name: reading.text for reading in readings_of(seen.observation, component)}
    since = now - seconds
    kept = {each.name: [p for p in each.points if p.at + p.span_s > since] for each in history.series}
    for series in history.series:
        if points := kept[series.name]:
            yield f"{series.name}: now {current.get(series.name, 'unknown')}; {_extent(points, series.unit)}."
    if not any(kept.values()):
        yield (
            f"The last {duration(seconds)} contain no stored reading of {component}: lumctl watch stores readings "
            "while it runs."
        )
    for event in events_of(seen, (component,), since):
        yield f"Since {clock(event.at, now)}: {event.text}."


def _extent(points: list[Point], unit: str) -> str:
    lit = [point.mean for point in points if math.isfinite(point.mean)]
    low, high = min(point.low for point in points), max(point.high for point in points)
    mean = f", mean {shown(round(sum(lit) / len(lit), 1), unit)}" if lit else ""
    return f"from {shown(round(low, 1), unit)} to {shown(round(high, 1), unit)}{mean}"


def _kernel(seen: RecordedLook, sources: Sources, words: str, now: float) -> Iterator[str]:
    # The kernel log comes first, and the probes after it are not run: the answers are read one by one.
    answer = next(iter(sources.host_output(_host(seen, words))), None)
    # A host without a shell, or with a plug-in's probes, has no kernel log: its first answer is another one.
    if answer is None or answer.probe.name != "kernel":
        yield "It has no kernel log."
    else:
        yield from probe_lines(answer, now, LAST_LINES)


def _probes(seen: RecordedLook, sources: Sources, words: str, now: float) -> Iterator[str]:
    for answer in sources.host_output(_host(seen, words)):
        yield probe_lines(answer, now)[0]


def _probe(seen: RecordedLook, sources: Sources, words: str, now: float) -> Iterator[str]:
    name, _, probe = words.partition(" ")
    found = []
    for answer in sources.host_output(_host(seen, name)):
        if answer.probe.name == probe.strip():
            yield from probe_lines(answer, now)
            return
        found.append(answer.probe.name)
    yield f"It has no probe {probe.strip() or 'without a name'}; its probes: {', '.join(found)}."


def _shell(seen: RecordedLook, sources: Sources, words: str, _: float) -> Iterator[str]:
    yield f"In a terminal, type: {shlex.join(sources.shell(_host(seen, words)))}"


def _scheduler(_: RecordedLook, sources: Sources, words: str, __: float) -> Iterator[str]:
    facts = sources.scheduled(words)
    yield from (f"{label}: {said}." for label, said in facts)
    if not facts:
        yield "No job in the inventory is run by a scheduler, or the name is neither an accelerator nor a host."


def _ticket(seen: RecordedLook, _: Sources, words: str, __: float) -> Iterator[str]:
    if not any(words in group for group in seen.observation.report.groups().values()):
        raise UsageError(f"no component is called {words!r}", hint="type ticket and the name of a component")
    # A screen reader would speak the time of each empty line.
    yield from filter(None, ticket_text(seen.observation, words, seen.records.runs).splitlines())


def _runbook(seen: RecordedLook, _: Sources, words: str, __: float) -> Iterator[str]:
    run = WorkSubject(words).last_run(seen)
    if run is None:
        yield f"No run has changed {words or 'a component without a name'}."
    else:
        yield f"{run} was the last run that changed it. Its runbook: lumctl runbook show {run.rpartition('/')[2]}"


def _host(seen: RecordedLook, name: str) -> str:
    if (host := WorkSubject(name).host(seen)) is None:
        raise UsageError(f"{name or 'a word'} is on no host", hint="give a host, an accelerator or a link")
    return host


WORK_COMMANDS: Mapping[str, tuple[str, WorkLines]] = {
    "history": ("history NAME shows each reading over the last 15 minutes; history NAME 6h over 6 hours.", _history),
    "kernel": (f"kernel HOST shows the last {LAST_LINES} lines of its kernel log.", _kernel),
    "probes": ("probes HOST shows the command of each probe and how it ended.", _probes),
    "probe": ("probe HOST NAME shows all output of one probe.", _probe),
    "shell": ("shell HOST shows the command that opens a shell there.", _shell),
    "scheduler": ("scheduler NAME shows the Slurm jobs on an accelerator or a host.", _scheduler),
    "ticket": ("ticket COMPONENT shows a ticket text about it.", _ticket),
    "runbook": ("runbook COMPONENT shows the last run that changed it.", _runbook),
}
"""The action of each command, with its line for the help."""
