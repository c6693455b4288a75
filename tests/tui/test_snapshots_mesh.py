"""Meshes, racks and the change of a plan; see test_snapshots.py."""

from dataclasses import replace

from lumctl.health.states import State
from lumctl.inventory.model import Device, DeviceKind
from lumctl.tui.screens.mesh import MeshScreen
from lumctl.tui.screens.plan import Phase
from lumctl.tui.views.meshes import MeshView

SMALL = (80, 24)
TO_RACK = ("space",)


def read(kit):
    async def wait(pilot):
        pilot.app.screen.go_to("mesh1")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, MeshScreen) and not pilot.app.screen._reading)

    return wait


def drawn(kit):
    """Wait until a rack is drawn."""

    async def wait(pilot):
        await kit.until(pilot, lambda: "H100" in kit.screen_text(pilot.app))

    return wait


def chosen(kit):
    async def choose(pilot):
        await read(kit)(pilot)
        await pilot.press("down", "up")

    return choose


def test_a_mesh(looks_as_before, on_mesh, kit):
    assert looks_as_before(on_mesh, size=(120, 40), then=read(kit))


def test_a_mesh_with_a_chosen_circuit(reads_as_before, on_mesh, kit):
    assert reads_as_before(on_mesh, size=(120, 40), then=chosen(kit))


def test_a_mesh_in_a_small_terminal(shows, on_mesh, kit):
    lines = shows(on_mesh, size=SMALL, then=chosen(kit)).splitlines()
    assert lines[:2] == [
        "mesh1 TARGET sim device read 3 s ago",
        "● ok mesh, 9 x 9 cells, 76 ports; circuits: 2 failed, 10 ok",
    ]
    assert lines[3].endswith("E28"), "the port of the chosen circuit is in sight"
    assert lines[8].endswith("E31"), "and its other port"
    assert "E ✖ failed llm/4-5 28:31 dark / dark 4 PUCs 0 s" in lines
    assert lines[-2].endswith("PUC: programmable unit cell")
    assert lines[-1] == "esc back j choose enter details a all alike x links ? all keys q quit"


def test_a_mesh_that_cannot_be_read(shows, stage, kit):
    shown = shows(stage, size=SMALL, then=read(kit))
    assert shown.splitlines()[0] == "mesh1 TARGET sim from the record"
    assert "mesh1 cannot be read back; the picture shows nothing: the record is uncertain" in shown
    assert "✖ failed llm/4-5 9:10 dark / dark not known 0 s" in shown
    assert "cross" not in shown, "what the picture's signs mean"
    assert "PUCs" not in shown


def test_a_mesh_with_stuck_and_damaged_pucs(shows, on_mesh, kit, monkeypatch):
    rack = kit.inventory()
    broken = replace(rack.devices["mesh1"], stuck={140: "bar"}, damaged=frozenset({150}), blocked_ports=frozenset({20}))
    monkeypatch.setattr(kit, "inventory", lambda: replace(rack, devices={"mesh1": broken}))
    shown = shows(on_mesh, size=(120, 40), then=read(kit))
    lines = shown.splitlines()
    assert "! stuck in bar ▒ damaged or blocked PUC: programmable unit cell" in lines[-2]
    assert sum("!" in line for line in lines[2:-2]) == 2, "the stuck PUC is two lines high"
    assert [line.split()[7] for line in lines if line.startswith("65 ")] == ["▒"], "the damaged PUC"
    assert "│▒20 " in shown, "the blocked port"
    assert shown.count("▒") == 3


def test_a_mesh_in_ascii(shows, on_mesh, kit):
    shown = shows(on_mesh, size=SMALL, ascii_only=True, then=chosen(kit))
    assert "+ ok mesh, 9 x 9 cells, 76 ports; circuits: 2 failed, 10 ok" in shown
    assert "E X failed llm/4-5 28:31 dark / dark 4 PUCs 0 s" in shown
    assert "65 x / \\ / \\ / \\ /" in shown
    assert "| - / \\ bar x cross PUC: programmable unit cell" in shown


def test_a_mesh_without_colour_says_the_same(shows, on_mesh, kit, monkeypatch):
    coloured = shows(on_mesh, size=SMALL, then=chosen(kit))
    monkeypatch.setenv("NO_COLOR", "1")
    assert shows(on_mesh, size=SMALL, then=chosen(kit)) == coloured
    assert "✖ failed llm/4-5" in coloured


def test_a_switch(reads_as_before, stage, kit, monkeypatch):
    rack = kit.inventory()
    switch = Device("mesh1", "r1", DeviceKind.SWITCH, "polatis", "10.0.0.9:830", None, 64, 0, 1.0, 20, input_count=64)
    monkeypatch.setattr(kit, "inventory", lambda: replace(rack, devices={"mesh1": switch}))
    stage.holds = MeshView("mesh1", {1: "2", 3: "5", 40: "41", 9: "-"}, kit.START - 3)
    assert reads_as_before(stage, size=SMALL, then=read(kit))


def test_a_rack(reads_as_before, stage, kit):
    assert reads_as_before(stage, *TO_RACK, then=drawn(kit))


def test_a_rack_of_eight_hosts_of_eight_in_a_small_terminal(reads_as_before, stage, kit, monkeypatch):
    for name, value in (("HOSTS", 8), ("PER_HOST", 8), ("WORKERS", 56)):
        monkeypatch.setattr(kit, name, value)
    assert reads_as_before(stage, *TO_RACK, size=SMALL, then=drawn(kit))


def test_a_rack_where_all_is_well_in_ascii(reads_as_before, stage, kit):
    stage.seen = kit.observation(failed=None)
    assert reads_as_before(stage, *TO_RACK, size=SMALL, ascii_only=True, then=drawn(kit))


def test_racks_folded_away(shows, stage, kit):
    stage.seen = kit.with_states(kit.observation(), {"r1-h3-g0": State.DEGRADED})
    lines = shows(stage, "t", "space", size=SMALL).splitlines()
    assert lines[4].startswith("6 racks, meshes and hosts, 5 of them folded away, 1 failed, 1 degraded hidden")
    assert lines[6] == "✖ failed ▸ r1 rack 0 s 1 failed, 1 degraded, 14 ok 2 failed,"
    assert not any("mesh1" in line or "r1-h3" in line for line in lines)


def test_the_change_of_a_plan(reads_as_before, on_mesh, kit):
    on_mesh.changes = (kit.mesh_change(),)

    async def view(pilot):
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("v")

    assert reads_as_before(on_mesh, "2", "p", size=(110, 48), then=view)
