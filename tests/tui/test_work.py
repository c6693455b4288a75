"""From a row into the work: ticket, runbook, shell, the output of a host; and the bell."""

import threading
from dataclasses import replace

import pytest
from waiting import until

from lumctl.errors import RefusedError, UnreachableError
from lumctl.fleet.bundle.host_answers import HostAnswer
from lumctl.fleet.probes import probes_for
from lumctl.fleet.readings import ProbeStatus
from lumctl.tui import terminal
from lumctl.tui.app import Dashboard
from lumctl.tui.preferences import Preferences
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.host_output import HostOutputScreen
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.screens.runbook import RunbookScreen
from lumctl.tui.threads.readers import EVERY_S, scheduler_reader
from lumctl.tui.widgets.picture import PictureWidget

PROBES = {probe.name: probe for probe in probes_for(["eth2"], sudo=False)}


def answer(kit, name, text, status=ProbeStatus.OK, **changed):
    said = HostAnswer(PROBES[name], f"run-{name}", status, kit.START - 4, 0.25, 0, text=text)
    return replace(said, **changed)


@pytest.fixture
def host(stage, kit):
    """What each host of the stage prints; its names are kept in ``asked``."""
    stage.asked = []
    log = "".join(f"[{n}.0] line {n}\n" for n in range(200)) + "[200.0] NVRM: Xid 79 \x1b[31mgone\n"

    def output(name):
        stage.asked.append(name)
        yield answer(kit, "kernel", log)
        yield answer(kit, "gpu", "", ProbeStatus.TIMED_OUT, exit_status=None, detail="no answer within 10 s")
        yield answer(kit, "lldp", '{"lldp": {}}\n')

    stage.sources["host_output"] = output
    return stage


def replaced(kit, **changed):
    plan = {"steps": [], "replacements": [{"failed": kit.LOST, "spare": "r1-h4-g0", "job": "llm", "rank": 5}]}
    return kit.run(9, plan=plan, **changed)


def test_a_ticket_of_the_selected_accelerator_is_on_the_clipboard(stage, kit):
    stage.records = kit.Records(runs=(replaced(kit),))

    async def script(pilot):
        await pilot.press("2", "y")
        await kit.until(pilot, lambda: f"copied a ticket about {kit.LOST}" in kit.screen_text(pilot.app))
        said = pilot.app.clipboard
        assert said.startswith(f"# {kit.LOST} is failed")
        assert "llm rank 5 runs on" in said
        assert "swap-0009: done" in said
        assert f"- lumctl swap plan --failed {kit.LOST} --target sim\n" in said

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize("keys", [("5", "y"), ("5", "enter", "y")])
def test_a_ticket_of_an_incident_is_about_its_cause(stage, kit, keys):
    async def script(pilot):
        await pilot.press(*keys)
        await kit.until(pilot, lambda: f"copied a ticket about {kit.LOST}" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)


def test_the_runbook_of_the_run_that_last_concerned_it_is_opened(stage, kit):
    stage.records = kit.Records(runs=(kit.run(10), replaced(kit)))

    async def script(pilot):
        await pilot.press("2", "o")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, RunbookScreen))
        assert pilot.app.screen._key == "r1/swap-0009"

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize(
    ("runs", "said"),
    [((), "no run has changed"), (("running",), "its runbook is written when it has ended")],
)
def test_without_a_runbook_the_reason_is_said(stage, kit, runs, said):
    stage.records = kit.Records(runs=tuple(replaced(kit, state=state) for state in runs))

    async def script(pilot):
        await pilot.press("2", "o")
        await kit.until(pilot, lambda: said in kit.screen_text(pilot.app))
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(stage.dashboard(), script)


def test_without_a_terminal_the_command_of_the_shell_is_said(stage, kit):
    stage.sources["shell"] = lambda host: ("ssh", "-l", "ops man", host)

    async def script(pilot):
        await pilot.press("2", "s")
        await kit.until(pilot, lambda: "ssh -l 'ops man' r1-h2" in " ".join(kit.screen_text(pilot.app).split()))

    kit.drive(stage.dashboard(), script)


def test_a_host_without_a_shell_says_why(stage, kit):
    def refuse(host):
        raise RefusedError(f"{host} has no shell")

    stage.sources["shell"] = refuse

    async def script(pilot):
        await pilot.press("2", "s")
        await kit.until(pilot, lambda: "r1-h2 has no shell" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize("key", ["s", "l"])
def test_what_is_on_no_host_says_so(host, kit, key):
    async def script(pilot):
        await pilot.press("t", *":mesh1", "enter")
        await kit.until(pilot, lambda: not isinstance(pilot.app.screen, MainScreen))
        await pilot.press("i", key)
        await kit.until(pilot, lambda: "mesh1 is on no host" in kit.screen_text(pilot.app))

    kit.drive(host.dashboard(), script)


def test_the_end_of_the_kernel_log_is_shown_first_and_escaped(host, kit):
    async def script(pilot):
        await pilot.press("2", "l")
        await kit.until(pilot, lambda: "lldp" in kit.screen_text(pilot.app))
        shown = kit.screen_text(pilot.app)
        assert host.asked == ["r1-h2"]
        assert r"Xid 79 \x1b[31mgone" in shown
        assert "ok; exit status 0, 201 lines, took 0.25 s, 4 s ago" in shown
        assert "run-kernel" in shown
        assert "line 0" not in shown
        await pilot.press("home")
        await kit.until(pilot, lambda: "line 0\n" in kit.screen_text(pilot.app))

    kit.drive(host.dashboard(), script)


def test_each_probe_is_shown_with_how_it_ended(host, kit):
    async def script(pilot):
        await pilot.press("2", "l")
        await kit.until(pilot, lambda: "lldp" in kit.screen_text(pilot.app))
        await pilot.press("right_square_bracket")
        await kit.until(pilot, lambda: "timed-out: no answer within 10 s; did not end" in kit.screen_text(pilot.app))
        await pilot.press("tab")
        await kit.until(pilot, lambda: '{"lldp": {}}' in kit.screen_text(pilot.app))
        await pilot.press("r")
        await kit.until(pilot, lambda: host.asked == ["r1-h2", "r1-h2"])

    kit.drive(host.dashboard(), script)


def test_lines_are_found_by_their_words(host, kit):
    async def script(pilot):
        await pilot.press("2", "l")
        await kit.until(pilot, lambda: "lldp" in kit.screen_text(pilot.app))
        await pilot.press("slash", *"xid", "enter")
        await kit.until(pilot, lambda: "1 line with 'xid'" in kit.screen_text(pilot.app))
        assert "line 199" not in kit.screen_text(pilot.app)
        await pilot.press("escape")
        await kit.until(pilot, lambda: "with 'xid'" not in kit.screen_text(pilot.app))
        assert isinstance(pilot.app.screen, HostOutputScreen)
        await pilot.press("escape")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))

    kit.drive(host.dashboard(), script)


def test_an_unreachable_host_is_told_in_a_line(stage, kit):
    def output(host):
        raise UnreachableError(f"{host}: connection refused")
        yield

    stage.sources["host_output"] = output

    async def script(pilot):
        await pilot.press("2", "l")
        await kit.until(pilot, lambda: "r1-h2: connection refused" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)


def test_a_host_that_hangs_does_not_hold_the_dashboard(stage, kit):
    goes_on, ended = threading.Event(), threading.Event()

    def output(_host):
        yield answer(kit, "kernel", "first\n")
        assert goes_on.wait(20)
        yield answer(kit, "gpu", "second\n")
        ended.set()

    stage.sources["host_output"] = output

    async def script(pilot):
        await pilot.press("2", "l")
        await kit.until(pilot, lambda: "reading more" in kit.screen_text(pilot.app))
        assert "first" in kit.screen_text(pilot.app)
        assert pilot.app.screen.query_one(PictureWidget)
        await pilot.press("escape", "3")
        await kit.until(pilot, lambda: "circuits" in kit.screen_text(pilot.app))
        goes_on.set()

    kit.drive(stage.dashboard(), script)
    assert not ended.wait(0.2)  # nothing more is asked once the screen is closed


@pytest.fixture
def rings(monkeypatch):
    """How often the bell rang."""
    heard = []
    monkeypatch.setattr(Dashboard, "bell", lambda _self: heard.append("bell"))
    return heard


async def look_again(stage, kit, pilot, seen):
    before, stage.seen = stage.looks, seen
    await pilot.press("r")
    await kit.until(pilot, lambda: stage.looks > before and pilot.app.seen.observation is seen)


def test_the_bell_rings_once_for_each_new_incident_and_not_for_old_ones(stage, kit, rings):
    stage.preferences = Preferences()
    well, ill = kit.observation(failed=None), kit.observation()

    async def script(pilot):
        assert "the bell rings" not in kit.screen_text(pilot.app)
        await look_again(stage, kit, pilot, well)
        await look_again(stage, kit, pilot, ill)
        assert rings == []  # it is off at first
        await pilot.press("B")
        await kit.until(pilot, lambda: "the bell rings for a new incident" in kit.screen_text(pilot.app))
        await look_again(stage, kit, pilot, replace(ill))
        assert rings == []
        await look_again(stage, kit, pilot, well)
        await look_again(stage, kit, pilot, replace(ill))
        assert rings == ["bell"]
        await look_again(stage, kit, pilot, replace(ill))
        assert rings == ["bell"]

    kit.drive(stage.dashboard(), script)
    assert stage.preferences.bell


def test_what_somebody_knows_of_rings_no_bell(stage, kit, rings):
    stage.preferences = Preferences()
    stage.preferences.bell = True
    ill = kit.observation()
    known = replace(
        ill,
        report=replace(
            ill.report,
            **{
                name: {
                    key: replace(
                        health, findings=tuple(replace(each, acknowledged="by me: known") for each in health.findings)
                    )
                    for key, health in group.items()
                }
                for name, group in ill.report.groups().items()
            },
        ),
    )

    async def script(pilot):
        await look_again(stage, kit, pilot, kit.observation(failed=None))
        await look_again(stage, kit, pilot, known)
        assert rings == []
        await look_again(stage, kit, pilot, replace(ill))
        assert rings == ["bell"]

    stage.seen = kit.observation(failed=None)
    kit.drive(stage.dashboard(), script)


def test_a_program_that_is_not_there_has_the_status_of_a_shell(capfd):
    assert terminal.run_in_terminal(["/no/such/program"]) == terminal.NOT_THERE
    assert "/no/such/program cannot be run: No such file" in capfd.readouterr().out
    assert terminal.run_in_terminal(["/bin/sh", "-c", "exit 3"]) == 3


def test_a_scheduler_s_job_is_in_the_details_and_a_failure_is_unknown(stage, kit):
    said = {"r1-h2-g1": [("job llm", "17 (llm) of ann, RUNNING, for 1:02")], "r1-h2": [("on r1-h2", "unknown: late")]}
    stage.sources["scheduled"] = said.__getitem__

    async def script(pilot):
        await pilot.press("2", "enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
        await pilot.press("end")
        await kit.until(pilot, lambda: "17 (llm) of ann, RUNNING, for 1:02" in kit.screen_text(pilot.app))
        await pilot.press("escape", "colon", *"r1-h2", "enter", "enter", "end")
        await kit.until(pilot, lambda: "unknown: late" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script, size=(110, 60))


def test_a_scheduler_is_asked_in_a_thread_and_not_at_every_look():
    goes_on, asked, now = threading.Event(), threading.Semaphore(0), [0.0]
    calls = []

    def read():
        calls.append(now[0])
        asked.release()
        assert goes_on.wait(20)
        return [("job", f"answer {len(calls)}")]

    reader = scheduler_reader(read, lambda: now[0])
    assert reader.answer() == ()
    assert asked.acquire(timeout=20)
    now[0] = EVERY_S
    assert reader.answer() == ()  # it is still asked
    assert calls == [0.0]
    goes_on.set()
    until(reader.answer)
    until(lambda: reader.answer()[0][1] == "answer 2")
    assert calls == [0.0, EVERY_S]
