"""What is printed of a recovery: in a pipe, wide, and in ASCII."""

import re
import sys
from io import StringIO

import pytest

from lumctl.cli.demo import print_recovery
from lumctl.cli.output import Output, OutputFormat
from lumctl.training.timeline import KnownBy, Timeline

TIMES = {"detected": 0.002, "held": 0.009, "planned": 0.06, "circuits": 0.08, "verified": 0.13, "joined": 0.16}


def recovered(slower=1.0):
    times = {name: at * slower for name, at in {**TIMES, "step": 0.19}.items()}
    return Timeline.since(0.0, KnownBy.KILL, times, job="train")


class Terminal(StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def on_terminal(monkeypatch):
    """What is printed on a terminal of so many columns."""

    def shown(columns, print_it):
        terminal = Terminal()
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys, "stdout", terminal)
        print_it()
        return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())

    return shown


def test_a_pipe_gets_the_figures_and_plain_columns(capsys):
    print_recovery(Output(), recovered())
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "failure -> circuits verified: 130 ms (published: 1.1 s)",
        "failure -> next step done: 190 ms (published: 25.6 s)",
        "the time of the failure is known from its kill",
    ]
    assert lines[5].split() == ["WHAT", "FROM", "UNTIL"]
    assert "circuits programmed     60 ms   80 ms" in lines
    assert "published: Morphlux, figure 8c (arXiv 2508.03674v3)" in lines
    assert "first iteration done          16.6 s  25.6 s" in lines


def test_wide_has_bars_in_order(capsys):
    print_recovery(Output(OutputFormat.WIDE), recovered())
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if "━" in line]
    assert len(rows) == 8 + 5
    heading = next(line for line in lines if line.startswith("WHAT"))
    assert heading.split()[3:] == ["t0", "10ms", "100ms", "1s", "10s", "100s"]
    proved = next(line for line in rows if line.startswith("every receiver proved"))
    assert heading.index("10ms") < proved.index("━") < heading.index("100ms") < proved.rindex("━") < heading.index("1s")


@pytest.mark.parametrize("how", [OutputFormat.TABLE, OutputFormat.WIDE])
def test_of_a_failure_nothing_came_of_there_is_nothing_to_draw(capsys, how):
    print_recovery(Output(how), Timeline.since(0.0, KnownBy.KILL, {}))
    assert "failure -> next step done: - (published: 25.6 s)\n" in capsys.readouterr().out


def test_without_a_swap_the_figure_is_a_dash(capsys):
    print_recovery(Output(), Timeline.since(0.0, KnownBy.DETECTION, {"step": 0.1}))
    out = capsys.readouterr().out
    assert "failure -> circuits verified: - (published: 1.1 s)\n" in out
    assert "the time of the failure is known from its detection" in out


@pytest.mark.parametrize("columns", [60, 72, 80, 100, 140])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_terminal_of_any_width_has_a_row_a_line(on_terminal, columns, ascii_only):
    shown = on_terminal(columns, lambda: print_recovery(Output(ascii_only=ascii_only), recovered(2)))
    lines = shown.splitlines()[3:]
    assert max(map(len, lines)) <= columns
    rows = [line for line in lines if re.match(r"step done again\s.*ms", line)]
    assert len(rows) == 1
    if columns >= 80:
        assert ("=" if ascii_only else "━") in rows[0]
    if ascii_only:
        assert shown.isascii()
    measured = "\n".join(lines).partition("published: ")[0].splitlines()
    assert sum(" ms " in f"{line} " for line in measured) == 8
