"""The output of a host's probes, as text: the names with their results, then one probe's command and lines; pure."""

from typing import TYPE_CHECKING

from rich.text import Text

from lumctl.fleet.readings import ProbeStatus
from lumctl.health.states import HARMLESS, State
from lumctl.printable import counted, one_line, printable
from lumctl.tui.look.marks import QUIET_STYLE, STATE_STYLES, Marks, age

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumctl.fleet.bundle.host_answers import HostAnswer

LAST_LINES = 20
"""The number of lines of a kernel log that are printed if it cannot be scrolled."""
_COMMAND = 150
"""How many characters of a command are shown: that of the counters lists a hundred files."""
_STATES = {ProbeStatus.OK: State.OK, ProbeStatus.ABSENT: State.DISABLED, ProbeStatus.NOT_ASKED: State.DISABLED}


def state_of(answer: "HostAnswer") -> State:
    """The result of a probe: a missing tool is not a fault, and a probe without output is unknown."""
    return _STATES.get(answer.status, State.UNKNOWN)


def lines_of(answer: "HostAnswer", words: str = "") -> list[str]:
    """The lines of a probe's output that contain all of some words, safe to print."""
    wanted = words.lower().split()
    # Tabs first: ``printable`` would write each as an escape.
    lines = (printable(line.expandtabs()) for line in answer.text.splitlines())
    return [line for line in lines if all(word in line.lower() for word in wanted)]


def names_line(answers: "Sequence[HostAnswer]", chosen: int, marks: Marks, *, reading: bool) -> Text:
    """The probes by name, with a mark at those without output, and which one is shown."""
    text = Text()
    for at, answer in enumerate(answers):
        state = state_of(answer)
        mark = "" if state in HARMLESS else marks.glyphs.get(state, "?")
        before, after = "[]" if at == chosen else "  "
        name = Text(f"{before}{mark}{answer.probe.name}{after}", STATE_STYLES[state])
        if at == chosen:
            name.stylize("reverse")
        text.append_text(name)
    return text.append(" reading more" if reading else "", QUIET_STYLE)


def about_lines(answer: "HostAnswer", now: float) -> tuple[str, str]:
    """How a probe ended, and its command, shortened if it is long."""
    status = "did not end" if answer.exit_status is None else f"exit status {answer.exit_status}"
    count = counted(len(answer.text.splitlines()), "lines")
    detail = f": {answer.detail}" if answer.detail else ""
    took = f"{answer.seconds:.2f} s, {age(answer.taken_at, now)} ago"
    return printable(f"{answer.status}{detail}; {status}, {count}, took {took}"), one_line(answer.command, _COMMAND)


def probe_lines(answer: "HostAnswer", now: float, most: int | None = None) -> list[str]:
    """All output of a probe, or its last lines, if it is read aloud or in a pipe."""
    lines = lines_of(answer)
    ended, command = about_lines(answer, now)
    return [f"{answer.probe.name}: {ended}: {command}", *(lines[-most:] if most else lines)]
