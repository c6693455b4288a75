"""States in which screens are seldom seen, as pictures: nothing there, lost, refused, tiny; see test_snapshots.py."""

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
def shows(kit):
    """Wait until some words stand on the screen."""

    def wait(words):
        async def then(pilot):
            await kit.until(pilot, lambda: words in kit.screen_text(pilot.app))

        return then

    return wait


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


@pytest.mark.parametrize("pane", ["6", "7", "8", "0"], ids=["swaps", "runbooks", "policies", "log"])
def test_a_pane_without_a_line(reads_as_before, stage, pane):
    assert reads_as_before(stage, pane, size=SMALL)


def test_a_transponder_that_is_well(reads_as_before, stage, kit):
    async def open_it(pilot):
        pilot.app.screen.go_to("r1-h1-g0-l0")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))

    assert reads_as_before(stage, size=SMALL, then=open_it)


# -- help, and the question before leaving ----------------------------------------------------------------------------


def test_the_help_of_a_screen(reads_as_before, stage):
    assert reads_as_before(stage, "space", "question_mark", size=SMALL)


def test_leaving_while_a_plan_is_applied(reads_as_before, stage, kit):
    async def leave(pilot):
        await phase(kit, Phase.ASKING)(pilot)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: "2. program" in kit.screen_text(pilot.app))
        await pilot.press("q")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, LeavingScreen))

    assert reads_as_before(stage, "2", "p", size=SMALL, then=leave)
    stage.may_end.set()


# -- lost, refused, not read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [("2", "j", "enter"), ("space",)], ids=["component", "rack"])
def test_a_screen_whose_source_is_lost(reads_as_before, stage, lose, keys):
    assert reads_as_before(stage, *keys, size=SMALL, then=lose)


def test_a_plan_that_cannot_be_made(reads_as_before, stage, kit):
    stage.plan_error = RefusedError("no spare can be reached", hint="lumctl swap plan --explain")
    assert reads_as_before(stage, "2", "p", size=SMALL, then=phase(kit, Phase.ENDED))


def test_an_apply_that_was_taken_back(reads_as_before, stage, kit):
    async def apply(pilot):
        stage.may_end.set()
        await phase(kit, Phase.ASKING)(pilot)
        await pilot.press("y", "enter")
        await phase(kit, Phase.ENDED)(pilot)

    stage.apply_error = RefusedError("r1-h4-g0-l1 hears nobody; everything was undone", hint="lumctl status")
    assert reads_as_before(stage, "2", "p", size=SMALL, then=apply)


@pytest.mark.parametrize(("pane", "said"), [("6", "no run"), ("7", "not read")], ids=["run", "runbook"])
def test_what_no_store_tells_of(reads_as_before, stage, kit, shows, pane, said):
    stage.records = kit.records()
    assert reads_as_before(stage, pane, "enter", size=SMALL, then=shows(said))


def test_incidents_where_nothing_may_be_changed(reads_as_before, stage):
    stage.forbidden = "read-only, as requested: start lumctl top without --read-only to change anything"
    assert reads_as_before(stage, "5", size=SMALL)


# -- a rack, and the light at a mesh's ports --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(110, 48), SMALL], ids=["wide", "small"])
def test_all_that_is_known_of_a_rack(reads_as_before, stage, kit, size):
    stage.records = replace(kit.records(), stores={"r1": "/var/lib/lumctl/r1"}, watched=True)

    async def opened(pilot):
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, RackScreen))
        await pilot.press("i")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))

    assert reads_as_before(stage, "space", size=size, then=opened)


@pytest.mark.parametrize("size", [(160, 50), SMALL], ids=["wide", "small"])
def test_the_light_at_the_ports_of_a_mesh(reads_as_before, on_mesh, kit, size):
    powers = {port: -3.5 - port / 50 for port in range(76)} | {28: DARK, 31: DARK}
    on_mesh.holds = replace(on_mesh.holds, powers=powers)

    async def read(pilot):
        pilot.app.screen.go_to("mesh1")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, MeshScreen) and not pilot.app.screen._reading)

    assert reads_as_before(on_mesh, size=size, then=read)


# -- no room ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys",
    [("1",), ("5",), ("2", "enter"), ("space",)],
    ids=["racks", "incidents", "component", "rack"],
)
def test_in_a_tiny_terminal(reads_as_before, stage, kit, keys):
    async def drawn(pilot):
        await kit.until(pilot, lambda: "r1-h2" in kit.screen_text(pilot.app))

    assert reads_as_before(stage, *keys, size=TINY, then=drawn)


def test_a_plan_in_a_tiny_terminal(reads_as_before, stage, kit):
    assert reads_as_before(stage, "2", "p", size=TINY, then=phase(kit, Phase.ASKING))


def test_a_mesh_in_a_tiny_terminal(reads_as_before, on_mesh, kit):
    async def read(pilot):
        pilot.app.screen.go_to("mesh1")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, MeshScreen) and not pilot.app.screen._reading)

    assert reads_as_before(on_mesh, size=TINY, then=read)
