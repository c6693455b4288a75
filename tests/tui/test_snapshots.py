"""The screens: their words, their layout as stored text where it is the point, and pictures where colour matters.

After a wanted change: pytest tests/tui --snapshot-update, and look at what differs.
"""

import pytest

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.tui.panes import PANES
from lumctl.tui.screens.plan import Phase

SMALL = (80, 24)


@pytest.mark.parametrize("pane", [*"12345"], ids=[pane.id for pane in PANES[:5]])
def test_panes(reads_as_before, stage, kit, pane):
    stage.records = kit.records()
    assert reads_as_before(stage, pane)


@pytest.mark.parametrize(
    ("pane", "lines"),
    [
        ("6", ("1 run", "swap-0007 done 1.50 s 40 s llm: replace r1-h2-g1 by r1-h4-g0 ops@bastion")),
        ("7", ("1 runbook", "swap-0007 swap 1 40 s llm: replace r1-h2-g1 by r1-h4-g0")),
        (
            "8",
            (
                "3 policies and decisions",
                "r1 autopilot ● running 60 s",
                "replace policy apply 60 s breaker closed, 1 of 2 an hour, 1 of 4 a day",
                "replace decided apply 60 s gpu.lost:r1-h2-g1: it is lost",
            ),
        ),
        (
            "9",
            (
                "1 job",
                "✖ failed llm 12 - - - 0 s",
                "rank 5 r1-h2-g1: nvidia-smi does not list it; XID 79: GPU has fallen off the bus, and 2 more failed",
            ),
        ),
        ("0", ("1 line", "11:06:00 r1 ops@bastion swap-0007 begins: llm: replace r1-h2-g1 by r1-h4-g0")),
    ],
    ids=[pane.id for pane in PANES[5:]],
)
def test_panes_of_what_was_done(shows, stage, kit, pane, lines):
    stage.records = kit.records()
    shown = shows(stage, pane).splitlines()
    assert [line for line in shown if line in lines] == list(lines)
    assert shown[2] == "✖ r1-h2-g1 fell off the bus; llm rank 5 is down; p: swap in one of 4 spares 5: 2 more"
    assert shown[-1].startswith("p plan swap enter details m mark 5 incidents")
    assert shown[-1].endswith("? all keys q quit")


def test_accelerators_in_a_small_terminal(shows, stage):
    lines = shows(stage, "2", size=SMALL).splitlines()
    assert lines[5:8] == [
        "STATE ID HOST JOB/RANK TEMP UTIL MEM ECC AGE",
        "✖ failed r1-h2-g1 r1-h2 llm/5 - - - - never",
        "● ok r1-h1-g0 r1-h1 llm/0 58C 97% 71/80G 0 0 s",
    ]
    assert "● ok r1-h4-g3 r1-h4 spare 31C 0% 1/80G 0 0 s" in lines
    assert sum(line.startswith("● ok r1-h") for line in lines) == 15
    assert lines[-1] == "p plan swap enter details m mark 5 incidents s shell ? all keys q quit"


def test_all_is_well(shows, stage, kit):
    stage.seen = kit.observation(failed=None)
    shown = shows(stage, "4")
    assert "● nothing is wrong: 16 accelerators, 12 circuits, 4 hosts\nno findings\n" in shown
    assert shown.splitlines()[-1].startswith("enter details m mark")
    assert "plan swap" not in shown
    assert "✖" not in shown


def test_the_rack_itself_is_told_from_the_simulator(shows, kit):
    assert shows(kit.Stage(target="rack")).splitlines()[0].startswith("lumctl r1 TARGET rack live, read 0 s ago")
    assert shows(kit.Stage(target="sim")).splitlines()[0].startswith("lumctl r1 TARGET sim live, read 0 s ago")


def test_ascii_only(shows, stage):
    lines = shows(stage, "3", ascii_only=True).splitlines()
    assert "3 Circuits X2" in lines[1]
    assert lines[2].startswith("X r1-h2-g1 fell off the bus")
    assert "X failed llm/4-5 dark / dark 4.2 0 s not shown r1-h2-g0-l1 <-> r1-h2-g1-l0" in lines
    assert "+ ok llm/0-1 -4.2 / -4.2 4.2 0 s as intended r1-h1-g0-l1 <-> r1-h1-g1-l0" in lines


def test_without_colour(looks_as_before, stage, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert looks_as_before(stage, "2", "down")


def test_filtered(shows, stage):
    lines = shows(stage, "2", "slash", *"h2", "enter").splitlines()
    assert lines[3] == "4 of 16 accelerators match 'h2' (esc: all)"
    assert [line.split()[2] for line in lines[5:9]] == ["r1-h2-g1", "r1-h2-g0", "r1-h2-g2", "r1-h2-g3"]
    assert not any("r1-h1-g0" in line for line in lines)


def test_a_component(reads_as_before, stage):
    assert reads_as_before(stage, "2", "enter")


def test_help(reads_as_before, stage):
    assert reads_as_before(stage, "question_mark", size=(110, 48))


def test_never_read(shows, stage):
    stage.seen = DeviceUnreachableError("no session to r1-h1", hint="is the simulator up? lumctl sim up")
    shown = shows(stage)
    assert shown.splitlines()[0] == "lumctl r1 TARGET sim not read yet"
    assert "could not read the rack: no session to r1-h1 (hint: is the simulator up? lumctl sim up)" in shown
    assert "nothing has been read yet" in shown
    assert "nothing is wrong" not in shown
    assert "● ok" not in shown


def test_old_data_stand_with_their_age_when_the_source_is_lost(shows, stage, kit):
    async def lose_the_source(pilot):
        stage.seen = DeviceUnreachableError("no session to any host")
        stage.now += 75
        await pilot.press("r")
        await kit.until(pilot, lambda: pilot.app.trouble)

    lines = shows(stage, "2", then=lose_the_source).splitlines()
    assert "failing, read 75 s ago" in lines[0]
    assert "could not read the rack: no session to any host" in lines
    assert "✖ failed r1-h2-g1 r1-h2 llm/5 - - - - never" in lines
    read = [line for line in lines if line.startswith("● ok r1-h")]
    assert len(read) == 15
    assert all(line.endswith(" 75 s !") for line in read)


def test_a_plan_that_asks(looks_as_before, stage, kit):
    async def asked(pilot):
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)

    assert looks_as_before(stage, "2", "p", then=asked)


def test_an_apply_under_way(looks_as_before, stage, kit):
    async def apply(pilot):
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: "2. program" in kit.screen_text(pilot.app))

    assert looks_as_before(stage, "2", "p", then=apply)
    stage.may_end.set()


def test_an_apply_that_is_done(shows, stage, kit):
    async def apply(pilot):
        stage.may_end.set()
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ENDED)

    lines = shows(stage, "2", "p", then=apply).splitlines()
    assert lines[:2] == ["swap of r1-h2-g1 TARGET sim", "llm: replace r1-h2-g1 by r1-h4-g0"]
    assert lines[3:6] == [
        "1. check that r1-h4-g0 is healthy: 0.31 s",
        "2. program 14 cells of mesh1: 0.08 s",
        "3. show that each receiver hears its transmitter: 1.12 s",
    ]
    assert "cells of mesh1: 14 written" in lines
    ended = lines.index("run-7: done in 1.51 s, 4 receivers proved")
    assert lines[ended + 1] == "runbook: /var/lib/lumctl/r1/runbooks/run-7.yaml"
    assert lines[-1] == "esc: back"
    assert not any("Apply this plan" in line for line in lines)
