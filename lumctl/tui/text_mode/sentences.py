"""What is told in plain lines: first how everything is, then what has changed. Pure functions of what was seen."""

from collections.abc import Iterator

from lumctl.counts import counted
from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import AGE, Pane
from lumctl.tui.views.records import Seen

WORDS = Marks({}, ascii_only=True)
"""Marks for the ear: a state is its word."""


def summary(seen: Seen) -> Iterator[str]:
    """How everything is, one sentence a line, what is wrong last and by name."""
    observation = seen.observation
    hosts = observation.snapshot.hosts
    answered = sum(host.reachable for host in hosts.values())
    yield f"{answered} of {counted(len(observation.inventory.hosts), 'hosts')} answered."
    for group, members in observation.report.groups().items():
        if not members:
            continue
        wrong = [name for name, health in members.items() if health.state not in {State.OK, State.DISABLED}]
        if wrong:
            verb = "is" if len(wrong) == 1 else "are"
            yield f"{len(wrong)} of {counted(len(members), group)} {verb} not well: {', '.join(wrong)}."
        else:
            yield f"{group.capitalize()}: {len(members)}, none of them in trouble."
    for finding in observation.report.findings():
        yield f"{finding.component} is {finding.state}: {finding.evidence}. What to do: {finding.advice}."


def changes(before: Seen, after: Seen) -> Iterator[str]:
    """What is otherwise than it was, one sentence a line; nothing where all is as before."""
    old, new = before.observation.report, after.observation.report
    for group, members in new.groups().items():
        for name, health in members.items():
            earlier = old.groups()[group].get(name)
            if earlier is None or earlier.state == health.state:
                continue
            why = f": {health.findings[0].evidence}" if health.findings else ""
            yield f"{name} is {health.state}, was {earlier.state}{why}."
    silent = {name for name, host in before.observation.snapshot.hosts.items() if not host.reachable}
    for name, host in after.observation.snapshot.hosts.items():
        if host.reachable == (name in silent):
            yield f"{name} {'answers again' if host.reachable else 'does not answer'}."
    states = {(run.rack, run.id): run.state for run in before.records.runs}
    for run in after.records.runs:
        if states.get((run.rack, run.id)) != run.state:
            yield f"{run.id} is {run.state}: {run.title}."


def pane_lines(pane: Pane, seen: Seen, words: str = "") -> Iterator[str]:
    """The rows of a table of the dashboard that hold some words, each in one line with the names of its columns."""
    rows = [row for row in pane.rows(seen, WORDS) if row.matches(words.lower().split())]
    yield f"{pane.count(len(rows))}." if rows else f"No {pane.noun}."
    headings = [column.heading.lower() for column in pane.columns if column.key != AGE]
    for row in rows:
        texts = (" ".join(cell.text.split()) for cell in row.cells)
        said = zip(headings, texts, strict=True)
        yield ", ".join(f"{heading} {text}".strip() for heading, text in said if text not in {"", "-"}) + "."
