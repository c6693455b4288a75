"""``lumctl check`` and ``status``: what operators know, what is being worked on, and what has one cause."""

import json
import re
from dataclasses import replace

import pytest

from lumctl.cli.main import run
from lumctl.context import Context
from lumctl.errors import ExitCode
from lumctl.health.acknowledgements import Acknowledgement, MaintenanceWindow

GPU = "h03-gpu2"
KNOWN = Acknowledgement(GPU, None, "ops", "part ordered", 0.0)
LOST = {"reachable": False, "error": "no route", "gpus": (), "probes": {}, "interfaces": {}, "optics": {}}


@pytest.fixture
def lumctl(rack, capsys, monkeypatch, tmp_path):
    """Run a command on the collected rack; returns exit code and stdout."""
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path))
    monkeypatch.setattr("lumctl.daemon.client.observation_of", lambda *_, **__: None)

    def command(*arguments):
        code = run(["-i", str(rack.inventory.path), "--target", "sim", *arguments])
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, captured.out

    return command


@pytest.fixture
def check(lumctl):
    return lambda *arguments: lumctl("check", *arguments)


@pytest.fixture
def judged(rack, monkeypatch):
    """Let the command see the rack as it is judged after some looks, with what operators said of it."""

    def arrange(*acknowledged, windows=(), **more):
        monkeypatch.setattr(
            Context, "observe", lambda _, **__: replace(rack.settled(*acknowledged, windows=windows), **more)
        )

    return arrange


def test_what_is_acknowledged_rings_no_bell_and_is_counted(check, rack, judged):
    rack.lose_gpu(GPU)
    judged()
    assert check()[0] == 2
    judged(KNOWN)
    code, line = check()
    assert code == 0
    assert line.startswith("LUMCTL OK - rack64: 63 accelerators, 60 circuits ok; 1 acknowledged |")


def test_beside_what_is_acknowledged_the_rest_still_counts(check, rack, judged):
    rack.lose_gpu(GPU)
    rack.gpu("h05-gpu0", ecc_volatile_uncorrectable=2)
    judged(KNOWN)
    code, line = check()
    assert code == 1
    assert "WARNING - rack64: 1 of 64 accelerators degraded (h05-gpu0: " in line
    assert line.split(" | ")[0].endswith("; 1 acknowledged")
    assert GPU not in line


def test_an_incident_is_named_instead_of_all_that_it_touches(check, rack, judged):
    rack.host("h03", **LOST)
    rack.gpu("h05-gpu0", ecc_volatile_uncorrectable=2)
    judged()
    _, line = check()
    said = line.split(" | ")[0].removeprefix("LUMCTL ").partition(" - ")[2]
    assert re.match(r"rack64: h03 \w+: no route.*\(1 host, 4 accelerators", said), said
    assert "; 1 of 64 accelerators degraded" in said
    assert "of 64 accelerators unknown" not in said
    assert "of 16 hosts" not in said


def test_a_lost_accelerator_is_named_before_an_incident_of_hot_ones(check, rack, judged):
    for number in range(4):
        rack.gpu(f"h01-gpu{number}", temperature_c=95.0)
    rack.xid(GPU, 79)
    judged()
    _, line = check()
    assert line.startswith(
        "LUMCTL CRITICAL - rack64: 1 of 64 accelerators failed (h03-gpu2: fell off the bus (XID 79))"
    )
    assert "; h01 degraded: " in line
    assert check("--short")[1] == "CRITICAL rack64: h03-gpu2 gpu.xid, 1 more\n"


def test_only_a_few_incidents_are_named(check, rack, judged):
    rack.host("h01", **LOST)
    for host in ("h03", "h05", "h07", "h09"):
        for gpu in range(4):
            rack.lose_gpu(f"{host}-gpu{gpu}")
    judged()
    code, line = check()
    assert code == 2
    assert re.search(r"h01 failed: .*; h03 failed: .*; h05 failed: .*; 2 more incidents \|", line), line


def test_maintenance_is_said_and_silences(check, rack, judged):
    rack.lose_gpu(GPU)
    at = rack.observation().at
    again = MaintenanceWindow("w2", "h03", "kim", "and a riser", at, at + 7200)
    judged(windows=(MaintenanceWindow("w1", "h03", "ops", "new fans", at, at + 3600), again))
    assert " ok; maintenance on h03 |" in check()[1]
    judged(windows=(MaintenanceWindow("w1", "h03", "ops", "new fans", at, at + 3600),))
    code, line = check()
    assert code == 0
    assert "; maintenance on h03 |" in line
    document = json.loads(check("-o", "json")[1])
    (window,) = document["maintenance"]
    assert (window["component"], window["comment"], window["open"]) == ("h03", "new fans", True)
    gpu = next(component for component in document["components"] if component["id"] == GPU)
    assert (gpu["state"], gpu["counts_as"], gpu["maintenance"]) == ("disabled", "disabled", "h03 by ops: new fans")


def test_maintenance_to_come_is_not_said(check, rack, judged):
    at = rack.observation().at
    judged(windows=(MaintenanceWindow("w1", "h03", "ops", "new fans", at + 60, at + 3600),))
    assert "maintenance" not in check()[1]


def test_the_document_says_who_knows_what_and_what_belongs_together(check, rack, judged):
    for gpu in range(4):
        rack.lose_gpu(f"h03-gpu{gpu}")
    judged(KNOWN)
    document = json.loads(check("-o", "json")[1])
    (incident,) = document["incidents"]
    assert (incident["cause"], incident["state"]) == ("h03", "failed")
    assert GPU in incident["members"]
    gpu = next(component for component in document["components"] if component["id"] == GPU)
    assert (gpu["state"], gpu["counts_as"]) == ("failed", "ok")
    assert [(f["acknowledged"], f["incident"]) for f in gpu["findings"]] == [("by ops: part ordered", incident["id"])]
    assert gpu["findings"][0]["case"]


def test_a_look_that_could_not_be_kept_is_said_and_changes_no_code(check, judged):
    judged(not_kept="the store cannot be written: disk | full")
    code, line = check()
    assert code == 0
    assert "; not remembered: the store cannot be written: disk / full |" in line


# -- status -----------------------------------------------------------------------------------------------------------


def sections(out):
    """The tables of piped output, each by the words of its heading."""
    return {block.split("\n")[0]: block.split("\n")[1:] for block in out.strip().split("\n\n")[1:]}


def test_status_shows_who_knows_of_a_finding_and_does_not_hide_it(lumctl, rack, judged):
    rack.lose_gpu(GPU)
    judged()
    assert "ACKNOWLEDGED" not in lumctl("status")[1]
    judged(KNOWN)
    code, out = lumctl("status", "--ascii")
    assert code == ExitCode.UNHEALTHY
    row = next(line for line in out.splitlines() if f" {GPU} " in line and " active " in line)
    assert row.split()[:2] == ["X", "failed"]
    assert "acknowledged: nvidia-smi does not list it" in row
    (findings,) = [rows for heading, rows in sections(out).items() if heading.endswith("ACKNOWLEDGED")]
    assert findings[0].endswith("by ops: part ordered")


def test_status_shows_maintenance_and_incidents(lumctl, rack, judged):
    at = rack.observation().at
    for gpu in range(4):
        rack.lose_gpu(f"h03-gpu{gpu}")
    rack.lose_gpu("h05-gpu0")
    now = MaintenanceWindow("w1", "h05", "ops", "new fans", at, at + 3600)
    soon = MaintenanceWindow("w2", "h07", "ops", "new disk", at + 600, at + 3600)
    judged(windows=(now, soon))
    _, out = lumctl("status", "--ascii")
    tables = sections(out)
    (incidents,) = [rows for heading, rows in tables.items() if heading.startswith("STATE") and "CAUSE" in heading]
    assert incidents[0].split()[:3] == ["X", "failed", "h03"]
    (windows,) = [rows for heading, rows in tables.items() if heading.startswith("MAINTENANCE OF")]
    assert [row.split()[0] for row in windows] == ["h05", "h07"]
    assert "(to come)" not in windows[0]
    assert "(to come)" in windows[1]
    row = next(line for line in out.splitlines() if " h05-gpu0 " in line and " active " in line)
    assert row.split()[:2] == ["-", "disabled"]
    assert "in maintenance: nvidia-smi does not list it" in row
    well = next(line for line in out.splitlines() if " h05-gpu1 " in line)
    assert well.endswith("maintenance: h05 by ops: new fans")


def test_the_status_document_says_it_as_data(lumctl, rack, judged):
    at = rack.observation().at
    for gpu in range(4):
        rack.lose_gpu(f"h03-gpu{gpu}")
    judged(KNOWN, windows=(MaintenanceWindow("w1", "h05", "ops", "new fans", at, at + 3600),))
    said = json.loads(lumctl("status", "-o", "json")[1])
    (incident,) = said["incidents"]
    assert (incident["cause"], incident["rule"], incident["state"]) == ("h03", "gpu.lost", "failed")
    assert [window["id"] for window in said["maintenance"]] == ["w1"]
    accelerators = {a["id"]: a for a in said["accelerators"]}
    assert accelerators["h05-gpu0"]["maintenance"] == "h05 by ops: new fans"
    assert [(f["acknowledged"], f["incident"]) for f in accelerators[GPU]["findings"]] == [
        ("by ops: part ordered", incident["id"])
    ]
    assert accelerators["h03-gpu0"]["findings"][0]["acknowledged"] is None
