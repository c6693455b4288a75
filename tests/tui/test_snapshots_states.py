"""States in which screens are seldom seen: nothing there, lost, refused, tiny; see test_snapshots.py."""

from dataclasses import replace

import pytest

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.errors import RefusedError
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.help import LeavingScreen
from lumctl.tui.screens.mesh import MeshScreen
from lumctl.tui.screens.plan import Phase
from lumctl.tui.screens.rack import RackScreen

SMALL, TINY = (80, 24), (40, 12)
DARK = float("-inf")


@pytest.fixture
def lose(stage, kit):
    """The source is lost while a screen is open."""

    async def then(pilot):
        stage.seen = DeviceUnreachableError("no session to any host")
        stage.now += 75
        pilot.app._collector.refresh()
        await kit.until(pilot, lambda: pilot.app.trouble)
        await kit.until(pilot, lambda: "75 s" in kit.screen_text(pilot.app))

    return then


def phase(kit, wanted):
    async def then(pilot):
        await kit.until(pilot, lambda: pilot.app.screen.phase is wanted)

    return then


# -- nothing there ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pane", "count", "headings"),
    [
        ("6", "no runs", "RUN OUTCOME TOOK AGO TITLE BY"),
        ("7", "no runbooks", "RUN KIND STEPS AGO TITLE"),
        ("8", "no policies and decisions", "NAME KIND STATE AGO WHY"),
        ("0", "no lines", "TIME RACK WHO WHAT"),
    ],
    ids=["swaps", "runbooks", "policies", "log"],
)
def test_a_pane_without_a_line(shows, stage, pane, count, headings):
    lines = shows(stage, pane, size=SMALL).splitlines()
    assert lines[4:6] == [count, headings]
    assert not any(word in line for line in lines[6:-1] for word in ("r1", "swap"))
    assert lines[-1] == "p plan swap enter details m mark 5 incidents s shell ? all keys q quit"


def test_a_transponder_that_is_well(shows, stage, kit):
    async def open_it(pilot):
        pilot.app.screen.go_to("r1-h1-g0-l0")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))

    shown = shows(stage, size=SMALL, then=open_it)
    assert shown.startswith("r1-h1-g0-l0 TARGET sim\n● ok transponder\n")
    assert "accelerator r1-h1-g0\nhost r1-h1\ninterface eth1\nfabric mesh1, port 0\n" in shown
    assert "can be verified by lldp, blink" in shown
    assert "receives -4.2 dBm ███│██░░ low alarm -14.0 dBm 0 s" in shown
    assert "sends 0.0 dBm" in shown
    assert "plan swap" not in shown


# -- help, and the question before leaving ----------------------------------------------------------------------------


def test_the_help_of_a_screen(shows, stage):
    shown = shows(stage, "space", "question_mark", size=SMALL)
    assert shown.startswith("help TARGET sim\n● ok ◐ degraded ✖ failed ○ unknown – disabled\n")
    assert "keys on the screen of a rack" in shown
    assert "esc Back to the previous screen." in shown
    assert "p Plan to replace it by a spare." in shown
    assert "q Quit. While a plan is being applied it asks first." in shown
    assert "states\n● ok Read, and nothing is wrong; of a step: done." in shown
    assert "Show only lines that contain these words" not in shown, "a key of the panes"


def test_leaving_while_a_plan_is_applied(shows, stage, kit):
    async def leave(pilot):
        await phase(kit, Phase.ASKING)(pilot)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: "2. program" in kit.screen_text(pilot.app))
        await pilot.press("q")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, LeavingScreen))

    shown = shows(stage, "2", "p", size=SMALL, then=leave)
    assert shown.startswith("quit TARGET sim\n")
    assert "A plan is being applied to TARGET sim. It is never interrupted." in shown
    assert "Quit as soon as it has ended?\ny quit when it has ended esc stay" in shown
    stage.may_end.set()


# -- lost, refused, not read ------------------------------------------------------------------------------------------


def test_a_component_whose_source_is_lost(shows, stage, lose):
    lines = shows(stage, "2", "j", "enter", size=SMALL, then=lose).splitlines()
    assert lines[:2] == ["r1-h1-g0 TARGET sim", "● ok accelerator"]
    read = [
        line for line in lines if line.startswith(("temperature ", "power ", "SM clock", "utilisation ", "PCIe se"))
    ]
    assert len(read) == 5
    assert all(line.endswith("75 s !") for line in read), read


def test_a_rack_whose_source_is_lost(shows, stage, lose):
    shown = shows(stage, "space", size=SMALL, then=lose)
    assert shown.splitlines()[0] == "r1 TARGET sim read 75 s ago"
    assert "r1-h2 * llm/4 97% >✖ llm/5 - * llm/6 97% llm/7 97%" in shown
    assert "* ✖ failed r1-h2-g0 ↔ r1-h2-g1 llm/4-5 rx dark / dark dBm" in shown


def test_a_plan_that_cannot_be_made(shows, stage, kit):
    stage.plan_error = RefusedError("no spare can be reached", hint="lumctl swap plan --explain")
    shown = shows(stage, "2", "p", size=SMALL, then=phase(kit, Phase.ENDED))
    assert shown.startswith("swap of r1-h2-g1 TARGET sim\n")
    assert "no plan: no spare can be reached (hint: lumctl swap plan --explain)" in shown
    assert "p: plan again esc: back" in shown
    assert "Apply this plan" not in shown


def test_an_apply_that_was_taken_back(shows, stage, kit):
    async def apply(pilot):
        stage.may_end.set()
        await phase(kit, Phase.ASKING)(pilot)
        await pilot.press("y", "enter")
        await phase(kit, Phase.ENDED)(pilot)

    stage.apply_error = RefusedError("r1-h4-g0-l1 hears nobody; everything was undone", hint="lumctl status")
    shown = shows(stage, "2", "p", size=SMALL, then=apply)
    assert "2. program 14 cells of mesh1: 0.08 s" in shown
    said = " ".join(shown.split())
    assert "not done: r1-h4-g0-l1 hears nobody; everything was undone (hint: lumctl status)" in said
    assert "p: plan again esc: back" in shown
    assert "receivers proved" not in shown


@pytest.mark.parametrize(
    ("pane", "title", "said"),
    [
        ("6", "swap-0007", "no run 'r1/swap-0007': this dashboard reads no store"),
        ("7", "runbook swap-0007", "not read: this dashboard reads no store"),
    ],
    ids=["run", "runbook"],
)
def test_what_no_store_tells_of(shows, stage, kit, pane, title, said):
    stage.records = kit.records()

    async def told(pilot):
        await kit.until(pilot, lambda: "reads no store" in kit.screen_text(pilot.app))

    shown = shows(stage, pane, "enter", size=SMALL, then=told).splitlines()
    assert shown[0] == f"{title} TARGET sim"
    assert said in shown
    assert shown[-1].startswith("esc back ")


def test_incidents_where_nothing_may_be_changed(shows, stage):
    stage.forbidden = "read-only, as requested: start lumctl top without --read-only to change anything"
    shown = shows(stage, "5", size=SMALL)
    assert shown.splitlines()[0].startswith("lumctl r1 TARGET sim read-only live")
    assert "lumctl swap plan --failed\nr1-h2-g1; also: llm/4-5 is dark 5: 2 more\n3 incidents\n" in shown
    assert "lumctl swap plan --failed r1-h2-g1; then repair r1-h2-g1: replace it by a\nspare: lumctl swap plan" in shown
    assert shown.splitlines()[-1].startswith("enter details m mark")
    assert "p: " not in shown
    assert "p plan swap" not in shown


# -- a rack, and the light at a mesh's ports --------------------------------------------------------------------------


@pytest.fixture
def rack_opened(stage, kit):
    """Open all that is known of the rack."""
    stage.records = replace(kit.records(), stores={"r1": "/var/lib/lumctl/r1"}, watched=True)

    async def opened(pilot):
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, RackScreen))
        await pilot.press("i")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))

    return opened


def test_all_that_is_known_of_a_rack(reads_as_before, stage, rack_opened):
    assert reads_as_before(stage, "space", size=(110, 48), then=rack_opened)


def test_all_that_is_known_of_a_rack_in_a_small_terminal(shows, stage, rack_opened):
    shown = shows(stage, "space", size=SMALL, then=rack_opened)
    assert shown.startswith("r1 TARGET sim\n✖ failed rack\n")
    assert "looked at by a daemon (lumctl watch), whose observations are shown" in shown
    assert "hosts 1 failed, 3 ok; 4 of 4 hosts answered" in shown
    assert "spares 4 free, 0 used" in shown
    assert "r1-h2-g1 failed, gpu.lost for 95 s\nllm/4-5 failed, circuit.dark for 93 s" in shown
    assert shown.splitlines()[-1] == "esc back s shell l log y ticket ? help q quit"


@pytest.fixture
def mesh_read(kit):
    """Open the mesh, and wait until it was read."""

    async def read(pilot):
        pilot.app.screen.go_to("mesh1")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, MeshScreen) and not pilot.app.screen._reading)

    return read


@pytest.fixture
def lit_mesh(on_mesh):
    """A mesh that measures light at its ports, and none at those of one circuit."""
    powers = {port: -3.5 - port / 50 for port in range(76)} | {28: DARK, 31: DARK}
    on_mesh.holds = replace(on_mesh.holds, powers=powers)
    return on_mesh


def test_the_light_at_the_ports_of_a_mesh(reads_as_before, lit_mesh, mesh_read):
    assert reads_as_before(lit_mesh, size=(160, 50), then=mesh_read)


def test_the_light_at_the_ports_stands_in_the_table_of_a_small_terminal(shows, lit_mesh, mesh_read):
    shown = shows(lit_mesh, size=SMALL, then=mesh_read)
    assert "E ✖ failed llm/4-5 28:31 dark / dark 4 PUCs, at the ports dark" in shown
    assert "F ✖ failed llm/5-6 34:37 dark / dark 3 PUCs, at the ports -4.2" in shown
    assert "A ● ok llm/0-1 4:7 -4.2 / -4.2 4 PUCs, at the ports -3.6" in shown
    assert "19 -3.9" not in shown, "no room for it beside the ports"


# -- no room ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def drawn(kit):
    """Wait until the failed accelerator's host is on the screen."""

    async def wait(pilot):
        await kit.until(pilot, lambda: "r1-h2" in kit.screen_text(pilot.app))

    return wait


def test_racks_in_a_tiny_terminal(reads_as_before, stage, drawn):
    assert reads_as_before(stage, "1", size=TINY, then=drawn)


def test_incidents_in_a_tiny_terminal(shows, stage, drawn):
    lines = shows(stage, "5", size=TINY, then=drawn).splitlines()
    assert lines[2:5] == [
        "✖ r1-h2-g1 fell off the bus; llm rank",
        "5 is down; p: swap in one of 4 spares…",
        "3 incidents",
    ]
    assert lines[5].endswith("2 failed below")
    assert "p: replace r1-h2-g1 by a spare" in lines
    assert lines[-1] == "p plan swap ? all keys q quit"


def test_a_component_in_a_tiny_terminal(shows, stage, drawn):
    shown = shows(stage, "2", "enter", size=TINY, then=drawn)
    assert shown.startswith("r1-h2-g1 TARGET sim\n✖ failed accelerator\n")
    assert "✖ failed gpu.lost for 95 s" in shown
    assert "what to do replace it by a\nspare: lumctl swap plan" in shown
    assert shown.splitlines()[-1] == "esc back h history ? all keys q quit"


def test_a_rack_in_a_tiny_terminal(shows, stage, drawn):
    lines = shows(stage, "space", size=TINY, then=drawn).splitlines()
    assert lines[0] == "r1 TARGET sim read 0 s ago"
    assert "accelerators ✖1 failed, 15 ok" in lines
    assert "r1-h2 * 97% >✖ - * 97% 97%" in lines
    assert "r1-h4 s 0% s 0% s 0% s 0%" in lines
    assert lines[-2].startswith("r1-h2-g1 ✖ failed llm/5, H100;")
    assert lines[-1] == "esc back ? all keys q quit"


def test_a_plan_in_a_tiny_terminal(shows, stage, kit):
    shown = shows(stage, "2", "p", size=TINY, then=phase(kit, Phase.ASKING))
    assert shown.startswith("swap of r1-h2-g1 TARGET sim\nllm: replace r1-h2-g1 by r1-h4-g0\n")
    said = " ".join(shown.split())
    assert "Apply this plan to TARGET sim? Type yes (or y) and press enter; esc cancels." in said
    assert shown.splitlines()[-1] == "y enter apply v view ? all keys"


def test_a_mesh_in_a_tiny_terminal(shows, on_mesh, mesh_read):
    shown = shows(on_mesh, size=TINY, then=mesh_read)
    assert shown.startswith("mesh1 TARGET sim device read 3 s ago\n● ok mesh, 9 x 9 cells, 76 ports;\n")
    assert "E ✖ failed llm/4-5 28:31\nF ✖ failed llm/5-6 34:37\nA ● ok llm/0-1 4:7\n" in shown
    assert shown.splitlines()[-1] == "esc back j choose ? all keys q quit"
