"""``lumctl check``: the convention of monitoring plug-ins, in every circumstance."""

import json
import re
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lumctl.cli.main import run
from lumctl.context import Context
from lumctl.daemon.client import socket_path
from lumctl.daemon.history import LatestObservation
from lumctl.daemon.service import observation_server
from lumctl.devices.errors import DeviceUnreachableError

GPU = "h03-gpu2"
LINE = re.compile(r"LUMCTL (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+( \| [^|\n]+)?\n")
PERFORMANCE = re.compile(r"[a-z_]+=[0-9.]+(s|);;;0(;[0-9]+)?")


@pytest.fixture
def check(rack, monkeypatch, capsys):
    """Run the command on the collected rack; returns exit code and its one line."""
    monkeypatch.setattr(Context, "observe", lambda _, **__: rack.observation())

    def command(*arguments, inventory=rack.inventory.path):
        code = run(["-i", str(inventory), "check", *arguments])
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, captured.out

    return command


def test_a_rack_that_is_well(check):
    code, line = check()
    assert code == 0
    assert line.startswith("LUMCTL OK - rack64: 64 accelerators, 60 circuits ok | accelerators_ok=64;;;0;64 ")


def test_a_failed_accelerator_is_critical_and_named(check, rack):
    rack.lose_gpu(GPU)
    rack.xid(GPU, 79)
    code, line = check()
    assert code == 2
    said, performance = line.strip().split(" | ")
    assert said == "LUMCTL CRITICAL - rack64: 1 of 64 accelerators failed (h03-gpu2: fell off the bus (XID 79))"
    assert "accelerators_ok=63;;;0;64" in performance
    assert all(PERFORMANCE.fullmatch(item) for item in performance.split())


@pytest.mark.parametrize(("lost", "worn"), [("h01-gpu0", "h03-gpu2"), ("h03-gpu2", "h01-gpu0")])
def test_of_failed_accelerators_the_lost_one_is_named_first(check, rack, lost, worn):
    rack.gpu(worn, remap_failed=True)
    rack.xid(lost, 79)
    assert f"2 of 64 accelerators failed ({lost}: fell off the bus (XID 79), {worn}: a row remap failed)" in check()[1]
    assert check("--short")[1] == f"CRITICAL rack64: {lost} gpu.xid, 1 more\n"


def test_a_lost_host_is_named_before_a_failed_accelerator(check, rack):
    rack.gpu(GPU, remap_failed=True)
    rack.host("h09", reachable=False, error="no route to host", probes={})
    said = check()[1]
    assert said.index("1 of 16 hosts failed (h09: no route to host)") < said.index("1 of 64 accelerators failed")
    assert check("--short")[1].startswith("CRITICAL rack64: h09 host.unreachable, ")


def test_what_affects_a_job_is_named_before_a_mesh_that_only_cannot_be_changed(check, rack):
    rack.device("rail0", problem="connection refused")
    rack.gpu(GPU, remap_failed=True)
    said = check()[1]
    assert said.index("1 of 64 accelerators failed") < said.index("1 of 4 devices failed (rail0: connection refused)")
    assert check("--short")[1] == f"CRITICAL rack64: {GPU} gpu.row-remap, 1 more\n"


def test_a_degraded_one_is_a_warning(check, rack):
    rack.gpu(GPU, ecc_volatile_uncorrectable=2)
    code, line = check()
    assert code == 1
    assert line.startswith(
        "LUMCTL WARNING - rack64: 1 of 64 accelerators degraded (h03-gpu2: 2 uncorrectable ECC errors"
    )


def test_what_is_unknown_is_never_ok(check, rack):
    rack.hears("h01-gpu0-b")
    code, line = check()
    assert code == 3
    assert "UNKNOWN - rack64: 1 of 60 circuits unknown (train-a/0-1: h01-gpu0-b: light present" in line


def test_the_worst_comes_first_and_only_a_few_are_named(check, rack):
    for host in range(1, 9):
        rack.xid(f"h0{host}-gpu0", 79)
    rack.gpu("h01-gpu1", ecc_volatile_uncorrectable=2)
    code, line = check()
    assert code == 2
    assert "8 of 64 accelerators failed (h01-gpu0: " in line
    assert "5 more); 1 of 64 accelerators degraded |" in line


def test_evidence_cannot_break_the_line(check, rack):
    rack.device("rail0", problem="said | garbage\nand more")
    code, line = check()
    assert code == 2
    assert LINE.fullmatch(line)
    assert "said / garbage and more" in line


@pytest.mark.parametrize(
    "arguments",
    [["--bogus"], ["--textfile"], ["surplus"], ["--target", "moon"], ["-o", "xml"]],
)
def test_a_wrong_command_line_is_unknown(check, arguments):
    code, line = check(*arguments)
    assert code == 3
    assert LINE.fullmatch(line)
    assert line.startswith("LUMCTL UNKNOWN - ")


def test_a_broken_inventory_is_unknown_in_one_line(check, tmp_path):
    broken = tmp_path / "lumctl.yaml"
    broken.write_text("lumctl: 1\nracks: [\n")
    code, line = check(inventory=broken)
    assert code == 3
    assert LINE.fullmatch(line)
    assert "lumctl.yaml" in line


@pytest.mark.parametrize(
    ("error", "words"),
    [(DeviceUnreachableError("h03 is silent"), "h03 is silent"), (ValueError("odd"), "unexpected ValueError: odd")],
)
def test_whatever_goes_wrong_is_unknown_and_never_critical(check, monkeypatch, error, words):
    def observe(_, **__):
        raise error

    monkeypatch.setattr(Context, "observe", observe)
    assert check() == (3, f"LUMCTL UNKNOWN - {words}\n")


def test_help_is_help(check):
    code, out = check("--help")
    assert code == 0
    assert "--textfile" in out


def test_the_text_file_is_whole_readable_and_leaves_nothing_beside_it(check, rack, tmp_path):
    rack.lose_gpu(GPU)
    rack.module("h01-gpu0-b", rx_power_dbm=float("-inf"))
    path = tmp_path / "lumctl.prom"
    path.write_text("old")
    assert check("--textfile", str(path))[0] == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }
    here = ("target", "sim")
    known = ("kind", "accelerator"), ("state", "failed"), here
    assert samples["lumctl_component_state", ("id", GPU), *known] == 1
    lane = ("lane", "h01-gpu0-b")
    assert samples["lumctl_circuit_rx_power_dbm", ("circuit", "train-a/0-1"), lane, here] == float("-inf")
    assert samples["lumctl_check_timestamp_seconds", here] == 1_800_000_000
    assert not any(name[0].endswith("_age_seconds") for name in samples)


def test_a_text_file_that_cannot_be_written_is_unknown_and_leaves_no_rest(check, tmp_path):
    (tmp_path / "folder").mkdir()
    code, line = check("--textfile", str(tmp_path / "folder"))
    assert code == 3
    assert "cannot write" in line
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]
    assert check("--textfile", str(tmp_path / "absent" / "x.prom"))[0] == 3


def test_where_a_daemon_runs_its_look_is_judged(rack, monkeypatch, capsys):
    short = Path(tempfile.mkdtemp(prefix="lumctl-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    monkeypatch.setattr(Context, "observe", lambda *_, **__: rack.observation())
    well, newest = rack.observation(), LatestObservation()
    newest.put(well)
    rack.xid(GPU, 79)
    command = ["-i", str(rack.inventory.path), "check", "-v"]
    with observation_server(socket_path(rack.inventory, "rack"), newest):
        assert run(command) == 0
        assert "read by the daemon" in capsys.readouterr().err
        assert run([*command, "--fresh"]) == 2
        assert "read directly" in capsys.readouterr().err
    assert run(command) == 2
    assert "read directly: no daemon" in capsys.readouterr().err
    shutil.rmtree(short)


def test_the_verdict_as_data(check, rack):
    rack.xid(GPU, 79)
    code, out = check("-o", "json")
    said = json.loads(out)
    assert code == 2
    assert (said["schema"], said["state"]) == ("lumctl/check/v1", "failed")
    component = next(c for c in said["components"] if c["id"] == GPU)
    assert (component["kind"], component["state"]) == ("accelerator", "failed")
    assert component["findings"][0]["rule"] == "gpu.xid"


def test_short_is_the_gravest_by_name_and_rule(check, rack):
    assert check("--short") == (0, "OK rack64: 64 accelerators, 60 circuits ok\n")
    rack.gpu("h01-gpu1", ecc_volatile_uncorrectable=2)
    rack.hears("h01-gpu0-b")
    rack.xid(GPU, 79)
    code, line = check("--short")
    assert code == 2
    assert line == "CRITICAL rack64: h03-gpu2 gpu.xid, 2 more\n"


def test_short_names_an_incident_by_its_cause(check, rack):
    rack.host("h05", reachable=False, error="no route to host", gpus=(), probes={}, attempts=3)
    code, line = check("--short")
    assert code == 2
    assert line == "CRITICAL rack64: h05 host.unreachable\n"


def test_short_is_no_data(check):
    code, line = check("--short", "-o", "json")
    assert code == 3
    assert line == "LUMCTL UNKNOWN - --short prints a line for people, -o json prints data: choose one of them\n"
