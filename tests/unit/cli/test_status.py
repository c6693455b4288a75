"""``lumctl status``: the document that scripts rely on, the tables, and the exit code."""

import json
import sys

import pytest

from lumctl.cli.live import repeat
from lumctl.cli.main import run
from lumctl.context import Context
from lumctl.devices.types import Alarm, Neighbour
from lumctl.errors import ExitCode
from lumctl.fleet.readings import ProbeStatus

GPU = "h03-gpu2"


@pytest.fixture
def status(rack, monkeypatch, capsys):
    """Run the command on the collected rack; returns exit code and stdout."""
    monkeypatch.setattr(Context, "observe", lambda _: rack.observation(losses={"train-a/0-1": 6.25}))

    def command(*arguments):
        code = run(["-i", str(rack.inventory.path), "--target", "sim", "status", *arguments])
        return code, capsys.readouterr().out

    return command


def document(status):
    code, out = status("-o", "json")
    return code, json.loads(out)


def test_the_document_has_the_promised_fields(status):
    code, said = document(status)
    assert code == ExitCode.DONE
    assert said["schema"] == "lumctl/status/v1"
    assert (said["target"], said["racks"]) == ("sim", ["rack64"])
    accelerator = next(a for a in said["accelerators"] if a["id"] == GPU)
    assert {k: accelerator[k] for k in ("host", "role", "job", "rank", "state", "age_s", "findings")} == {
        "host": "h03",
        "role": "active",
        "job": "train-a",
        "rank": 18,
        "state": "ok",
        "age_s": 1.0,
        "findings": [],
    }
    assert accelerator["readings"]["temperature_c"] == 44.0
    circuit = next(c for c in said["circuits"] if c["id"] == "train-a/0-1")
    assert {k: circuit[k] for k in ("direction", "owner", "state", "loss_db", "device")} == {
        "direction": "duplex",
        "owner": "train-a",
        "state": "ok",
        "loss_db": 6.25,
        "device": "rail0",
    }
    assert circuit["ends"][0] == {
        "port": 5,
        "lane": "h01-gpu0-b",
        "rx_power_dbm": -6.0,
        "dark": False,
        "hears": "h02-gpu0-a",
        "expected": "h02-gpu0-a",
    }
    assert (len(said["accelerators"]), len(said["links"]), len(said["hosts"])) == (64, 128, 16)
    assert said["summary"]["accelerators"]["ok"] == 64


def test_darkness_survives_json(status, rack):
    rack.module("h01-gpu0-b", rx_power_dbm=float("-inf"))
    code, said = document(status)
    assert code == ExitCode.UNHEALTHY
    circuit = next(c for c in said["circuits"] if c["id"] == "train-a/0-1")
    assert (circuit["ends"][0]["rx_power_dbm"], circuit["ends"][0]["dark"]) == (None, True)
    assert circuit["findings"][0]["rule"] == "circuit.dark"


def test_a_finding_says_rule_evidence_and_advice(status, rack):
    rack.lose_gpu(GPU)
    rack.xid(GPU, 79)
    code, said = document(status)
    assert code == ExitCode.UNHEALTHY
    accelerator = next(a for a in said["accelerators"] if a["id"] == GPU)
    assert (accelerator["state"], accelerator["age_s"]) == ("failed", None)
    finding = accelerator["findings"][0]
    assert (finding["rule"], finding["evidence"]) == ("gpu.xid", "fell off the bus (XID 79)")
    assert "spare" in finding["advice"]


def test_a_swapped_out_accelerator_is_disabled_and_not_unhealthy(status, rack):
    rack.xid(GPU, 79)
    rack.assignment = {
        **rack.assignment,
        "train-a": tuple("h16-gpu2" if a == GPU else a for a in rack.assignment["train-a"]),
    }
    rack.hosts = {name: rack._well(host) for name, host in rack.inventory.hosts.items()}
    rack.xid(GPU, 79)
    code, said = document(status)
    assert code == ExitCode.DONE
    accelerators = {a["id"]: (a["role"], a["job"], a["state"]) for a in said["accelerators"]}
    assert accelerators[GPU] == ("disabled", None, "disabled")
    assert accelerators["h16-gpu2"] == ("active", "train-a", "ok")


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda rack: rack.host("h03", reachable=False, error="no route"), ExitCode.UNREACHABLE),
        (lambda rack: rack.device("rail0", problem="refused"), ExitCode.UNREACHABLE),
        (lambda rack: rack.device("rail0", alarms=None, unread={"alarms": "cut off"}), ExitCode.UNREACHABLE),
        (lambda rack: rack.device("rail0", alarms=(Alarm("psu", "CRITICAL"),)), ExitCode.UNHEALTHY),
        (lambda rack: rack.hears("h01-gpu0-b"), ExitCode.UNREACHABLE),
        (lambda rack: rack.gpu(GPU, ecc_volatile_uncorrectable=1), ExitCode.UNHEALTHY),
        (lambda rack: rack.probe("h03", "gpu", ProbeStatus.TIMED_OUT), ExitCode.UNHEALTHY),
        (lambda rack: rack.hears("h01-gpu0-b", Neighbour("h09", "eth2", 1.0)), ExitCode.UNHEALTHY),
        (lambda rack: rack.gpu(GPU, throttle_reasons=frozenset({"hw_slowdown"})), ExitCode.DONE),
    ],
)
def test_the_exit_code_tells_unhealthy_from_unreachable(status, rack, spoil, code):
    spoil(rack)
    assert status()[0] == code


def test_names_are_the_accelerators(status):
    _, out = status("-o", "name")
    names = out.splitlines()
    assert (len(names), names[0], names[-1]) == (64, "h01-gpu0", "h16-gpu3")


def test_piped_tables_fold_hosts_and_name_the_worst_finding(status, rack):
    rack.xid(GPU, 119)
    _, out = status("--ascii")
    lines = out.splitlines()
    assert lines[0].startswith("rack64  target: sim  ")
    assert lines[1].startswith("accelerators: 1 failed, 63 ok; circuits: 60 ok;")
    assert any(line.split()[:4] == ["+", "ok", "h[01-16]", "16"] for line in lines)
    row = next(line for line in lines if GPU in line)
    assert row.split()[:2] == ["X", "failed"]
    assert row.endswith("GSP RPC time-out (XID 119)")
    assert "train-a/18" in row
    assert "\x1b" not in out


def test_what_lies_behind_a_lost_host_points_at_it(status, rack):
    rack.host("h03", reachable=False, error="h03: no route", gpus=(), probes={})
    _, out = status("--ascii")
    row = next(line for line in out.splitlines() if GPU in line)
    assert row.split()[:2] == ["?", "unknown"]
    assert row.endswith("  h03: no route")


def test_wide_adds_links(status):
    assert "INTERFACE" not in status()[1]
    assert "INTERFACE" in status("-o", "wide")[1]


def test_watching_a_pipe_prints_again_each_time_until_interrupted(monkeypatch):
    shown = []

    def show():
        shown.append(len(shown))
        if len(shown) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    with pytest.raises(KeyboardInterrupt):
        repeat(show, 0.001)
    assert shown == [0, 1, 2]


def test_watching_ends_with_the_code_of_an_interrupt(status, rack, monkeypatch):
    looks = []

    def observe(_):
        looks.append(1)
        if len(looks) == 3:
            raise KeyboardInterrupt
        return rack.observation()

    monkeypatch.setattr(Context, "observe", observe)
    code, out = status("--watch", "--interval", "0.2", "-o", "name")
    assert code == ExitCode.INTERRUPTED
    assert len(out.splitlines()) == 128


@pytest.mark.parametrize("seconds", ["0", "1e12", "inf", "nan"])
def test_an_interval_that_is_no_pause_is_refused(status, seconds):
    assert status("--watch", "--interval", seconds)[0] == ExitCode.USAGE
