"""The study of recovery: the parts of the published timeline, and a broken one."""

from dataclasses import replace

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.studies import recovery, run_study


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
    assert float(last["times_faster"]) == pytest.approx(25.6 / 24.5)


def test_a_timeline_in_which_the_fabric_takes_the_time_of_the_restart_changes_the_verdicts(monkeypatch):
    first, *others = recovery.TIMELINE
    monkeypatch.setattr(recovery, "TIMELINE", (replace(first, ends_s=4.4), *others))
    changed = {each.claim.id for each in result("fabric_s=4.4").claims if each.has_changed}
    assert changed == {"recovery.replacement", "recovery.restart"}


def test_a_recovery_with_another_fabric_is_no_published_one():
    verdicts = {each.claim.id: each.verdict for each in result("fabric_s=2").claims}
    assert verdicts["recovery.replacement"] is None
    assert verdicts["recovery.circuits"] == "not testable here"


def test_wrong_input_is_one_line(capsys):
    assert run(["study", "run", "recovery", "--set", "fabric_s=0"]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines()[0] == "lumctl: fabric_s is 0, expected 1e-06 to 3600"
