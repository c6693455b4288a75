"""``lumctl status``: the document that scripts rely on, the tables, and the exit code."""

import json
import sys
from dataclasses import replace

import pytest
import rack_states

from lumctl.cli.live import repeat
from lumctl.cli.main import run
from lumctl.cli.output import Output
from lumctl.cli.status import StatusSelection, select
from lumctl.cli.views import summary
from lumctl.context import Context
from lumctl.context.roll_call import ComponentAnswer
from lumctl.devices.types import Alarm, Neighbour
from lumctl.errors import ExitCode, RefusedError
from lumctl.fleet.readings import ProbeStatus
from lumctl.health.observation import host_states
from lumctl.health.states import State
from lumctl.store import open_store
from lumctl.swap import suggestions

GPU = "h03-gpu2"


@pytest.fixture
def status(rack, monkeypatch, capsys, tmp_path):
    """Run the command on the collected rack; returns exit code and stdout."""
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path))
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
    assert {k: circuit[k] for k in ("direction", "owner", "state", "loss_db", "device", "devices")} == {
        "direction": "duplex",
        "owner": "train-a",
        "state": "ok",
        "loss_db": 6.25,
        "device": "rail0",
        "devices": ["rail0"],
    }
    assert circuit["ends"][0] == {
        "device": "rail0",
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
    assert said["out_of_service"] == {"swapped_out": 1}
    assert "accelerators: 1 disabled (1 swapped out), 63 ok; " in status()[1]


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
    assert "hosts: 1 failed, 15 ok" in lines[1]
    assert any(line.split()[:4] == ["+", "ok", "h[01-02,04-16]", "15"] for line in lines)
    assert any(line.split()[:4] == ["X", "failed", "h03", "1"] and f"{GPU} is failed" in line for line in lines)
    row = next(line for line in lines if GPU in line and "train-a/18" in line and "active" in line)
    assert row.split()[:2] == ["X", "failed"]
    assert row.endswith("GSP RPC time-out (XID 119)")
    assert "train-a/18" in row
    assert "\x1b" not in out


def test_what_lies_behind_a_lost_host_points_at_it(status, rack):
    rack.host("h03", reachable=False, error="h03: no route", gpus=(), probes={})
    _, out = status("--ascii")
    row = next(line for line in out.splitlines() if GPU in line.split())
    assert row.split()[:2] == ["?", "unknown"]
    assert row.endswith("  h03: no route")


def test_what_is_wrong_comes_first_with_a_whole_command(status, rack):
    rack.xid(GPU, 79)
    _, out = status("--ascii")
    lines = out.splitlines()
    at = lines.index("to do")
    assert at == 3
    assert lines[at + 1] == f"  X failed  {GPU} (train-a/18): fell off the bus (XID 79)"
    assert lines[at + 2].split() == [
        *("lumctl", "-i", str(rack.inventory.path), "--target", "sim", "swap", "plan", "--failed", GPU)
    ]
    assert "then repair h03-gpu2: drain" in lines[at + 3]
    (remedy,) = document(status)[1]["remedies"]
    assert (remedy["cause"], remedy["ranks"], remedy["replace"]) == (GPU, ["train-a/18"], [GPU])
    assert remedy["command"] == lines[at + 2].strip()


def test_a_swap_that_would_be_refused_is_not_suggested(status, rack, monkeypatch):
    refused = RefusedError("no spare can replace h03-gpu2")
    monkeypatch.setattr(suggestions, "try_swap", lambda *_words, **_options: refused)
    rack.xid(GPU, 79)
    (remedy,) = document(status)[1]["remedies"]
    assert remedy["command"] == ""
    assert remedy["by_hand"].startswith("drain and power-cycle the host")
    assert remedy["by_hand"].endswith("; no spare can replace h03-gpu2")
    _, out = status("--ascii")
    assert "swap plan" not in out
    assert f"health explain {GPU}" in out


@pytest.mark.parametrize("spoilt", [{"alarms": (Alarm("psu", "CRITICAL"),)}, {"problem": "refused"}])
def test_what_a_person_has_to_mend_is_explained_by_a_command(status, rack, spoilt):
    rack.device("rail0", **spoilt)
    _, out = status("--ascii")
    assert out.split("to do")[1].split("STATE")[0].rstrip().endswith("health explain rail0")


@pytest.fixture
def _on_terminal(monkeypatch):
    """Make stdout a terminal of 80 columns, without a pager."""
    monkeypatch.setattr(Output, "on_terminal", True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.usefixtures("_on_terminal")
def test_on_a_terminal_what_is_ok_is_counted(status, rack):
    rack.xid(GPU, 79)
    _, out = status("--ascii")
    assert "h01-gpu0" not in out
    assert "ok and not listed: 15 hosts, 4 devices, 63 accelerators, 60 circuits (--all" in out
    _, out = status("--ascii", "--all")
    assert "h01-gpu0" in out
    assert "not listed" not in out


@pytest.mark.usefixtures("_on_terminal")
def test_no_word_is_broken_and_no_line_is_longer_than_the_terminal(status, rack):
    rack.xid(GPU, 79)
    rack.module("h01-gpu0-b", rx_power_dbm=float("-inf"))
    _, out = status("--ascii", "--all")
    assert {"h03-gpu2", "train-a/18", "h01-gpu0-b", "train-b/27-21", "failed"} <= set(out.split())
    tables = [line for line in out.splitlines() if "lumctl " not in line]
    assert max(map(len, tables)) <= 80


@pytest.mark.parametrize(
    ("options", "accelerators", "code"),
    [
        (["--failed"], [GPU], ExitCode.UNHEALTHY),
        (["--host", "h03"], [f"h03-gpu{n}" for n in range(4)], ExitCode.UNHEALTHY),
        (["--host", "h[01-02]"], [f"h0{h}-gpu{n}" for h in (1, 2) for n in range(4)], ExitCode.DONE),
        (["--host", "h01,h03", "--failed"], [GPU], ExitCode.UNHEALTHY),
        (["--job", "train-a", "--host", "h03", "--failed"], [GPU], ExitCode.UNHEALTHY),
        (["--job", "train-b", "--failed"], [], ExitCode.DONE),
        (["--job", "train-b", "--host", "h03"], [], ExitCode.DONE),
    ],
)
def test_a_part_is_selected_with_its_own_exit_code(status, rack, options, accelerators, code):
    rack.xid(GPU, 79)
    got, out = status(*options, "-o", "json")
    said = json.loads(out)
    assert ([a["id"] for a in said["accelerators"]], got) == (accelerators, code)
    assert [remedy["cause"] for remedy in said["remedies"]] == ([GPU] if code else [])


@pytest.mark.parametrize("options", [["--failed"], ["--host", "h03"], ["--job", "train-a", "--failed"]])
def test_a_part_is_printed_for_people_though_its_host_or_its_spare_is_left_out(status, rack, options):
    rack.xid(GPU, 79)
    code, out = status(*options)
    assert code == ExitCode.UNHEALTHY
    assert f"swap plan --failed {GPU}" in out
    assert any(line.split()[:3] == ["✖", "failed", GPU] for line in out.splitlines())


def test_the_circuits_of_a_job_and_their_devices_are_its_part(status):
    said = json.loads(status("--job", "train-b", "-o", "json")[1])
    assert {circuit["owner"] for circuit in said["circuits"]} == {"train-b"}
    assert len(said["devices"]) == 4
    assert "h16" not in {host["id"] for host in said["hosts"]}


def test_a_host_of_which_a_job_uses_a_part_is_ok():
    seen = replace(rack_states.all_ok(), assignment={"train-a": ("h01-gpu0",)})
    part = select(seen, StatusSelection(failed=False, jobs=("train-a",))).observation
    assert list(part.report.accelerators) == ["h01-gpu0"]
    assert host_states(part)["h01"] is State.OK
    assert summary(part)["hosts"]["unknown"] == 0


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--host", "h3"], "did you mean h03?"),
        (["--job", "train-c"], "did you mean train-"),
        (["--host", "h[01-"], "bracket"),
        (["--job", "zz"], "it has train-a, train-b"),
    ],
)
def test_an_unknown_part_is_refused_with_the_nearest(rack, capsys, options, hint):
    assert run(["-i", str(rack.inventory.path), "--target", "sim", "status", *options]) == ExitCode.USAGE
    assert hint in capsys.readouterr().err


def test_the_picture_goes_to_standard_output(status, rack):
    rack.xid(GPU, 79)
    code, out = status("-o", "svg")
    assert code == ExitCode.UNHEALTHY
    assert out.startswith("<svg")
    assert GPU in out
    assert out.rstrip().endswith("</svg>")


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


@pytest.mark.parametrize("died", [True, False])
def test_a_daemon_that_died_is_reported_beside_the_status(rack, monkeypatch, capsys, died):
    monkeypatch.setattr(Context, "observe", lambda _: rack.observation())
    monkeypatch.setattr("lumctl.daemon.client.has_died", lambda *_: died)
    run(["-i", str(rack.inventory.path), "--target", "sim", "status", "-o", "json"])
    said = capsys.readouterr()
    assert json.loads(said.out)["schema"] == "lumctl/status/v1"
    assert ("warning: the daemon died" in said.err) is died
    assert (f"start it: lumctl -i {rack.inventory.path} --target sim watch" in said.err) is died


@pytest.mark.parametrize("command", ["status", "swap plan", "check", "spare list"])
def test_a_target_that_was_forgotten_is_said(rack, monkeypatch, capsys, command):
    for host in rack.inventory.hosts:
        rack.host(host, reachable=False, error="no route to host", probes={})
    monkeypatch.setattr(Context, "observe", lambda _, **_how: rack.observation())
    monkeypatch.setattr("lumctl.devices.endpoints.simulator_runs", lambda _: True)
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)
    said = "a simulator of this inventory runs; to use it, add --target sim to each command"
    run(["-i", str(rack.inventory.path), *command.split()])
    assert said in "".join(capsys.readouterr())
    run(["-i", str(rack.inventory.path), "--target", "rack", *command.split()])
    assert said not in "".join(capsys.readouterr())


@pytest.mark.parametrize("command", ["swap list", "runbook list", "slice list", "spare queue", "device list"])
def test_a_list_that_shows_nothing_says_that_a_simulator_may_be_meant(rack, monkeypatch, capsys, tmp_path, command):
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path))
    silent = ComponentAnswer("rail0", "mesh", "smartlight", "rail0:1", problem="no route to host", unreachable=True)
    monkeypatch.setattr("lumctl.context.roll_call.call", lambda _: [silent])
    monkeypatch.setattr("lumctl.devices.endpoints.simulator_runs", lambda _: True)
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)
    said = "a simulator of this inventory runs: if that was meant, add --target sim"
    run(["-i", str(rack.inventory.path), *command.split()])
    assert said in capsys.readouterr().err
    run(["-i", str(rack.inventory.path), "--target", "rack", *command.split()])
    assert said not in capsys.readouterr().err
    monkeypatch.setattr("lumctl.devices.endpoints.simulator_runs", lambda _: False)
    run(["-i", str(rack.inventory.path), *command.split()])
    assert said not in capsys.readouterr().err


def test_names_that_do_not_resolve_are_one_thing_to_do(status, rack):
    for host in ("h03", "h04", "h05"):
        rack.host(host, reachable=False, error=f"{host} port 22: name '{host}' cannot be resolved", probes={}, gpus=())
    code, said = status()
    assert code == ExitCode.UNREACHABLE
    assert said.count("add its name to DNS") == 1 + 3  # once to do, once for each finding
    assert "h03: h03 port 22: name 'h03' cannot be resolved; likewise h[04-05]" in said
    assert "h03: h03 port 22" not in said.partition("ACCELERATOR")[2]


def test_of_the_jobs_that_wait_for_spares_those_of_what_is_selected_are_listed(status, rack):
    store = open_store(rack.inventory, "rack64", "sim")
    store.demands.ask("rack64", {"train-a": (GPU,)}, why="no spare is free", who="ann@console", at=1.0)
    store.close()

    def waiting(*selection):
        return [row["id"] for row in json.loads(status(*selection, "-o", "json")[1])["waiting"]]

    for selection in ((), ("--host", "h03"), ("--job", "train-a"), ("--failed",)):
        assert waiting(*selection) == ["demand-0001"], selection
    assert waiting("--host", "h04") == waiting("--job", "train-b") == []


def test_before_a_host_is_drained_its_other_ranks_are_named_with_the_command_that_moves_them(status, rack, monkeypatch):
    rack.xid(GPU, 79)
    rack.xid("h16-gpu0", 79)
    remedies = {remedy["cause"]: remedy for remedy in document(status)[1]["remedies"]}
    told = "before you drain h03, move train-a ranks 2, 10, 26"
    command = f"lumctl -i {rack.inventory.path} --target sim swap plan --failed h03 --even-if-healthy"
    assert remedies[GPU]["drain"] == {"host": "h03", "words": told, "command": command}
    assert remedies["h16-gpu0"]["drain"] is None, "no rank runs on h16"
    lines = [line.strip() for line in status()[1].splitlines()]
    assert lines[lines.index(f"{told}:") + 1] == command

    def refuse(*_words, **_options):
        return RefusedError("no spare can replace h03-gpu0: h16-gpu0: is failed")

    monkeypatch.setattr(suggestions, "try_swap", refuse)
    (drain,) = (remedy["drain"] for remedy in document(status)[1]["remedies"] if remedy["cause"] == GPU)
    assert drain["words"] == f"{told}; no swap can move them now: no spare can replace h03-gpu0"
    assert drain["command"] == ""
