"""The dashboard in plain lines: told once, then only what changes; asked in words; on a terminal and in pipes."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from lumctl.cli.top.plain import lines_of
from lumctl.errors import LumctlError, RolledBackError
from lumctl.health.states import State
from lumctl.tui.actions import Acts
from lumctl.tui.panes import PANES
from lumctl.tui.sources import Sources
from lumctl.tui.text_mode.session import END, TextSession, changes, summary
from lumctl.tui.threads.collector import Observed, ObserveFailed
from lumctl.tui.views.records import RecordedLook

LOST = "r1-h2-g1"
# The stage's session on the standard streams.
HERE = Path(__file__).parent
FOLDERS = f"{HERE}:{HERE.parent / 'contract'}"
"""Where the program finds the stage."""
PROGRAM = """
import sys
sys.path[:0] = sys.argv[1].split(":")
from conftest import Stage
from lumctl.cli.top import plain as top_plain
from lumctl.cli.invocation import Invocation
from lumctl.tui.actions import Acts
from lumctl.tui.sources import Sources

stage = Stage()
stage.may_end.set()
cx = Invocation.compose({}, {"target": "sim"})
object.__setattr__(cx, "inventory", stage.observe().inventory)
session = top_plain.plain_session(cx, Sources(stage.observe), Acts(stage.plan, stage.apply), 3600)
session.run()
if session.applying.under_way:
    session.applying.outcome()
"""


def talk(stage, *lines, until=END):
    """What is said to these lines of input; the clock is cut off each."""
    said = []
    session = TextSession(
        Sources(stage.observe, lambda: stage.records),
        stage_acts(stage),
        racks=["r1"],
        target=stage.target,
        say=said.append,
        interval_s=3600,
        now=lambda: stage.now,
    )
    for line in (*lines, until):
        session.hear(line)
    session.run()
    if session.applying.under_way:
        session.applying.outcome()
    return [line.partition(" ")[2] for line in said], session


def stage_acts(stage):
    return Acts(stage.plan, stage.apply, stage.forbidden)


def test_first_everything_is_told_in_sentences(stage):
    said, _ = talk(stage)
    assert said[0] == "lumctl r1, target sim. Type help and enter for what can be asked."
    assert "4 of 4 hosts answered." in said
    assert "1 of 16 accelerators is not well: r1-h2-g1." in said
    assert f"{LOST} is failed: nvidia-smi does not list it; XID 79: GPU has fallen off the bus. " in "\n".join(said)


def test_then_only_what_changes(kit):
    well, failed = RecordedLook(kit.observation(failed=None)), RecordedLook(kit.observation(at=kit.START + 2))
    assert list(changes(well, well)) == []
    said = list(changes(well, failed))
    assert said[0].startswith(f"{LOST} is failed, was ok: nvidia-smi does not list it")
    assert f"{LOST} is ok, was failed." in list(changes(failed, well))
    assert "r1-h1 does not answer." in list(changes(well, RecordedLook(kit.unreachable(well.observation))))
    assert "r1-h1 answers again." in list(changes(RecordedLook(kit.unreachable(well.observation)), well))
    assert next(changes(well, RecordedLook(well.observation, kit.records()))).startswith("swap-0007 is done: ")


def test_every_line_bears_its_time_and_no_mark(stage, kit):
    said = []
    session = TextSession(
        Sources(stage.observe, kit.records),
        stage_acts(stage),
        racks=["r1"],
        target="sim",
        say=said.append,
        interval_s=3600,
    )
    words = ["help", *(pane.id for pane in PANES if pane.id != "runbooks")]
    for line in (*words, f"show {LOST}", END):
        session.hear(line)
    session.run()
    for line in said:
        clock, _, text = line.partition(" ")
        assert [len(part) for part in clock.split(":")] == [2, 2, 2]
        assert text.isprintable()
        assert text.isascii(), text


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("accelerators g1 h2", "1 accelerator."),
        ("accelerators r1-h2-g1", "state failed, id r1-h2-g1, host r1-h2, job/rank llm/5."),
        ("SHOW r1-h1-g0", "model H100, 80 GiB"),
        ("show nobody", "Nothing is called nobody."),
        ("show", "Type show and a name, such as that of an accelerator."),
        ("incidnts", "There is no command incidnts. Did you mean incidents?"),
        ("plan", "Type plan and the accelerator that failed."),
        ("plan r1-h1", "r1-h1 is not an accelerator: only accelerators are swapped."),
        ("apply", "There is no plan to apply. Type plan and the accelerator that failed."),
    ],
)
def test_what_can_be_asked(stage, line, answer):
    assert answer in talk(stage, line)[0]


def test_a_plan_is_applied_after_a_yes_only(stage):
    stage.may_end.set()
    said, _ = talk(stage, f"plan {LOST}", "apply", "no", "apply")
    assert "Not applied; nothing was changed." in said
    assert stage.applied == []
    said, session = talk(stage, f"plan {LOST}", "apply", "yes")
    assert "Apply this plan to TARGET sim? Type yes; anything else leaves it." in said
    assert session.applying.outcome().done
    assert len(stage.applied) == 1


def test_how_an_apply_ends_is_told(stage):
    stage.may_end.set()
    stage.apply_error = RolledBackError("run-7 failed and was rolled back", run="run-7")
    said = []

    def say(line):
        said.append(line)
        if "rolled back" in line:
            session.hear("quit")

    session = TextSession(
        Sources(stage.observe), stage_acts(stage), racks=["r1"], target="sim", say=say, interval_s=3600
    )
    for line in (f"plan {LOST}", "apply", "yes"):
        session.hear(line)
    session.run()
    assert said[-1].endswith("not done: run-7 failed and was rolled back")


def test_where_nothing_may_be_changed_it_says_why(stage):
    stage.forbidden = "read-only, as asked for"
    said, _ = talk(stage, f"plan {LOST}", "apply", "yes")
    assert said[1] == "Nothing can be changed: read-only, as asked for."
    assert "read-only, as asked for." in said
    assert stage.planned == stage.applied == []


def test_a_plan_that_cannot_be_made_is_a_line(stage):
    stage.plan_error = LumctlError("no spare is healthy", hint="lumctl status")
    assert "no spare is healthy (hint: lumctl status)" in talk(stage, f"plan {LOST}")[0]


def test_a_source_that_is_lost_is_told_once_and_so_is_its_return(stage, kit):
    said = []
    session = TextSession(
        Sources(stage.observe), stage_acts(stage), racks=["r1"], target="sim", say=said.append, interval_s=3600
    )
    seen = RecordedLook(kit.observation())
    for event in (Observed(seen), ObserveFailed("no route"), ObserveFailed("no route"), Observed(seen)):
        session._goes_on(event)
    told = [line.partition(" ")[2] for line in said[len(list(summary(seen))) :]]
    assert told == [
        "The rack could not be read: no route. What was told before may be old.",
        "The rack can be read again.",
    ]


def test_states_have_words_for_all(stage, kit):
    stage.seen = kit.with_states(kit.observation(), {"r1-h1-g0": State.DISABLED, "r1-h1-g1": State.UNKNOWN})
    said = talk(stage, "accelerators")[0]
    assert any(line.startswith("state disabled, id r1-h1-g0") for line in said)
    assert any(line.startswith("state unknown, id r1-h1-g1") for line in said)


def test_lines_are_heard_one_by_one():
    end, begin = os.pipe()
    os.write(begin, b"first\nsec")
    lines = lines_of(end)
    assert next(lines) == "first"
    os.write(begin, b"ond\nlast")
    assert next(lines) == "second"
    os.close(begin)
    assert list(lines) == ["last"]


def test_in_a_pipe():
    command = [sys.executable, "-c", PROGRAM, FOLDERS]
    done = subprocess.run(command, input=b"incidents\n", capture_output=True, timeout=60, check=True)
    assert b"4 of 4 hosts answered." in done.stdout
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


def test_on_a_terminal_nothing_moves():
    master, slave = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, FOLDERS]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    printed = b""

    def read_until(wanted):
        nonlocal printed
        while wanted not in printed:
            try:
                printed += os.read(master, 4096)
            except OSError:
                break
        assert wanted in printed, printed

    read_until(b"What to do")
    os.write(master, b"plan r1-h2-g1\n")
    read_until(b"Type apply")
    os.write(master, b"apply\nyes\n")
    read_until(b"run-7: done")
    os.write(master, b"quit\n")
    assert process.wait(30) == 0
    assert b"\x1b" not in printed
    os.close(master)
