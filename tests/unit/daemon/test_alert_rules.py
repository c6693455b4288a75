"""Alert rules and the dashboard: promtool accepts them, they call when they should, and their metrics exist."""

import json
import re
import subprocess

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lumctl.daemon.history import LatestObservation, TransitionQueue
from lumctl.daemon.metrics.alerts_and_dashboard import alert_rules, dashboard
from lumctl.daemon.metrics.exporter import SelfMetrics, SpareMetrics
from lumctl.daemon.process import ErrorLog
from lumctl.daemon.spare_watcher import SpareWatcher
from lumctl.health.states import State

INTERVAL, AGE = "lumctl_watch_interval_seconds", "lumctl_watch_look_age_seconds"
WELL = {INTERVAL: 1.0, AGE: 0.5}
INCIDENT = 'lumctl_incident_since_timestamp_seconds{cause="h03",rule="host.lost",state="failed",acknowledged="%s"}'
FINDING = (
    'lumctl_finding_since_timestamp_seconds{target="rack",kind="accelerator",id="g1",rule="%s",'
    'state="%s",acknowledged="false",incident="%s"}'
)
MAINTENANCE = 'lumctl_component_in_maintenance{target="rack",kind="accelerator",id="g1"}'


@pytest.fixture
def called(require_program, tmp_path):
    """The alerts that fire after twenty minutes of these series, read once a minute."""
    promtool = require_program("promtool")
    (tmp_path / "rules.yml").write_text(alert_rules())

    def fire(*series, daemon=WELL):
        values = {**dict.fromkeys(series, 1), **daemon}
        given = [{"series": each, "values": f"{value}x60"} for each, value in values.items()]
        names = [rule["alert"] for rule in rules()]
        fired = []
        for name in names:
            test = {
                "interval": "1m",
                "input_series": given,
                "alert_rule_test": [{"eval_time": "20m", "alertname": name, "exp_alerts": []}],
            }
            (tmp_path / "test.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [test]}))
            done = subprocess.run(
                [promtool, "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            if done.returncode:
                assert f"alertname: {name}" in done.stdout + done.stderr
                fired.append(name)
        return fired

    return fire


def rules():
    return yaml.safe_load(alert_rules())["groups"][0]["rules"]


def test_promtool_accepts_the_rules(require_program, tmp_path):
    (tmp_path / "rules.yml").write_text(alert_rules())
    done = subprocess.run(
        [require_program("promtool"), "check", "rules", tmp_path / "rules.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules())} rules found" in done.stdout + done.stderr


def test_a_rack_that_is_well_calls_nobody(called):
    assert called() == []


def test_what_is_known_or_in_maintenance_calls_nobody(called):
    assert called(INCIDENT % "true", FINDING % ("gpu.xid", "failed", ""), MAINTENANCE) == []


def test_a_finding_calls_once_by_itself_or_by_its_incident(called):
    assert called(FINDING % ("gpu.xid", "failed", "")) == ["LumctlFailed"]
    assert called(FINDING % ("gpu.xid", "failed", "host.lost:h03"), INCIDENT % "false") == ["LumctlIncidentFailed"]


def test_a_component_calls_once_however_many_findings_it_has(called):
    found = [
        ("gpu.xid", "failed", ""),
        ("gpu.lost", "failed", ""),
        ("gpu.ecc", "degraded", ""),
        ("gpu.x", "unknown", ""),
    ]
    assert called(*(FINDING % each for each in found)) == ["LumctlFailed"]
    assert called(*(FINDING % each for each in found[2:])) == ["LumctlDegraded"]


def test_what_cannot_be_read_calls(called):
    assert called(FINDING % ("gpu.xid", "unknown", "")) == ["LumctlUnknown"]


def test_that_nothing_is_watched_calls(called):
    assert called(daemon={}) == ["LumctlAbsent"]


@pytest.mark.parametrize("daemon", [{INTERVAL: 1.0}, {INTERVAL: 1.0, AGE: 60.0}], ids=["no observation", "an old look"])
def test_a_daemon_that_sees_nothing_calls(called, daemon):
    assert called(daemon=daemon) == ["LumctlBlind"]


def test_a_run_that_was_left_half_done_calls(called):
    assert called("lumctl_unfinished_runs") == ["LumctlRunUnfinished"]


def test_a_job_that_waits_for_a_spare_calls(called):
    assert called("lumctl_spare_demands") == ["LumctlJobWaitsForSpare"]


class Told:
    waiting = 0

    def counts(self):
        return {"sent": 0, "retried": 0, "failed": 0, "dropped": 0}


@pytest.fixture
def exported(seen, clock, said):
    """The names of the metrics that a daemon exports of a rack with a fault; of autopilot and queue beside them."""
    seen.find("s1-gpu0", State.FAILED, "gpu.xid")
    newest = LatestObservation(clock)
    newest.put(seen.look(unfinished=("swap-1",)))
    self_metrics = SelfMetrics(
        newest, 1.0, ErrorLog(said.append), TransitionQueue(lambda *_: None), Told(), now=lambda: seen.now
    )
    queue = SpareWatcher(lambda _: None, said.append, lambda *_: None)
    self_metrics.registry.register(SpareMetrics(queue))
    text = generate_latest(self_metrics.registry).decode()
    return {family.name for family in text_string_to_metric_families(text)} | {
        "lumctl_autopilot_breaker_open",
    }


@pytest.mark.parametrize("text", [alert_rules(), dashboard()], ids=["rules", "dashboard"])
def test_each_metric_is_one_that_the_daemon_exports(text, exported):
    used = set(re.findall(r"\blumctl_[a-z_]+", text))
    assert used
    bases = {re.sub(r"_(total|bucket)$", "", name) for name in used}
    assert bases <= {re.sub(r"_total$", "", name) for name in exported}


def test_the_dashboard_has_a_place_for_each_panel():
    panels = json.loads(dashboard())["panels"]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(0 <= x < 24 for x, _ in cells)
