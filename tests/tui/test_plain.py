"""The dashboard in plain lines: told once, then only what changes; asked in words; on a terminal and in pipes."""

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.cli.top.plain import lines_of
from lumctl.errors import LumctlError, RolledBackError
from lumctl.fleet.bundle.host_answers import HostAnswer
from lumctl.fleet.probes import probes_for
from lumctl.fleet.readings import ProbeStatus
from lumctl.health.states import State
from lumctl.tui.actions import Acts, PlanView
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
        Sources(stage.observe, lambda: stage.records, **stage.sources),
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
    return Acts(stage.plan, stage.apply, stage.forbidden, **stage.acts)


def test_first_everything_is_told_in_sentences(stage):
    said, _ = talk(stage)
    assert said[0] == "lumctl r1, target sim. Type help and enter for a list of commands."
    assert "4 of 4 hosts answered." in said
    assert "1 of 16 accelerators is not healthy: r1-h2-g1." in said
    assert f"{LOST} is failed: nvidia-smi does not list it; XID 79: GPU has fallen off the bus. " in "\n".join(said)


def test_then_only_what_changes(kit):
    well, failed = RecordedLook(kit.observation(failed=None)), RecordedLook(kit.observation(at=kit.START + 2))
    assert list(changes(well, well)) == []
    said = list(changes(well, failed))
    assert said[0].startswith(f"{LOST} fell off the bus; llm rank 5 is down; lumctl swap plan --failed {LOST}")
    assert said[1].startswith(f"{LOST} is failed, was ok: nvidia-smi does not list it")
    assert next(changes(failed, well)) == "Nothing is wrong: 16 accelerators, 12 circuits, 4 hosts."
    assert f"{LOST} is ok, was failed." in list(changes(failed, well))
    assert "r1-h1 does not answer." in list(changes(well, RecordedLook(kit.unreachable(well.observation))))
    assert "r1-h1 answers again." in list(changes(RecordedLook(kit.unreachable(well.observation)), well))
    assert next(changes(well, RecordedLook(well.observation, kit.records()))).startswith("swap-0007 is done: ")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("rack r1-h2", f"r1-h2: r1-h2-g0 llm/4 97%; {LOST} llm/5 failed; r1-h2-g2 llm/6 97%; r1-h2-g3 llm/7 97%."),
        ("spares", "ok r1-h4-g0 can replace llm ranks 0-11"),
        ("links mesh1", "20 of 24 receivers are proved to hear their transmitter; 4 hear no light, or the wrong one"),
        ("links", "Type links and the name of a device: mesh1."),
        ("budget", "24 receivers; budget 14 dB, of which 2 dB should remain"),
        ("timeline", "Type timeline and the component that failed."),
    ],
)
def test_the_pictures_are_told_in_lines(stage, asked, told):
    said, _ = talk(stage, asked)
    assert told in said


def test_a_timeline_is_told_by_the_name_of_its_cause(stage):
    said, _ = talk(stage, f"timeline {LOST}")
    assert any("detected: " in line and LOST in line for line in said)


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
        ("history", "Type history, the name of an accelerator or a transponder, and a time: history NAME 6h."),
        ("history mesh1", "mesh1 has no readings over time: only accelerators and transponders have."),
        (
            "history r1-h1-g0 soon",
            "'soon' is not a valid duration (hint: examples: 90s, 30m, 2h, 1d; at most 3650d)",
        ),
        ("history r1-h1-g0", "PCIe sends: now 1.9 GB/s; from 1.9 GB/s to 1.9 GB/s, mean 1.9 GB/s."),
        (
            f"history {LOST} 2h",
            f"The last 2 h contain no stored reading of {LOST}: lumctl watch stores readings while it runs.",
        ),
        (f"history {LOST}-l0", "receives: now dark; from dark to dark."),
        ("show r1-h1-g0", "temperature 58 C, slows at 87 C, 0 s old"),
        ("show r1-h1-g0", "pid 4711 python, memory 70.3 GiB"),
        ("show", "Type show and a name, such as that of an accelerator."),
        ("incidnts", "incidnts is not a command. Did you mean incidents?"),
        ("plan", "Type plan and the accelerator that failed."),
        ("plan r1-h1", "r1-h1 is not an accelerator: only accelerators can be swapped."),
        ("apply", "There is no plan to apply. Make one first: plan, place or release."),
    ],
)
def test_what_can_be_asked(stage, line, answer):
    assert answer in talk(stage, line)[0]


def host_output(_host):
    """What a host prints: a log of many lines, and a probe that did not end."""
    probes = {probe.name: probe for probe in probes_for((), sudo=False)}
    log = "".join(f"line {n}\n" for n in range(50))
    yield HostAnswer(probes["kernel"], "dmesg", ProbeStatus.OK, 0.0, 0.25, 0, text=log)
    yield HostAnswer(probes["gpu"], "nvidia-smi", ProbeStatus.TIMED_OUT, 0.0, 10.0, detail="no answer within 10 s")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("kernel r1-h2-g1", "line 49"),
        ("probes r1-h2", "gpu: timed-out: no answer within 10 s; did not end, 0 lines, took 10.00 s, "),
        ("probe r1-h2 kernel", "line 0"),
        ("probe r1-h2 nvlinks", "It has no probe nvlinks; its probes: kernel, gpu."),
        ("shell r1-h2", "In a terminal, type: ssh -l 'ops man' r1-h2"),
        ("shell mesh1", "mesh1 is on no host (hint: give a host, an accelerator or a link)"),
        ("ticket r1-h2-g1", "# r1-h2-g1 is failed: "),
        ("ticket nobody", "no component is called 'nobody' (hint: type ticket and the name of a component)"),
        ("runbook r1-h2-g1", "No run has changed r1-h2-g1."),
        ("scheduler r1-h2", "on r1-h2: 17 of ann, RUNNING, for 1:02."),
    ],
)
def test_the_work_is_told_in_lines(stage, line, answer):
    stage.sources |= {
        "host_output": host_output,
        "shell": lambda host: ("ssh", "-l", "ops man", host),
        "scheduled": lambda host: [(f"on {host}", "17 of ann, RUNNING, for 1:02")],
    }
    said = talk(stage, line)[0]
    assert any(each.startswith(answer) for each in said), said
    assert "line 29" not in said or not line.startswith("kernel")


def test_the_first_answer_of_a_host_without_a_kernel_log_is_not_taken_for_one(stage):
    def pages(_host):
        probe = replace(probes_for((), sudo=False)[0], name="page:node_exporter")
        yield HostAnswer(probe, "http://r1-h2:9100/metrics", ProbeStatus.OK, 0.0, 0.25, 0, text="node_load1 0.5\n")

    stage.sources["host_output"] = pages
    said = talk(stage, "kernel r1-h2")[0]
    assert "It has no kernel log." in said
    assert "node_load1 0.5" not in said


def test_the_history_names_the_incidents_of_its_time(stage):
    said, _ = talk(stage, f"history {LOST}")
    assert said[-1].startswith("Since ")
    assert said[-1].endswith(f"{LOST}: nvidia-smi does not list it; XID 79: GPU has fallen off the bus.")


def test_a_plan_is_applied_after_a_yes_only(stage):
    stage.may_end.set()
    said, _ = talk(stage, f"plan {LOST}", "apply", "no", "apply")
    assert "Not applied; nothing was changed." in said
    assert stage.applied == []
    said, session = talk(stage, f"plan {LOST}", "apply", "yes")
    assert "Apply this plan to TARGET sim? Type yes; anything else cancels." in said
    assert session.applying.outcome().done
    assert len(stage.applied) == 1


def test_slices_are_planned_and_released_with_their_warnings_first(stage):
    def planned(*words):
        stage.planned.append(words)
        return PlanView(
            " ".join(words), "sim", ("1. check", ""), "plan", warnings=("it has no hook",), summary=("8 circuits",)
        )

    stage.acts = {"place_slice": planned, "release_slice": planned}
    stage.may_end.set()
    said, session = talk(stage, "place 4x4x2 tenant-a", "apply", "yes")
    at = said.index("4x4x2 tenant-a.")
    assert said[at + 1 : at + 4] == ["Warning: it has no hook.", "8 circuits", "1. check"]
    assert session.applying.outcome().done
    said, session = talk(stage, "release tenant-a", "place 4x4x2", "release", "apply", "yes")
    assert "Type place, a shape and a name, such as: place 4x4x2 tenant-a" in said
    assert "Type release and the name of a slice." in said
    assert stage.planned == [("4x4x2", "tenant-a"), ("tenant-a",)]
    assert [plan.title for plan in stage.applied] == ["4x4x2 tenant-a", "tenant-a"]


def test_no_slice_is_planned_where_nothing_may_be_changed(stage):
    stage.forbidden = "read-only, as requested"
    said, _ = talk(stage, "place 4x4x2 tenant-a", "release tenant-a", "apply", "yes")
    assert said.count("read-only, as requested") == 2
    assert stage.applied == []


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
    stage.forbidden = "read-only, as requested"
    said, _ = talk(stage, f"plan {LOST}", "apply", "yes")
    assert said[1] == "Nothing can be changed: read-only, as requested."
    assert "read-only, as requested." in said
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
        "The rack could not be read: no route. Earlier output may be out of date.",
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
