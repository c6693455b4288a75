"""Meshes, racks and the change of a plan as pictures; see test_snapshots.py."""

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


def test_a_mesh_in_a_small_terminal(reads_as_before, on_mesh, kit):
    assert reads_as_before(on_mesh, size=SMALL, then=chosen(kit))


def test_a_mesh_that_cannot_be_read(reads_as_before, stage, kit):
    assert reads_as_before(stage, size=SMALL, then=read(kit))


def test_a_mesh_with_stuck_and_damaged_pucs(reads_as_before, on_mesh, kit, monkeypatch):
    rack = kit.inventory()
    broken = replace(rack.devices["mesh1"], stuck={140: "bar"}, damaged=frozenset({150}), blocked_ports=frozenset({20}))
    monkeypatch.setattr(kit, "inventory", lambda: replace(rack, devices={"mesh1": broken}))
    assert reads_as_before(on_mesh, size=(120, 40), then=read(kit))


def test_a_mesh_in_ascii(reads_as_before, on_mesh, kit):
    assert reads_as_before(on_mesh, size=SMALL, ascii_only=True, then=chosen(kit))


def test_a_mesh_without_colour(reads_as_before, on_mesh, kit, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert reads_as_before(on_mesh, size=SMALL, then=chosen(kit))


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


def test_racks_folded_away(reads_as_before, stage, kit):
    stage.seen = kit.with_states(kit.observation(), {"r1-h3-g0": State.DEGRADED})
    assert reads_as_before(stage, "t", "space", size=SMALL)


def test_the_change_of_a_plan(reads_as_before, on_mesh, kit):
    on_mesh.changes = (kit.mesh_change(),)

    async def view(pilot):
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("v")

    assert reads_as_before(on_mesh, "2", "p", size=(110, 48), then=view)
