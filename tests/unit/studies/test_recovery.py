"""The study of recovery: the parts of the published timeline, and a broken one."""

import json
from dataclasses import replace

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.studies import recovery, run_study
from lumctl.studies.database import query
from lumctl.training.timeline import KnownBy, Timeline

SWAP_S = {"detected": 0.01, "planned": 0.02, "circuits": 0.09, "verified": 0.1, "joined": 0.15, "step": 0.2}
RECOVERY = {
    "schema": "lumctl/demo-recover/v1",
    **Timeline.since(1e9, KnownBy.KILL, {name: 1e9 + after for name, after in SWAP_S.items()}).document(),
    "machine": "2 cores of a test",
}
BANDWIDTH = {
    "schema": "lumctl/bandwidth-bench/v1",
    "machine": "2 cores of a test",
    "date": "2026-11-28",
    "figures": [{"name": "stream, worst", "swap_mbps": 50.0, "detour_mbps": 25.0, "published": [2.0, 2.0]}],
}


def result(*given):
    return run_study(recovery.STUDY, recovery.STUDY.settings(given, quick=True))


def test_nearly_all_of_the_published_recovery_is_the_restart():
    rows = [row for row in result().rows if row["fabric_s"] == 1.1]
    restart_s = sum(float(row["seconds"]) for row in rows if row["part"] == "restart")
    assert [float(row["ends_s"]) for row in rows] == pytest.approx([1.1, 4.5, 14.5, 16.6, 25.6])
    assert restart_s == pytest.approx(24.5)
    assert restart_s / 25.6 > 0.95


def test_a_fabric_that_takes_no_time_shortens_the_recovery_by_its_own_part_only():
    last = result("fabric_s=0.000001").rows[-1]
    assert float(last["ends_s"]) == pytest.approx(24.5)
    assert float(last["times"]) == pytest.approx(25.6 / 24.5)


def test_a_timeline_in_which_the_fabric_takes_the_time_of_the_restart_changes_the_verdicts(monkeypatch):
    first, *others = recovery.MORPHLUX.moments
    slow = replace(recovery.MORPHLUX, moments=(replace(first, seconds=4.4), *others), failure_to_circuits_s=4.4)
    monkeypatch.setattr(recovery, "MORPHLUX", slow)
    changed = {each.claim.id for each in result("fabric_s=4.4").claims if each.has_changed}
    assert changed == {"recovery.replacement", "recovery.restart"}


def kept(tmp_path, **documents):
    """The options that name files with these documents."""
    words = []
    for name, document in documents.items():
        (tmp_path / name).write_text(document if isinstance(document, str) else json.dumps(document))
        words += ["--measured", str(tmp_path / name)]
    return words


def test_measured_recoveries_and_bandwidths_have_rows_with_machine_and_date(tmp_path, capsys):
    words = kept(tmp_path, recovery=RECOVERY, bandwidth=BANDWIDTH)
    assert run(["study", "run", "recovery", "-o", "json", "--out", str(tmp_path / "run"), *words]) == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    timed = {row["phase"]: row for row in document["rows"] if row["source"] == "demo recover"}
    verified, step = timed["every receiver proved"], timed["step done again"]
    assert (verified["part"], verified["ends_s"], verified["published_s"], verified["fabric_s"]) == (
        *("fabric", 0.1, 1.1, 0.1),
    )
    assert (step["part"], step["ends_s"], step["published_s"], step["times"]) == ("restart", 0.2, 25.6, "-")
    assert (verified["machine"], verified["date"]) == ("2 cores of a test", "2001-09-09")
    (ratio,) = (row for row in document["rows"] if row["source"] == "bandwidth bench")
    assert (ratio["times"], ratio["published_times"], ratio["date"]) == (2.0, "2", "2026-11-28")
    assert all(row["not_comparable"] != "-" for row in (verified, ratio))
    assert [each["verdict"] for each in document["claims"]] == [each["recorded"] for each in document["claims"]]
    assert run(["study", "figure", "recovery", "--from", str(tmp_path / "run"), "--svg", str(tmp_path / "a.svg")]) == 0
    assert query(tmp_path / "run", "select count(*) from rows where source = 'demo recover'")[1] == [(len(timed),)]


def test_a_run_continues_with_the_same_measurements_only(tmp_path, capsys):
    words = ["study", "run", "recovery", "--out", str(tmp_path / "run")]
    assert run([*words, *kept(tmp_path, a=RECOVERY)]) == ExitCode.DONE
    capsys.readouterr()
    assert run([*words, "--resume", *kept(tmp_path, a=BANDWIDTH)]) != ExitCode.DONE
    assert "other measurements" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "is not JSON: Expecting property name"),
        ("[]", "has no measurement: its schema is None"),
        ({"schema": "lumctl/demo/v1"}, "has no measurement: its schema is 'lumctl/demo/v1'"),
        ({**RECOVERY, "spans": [{}]}, "is no complete measurement of lumctl/demo-recover/v1: KeyError('starts_s')"),
        ({**RECOVERY, "t0": 1e300}, "is no complete measurement of lumctl/demo-recover/v1: "),
        ({**RECOVERY, "t0": True}, "is no complete measurement of lumctl/demo-recover/v1: "),
        ({**BANDWIDTH, "figures": [{**BANDWIDTH["figures"][0], "detour_mbps": 0}]}, "is no complete measurement of "),
    ],
)
def test_a_file_that_is_no_measurement_is_one_line(tmp_path, capsys, document, said):
    assert run(["study", "run", "recovery", *kept(tmp_path, file=document)]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines()[0].startswith(f"lumctl: {tmp_path / 'file'} {said}")


def test_a_study_without_measurements_refuses_them(tmp_path, capsys):
    assert run(["study", "run", "rails", *kept(tmp_path, file=RECOVERY)]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines()[0] == "lumctl: study rails takes no measurements"


def test_a_recovery_with_another_fabric_is_no_published_one():
    verdicts = {each.claim.id: each.verdict for each in result("fabric_s=2").claims}
    assert verdicts["recovery.replacement"] is None
    assert verdicts["recovery.circuits"] == "not testable here"


def test_wrong_input_is_one_line(capsys):
    assert run(["study", "run", "recovery", "--set", "fabric_s=0"]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines()[0] == "lumctl: fabric_s is 0, expected 1e-06 to 3600"
