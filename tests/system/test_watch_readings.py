"""What a real daemon writes of readings over time is what the dashboard's source reads back from the rack's store."""

import resource

import pytest
from said import PATIENCE_S
from watched import racks

from lumctl.cli.top.command import Historian
from lumctl.inventory.load import load_inventory

GPU, HOST = "s1-gpu0", "s2"


@pytest.fixture
def rack(monkeypatch):
    made = racks()
    rack = next(made)("  []\n")
    for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, rack.environment[name])
    yield rack
    next(made, None)  # ends it


def look(rack) -> None:
    """Wait until the daemon has looked."""
    while "read by the daemon" not in rack.said("check", "-v").stderr:
        pass


def end(rack) -> None:
    rack.daemon.terminate()
    assert rack.daemon.wait(PATIENCE_S) == 0
    rack._said.end()


@pytest.mark.timeout(120)
def test_the_dashboard_reads_back_what_the_daemon_wrote_of_what_hosts_said(rack):
    rack.watch()
    look(rack)
    told = rack.data("status")
    end(rack)
    inventory = load_inventory(rack.inventory)
    with Historian(inventory, "sim") as history:
        kept = {series.name: series for series in history(GPU, 900)}
        assert {"temperature", "utilisation", "memory used", "power", "ECC uncorrectable"} <= set(kept)
        reading = next(each for each in told["accelerators"] if each["id"] == GPU)["readings"]["temperature_c"]
        assert kept["temperature"].unit == "C"
        assert kept["temperature"].points[-1].low - 5 <= reading <= kept["temperature"].points[-1].high + 5
        lane = inventory.transponders_of(GPU)[0].id
        assert [series.name for series in history(lane, 900)] == [
            "receives",
            "sends",
            "laser bias",
            "module temperature",
        ]
        assert history(HOST, 900) == history("nobody", 900) == ()
    # The next daemon continues in the same hour and takes nothing away.
    rack.watch()
    look(rack)
    end(rack)
    with Historian(inventory, "sim") as history:
        after = {point.at for series in history(GPU, 900) for point in series.points}
    assert {point.at for point in kept["power"].points} <= after


@pytest.mark.timeout(120)
def test_readings_that_a_full_disk_does_not_take_neither_blind_the_daemon_nor_hold_up_its_end(rack):
    rack.watch()
    look(rack)
    resource.prlimit(rack.daemon.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    look(rack)
    end(rack)
    assert [line for line in rack.lines if "readings: " in line]
