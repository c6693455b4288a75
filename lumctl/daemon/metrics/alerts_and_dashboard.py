"""Alert rules for Prometheus and a dashboard for Grafana, over the daemon's metrics.

There is one alert for each incident, and one for each component with findings outside of incidents, as with
notifications. Findings that are acknowledged or in maintenance raise no alert. If lumctl itself reads nothing, an alert
fires at once: missing data must not look like good health.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

_SCHEMA_VERSION = 39
"""The schema version of Grafana 10 and 11; newer versions migrate it."""
_COLUMNS, _ROW_HEIGHT = 24, 8
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_TARGET = 'target="$target"'
_STATE_COLOURS = {"ok": "green", "degraded": "orange", "failed": "red", "unknown": "purple", "disabled": "gray"}


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    kind: str
    expression: str
    legend: str = "{{id}}"
    unit: str = "short"
    width: int = 12
    instant: bool = False


_PANELS = (
    _Panel(
        "Components by state",
        "stat",
        f"sum by (state) (lumctl_component_state{{{_TARGET}}})",
        "{{state}}",
        instant=True,
    ),
    _Panel(
        "The daemon's newest observation",
        "stat",
        "lumctl_watch_look_age_seconds",
        "age",
        unit="s",
        width=6,
        instant=True,
    ),
    _Panel("Unfinished runs", "stat", f"lumctl_unfinished_runs{{{_TARGET}}}", "runs", width=6, instant=True),
    _Panel(
        "Open incidents, since",
        "table",
        # Grafana takes times in milliseconds.
        f"lumctl_incident_since_timestamp_seconds{{{_TARGET}}} * 1000",
        unit="dateTimeAsIso",
        instant=True,
    ),
    _Panel(
        "Findings outside of incidents, with start time",
        "table",
        f'lumctl_finding_since_timestamp_seconds{{{_TARGET},incident=""}} * 1000',
        unit="dateTimeAsIso",
        instant=True,
    ),
    _Panel(
        "Components that are not ok",
        "timeseries",
        f'sum by (kind, state) (lumctl_component_state{{{_TARGET},state=~"degraded|failed|unknown"}})',
        "{{kind}} {{state}}",
    ),
    _Panel(
        "Receivers' light power above their own alarm limit",
        "timeseries",
        f"lumctl_link_rx_power_dbm{{{_TARGET}}} - on (target, id) lumctl_link_rx_power_low_alarm_dbm",
        unit="dB",
    ),
    _Panel(
        "Bit error ratio before correction",
        "timeseries",
        f"lumctl_link_pre_fec_bit_error_ratio{{{_TARGET}}}",
        unit="sci",
    ),
    _Panel(
        "Light at ports of meshes and switches",
        "timeseries",
        f"lumctl_device_port_power_dbm{{{_TARGET}}}",
        "{{id}} port {{port}}",
        unit="dBm",
    ),
    _Panel(
        "Temperature of accelerators",
        "timeseries",
        f"lumctl_accelerator_temperature_celsius{{{_TARGET}}}",
        unit="celsius",
    ),
    _Panel("Power of accelerators", "timeseries", f"lumctl_accelerator_power_watts{{{_TARGET}}}", unit="watt"),
    _Panel(
        "Work of accelerators",
        "timeseries",
        f"lumctl_accelerator_utilization_ratio{{{_TARGET}}}",
        unit="percentunit",
    ),
    _Panel(
        "Reasons for reduced clocks",
        "timeseries",
        f"rate(lumctl_accelerator_throttled_seconds_total{{{_TARGET}}}[5m])",
        "{{id}} {{reason}}",
        unit="percentunit",
    ),
    _Panel("Hosts that answer", "timeseries", f"lumctl_host_up{{{_TARGET}}}", "{{host}}"),
    _Panel(
        "Duration of an observation, 95th percentile",
        "timeseries",
        "histogram_quantile(0.95, sum by (le) (rate(lumctl_watch_tick_duration_seconds_bucket[5m])))",
        "look",
        unit="s",
    ),
)


def dashboard() -> str:
    """The dashboard as JSON, for import into Grafana or provisioning from a file."""
    document = {
        "title": "lumctl",
        "uid": "lumctl",
        "tags": ["lumctl"],
        "schemaVersion": _SCHEMA_VERSION,
        "refresh": "5s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), _target()]},
        "panels": list(_placed()),
    }
    return json.dumps(document, indent=2)


def _placed() -> Iterator[dict[str, Any]]:
    """The panels, from left to right and from top to bottom."""
    x = y = 0
    for number, panel in enumerate(_PANELS, start=1):
        if x + panel.width > _COLUMNS:
            x, y = 0, y + _ROW_HEIGHT
        yield {
            "id": number,
            "title": panel.title,
            "type": panel.kind,
            "datasource": _SOURCE,
            "gridPos": {"x": x, "y": y, "w": panel.width, "h": _ROW_HEIGHT},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": list(_colours(panel))},
            "targets": [_query(panel)],
        }
        x += panel.width


def _query(panel: _Panel) -> dict[str, Any]:
    return {
        "refId": "A",
        "datasource": _SOURCE,
        "expr": panel.expression,
        "legendFormat": panel.legend,
        "instant": panel.instant,
        "range": not panel.instant,
        "format": "table" if panel.kind == "table" else "time_series",
    }


def _colours(panel: _Panel) -> Iterator[dict[str, Any]]:
    """The colours of states, for panels with one series for each state."""
    if panel.legend != "{{state}}":
        return
    for state, colour in _STATE_COLOURS.items():
        fixed = {"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}
        yield {"matcher": {"id": "byName", "options": state}, "properties": [fixed]}


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _target() -> dict[str, Any]:
    return {
        "name": "target",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": "label_values(lumctl_component_state, target)", "refId": "target"},
        # 2 stands for every change of the time range.
        "refresh": 2,
    }


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    severity: str
    expression: str
    lasts: str
    """The minimum time that the expression must hold before the alert fires, in Prometheus' notation."""
    summary: str
    advice: str


def _incidents(state: str) -> str:
    return f'lumctl_incident_since_timestamp_seconds{{state="{state}",acknowledged="false"}}'


def _findings(state: str, worse: str = "") -> str:
    """An expression for the number of a component's findings of a state outside of incidents, if none are ``worse``."""
    less = f" unless on (target, kind, id) {_finding(worse)}" if worse else ""
    own = _finding(state, ',incident=""')
    return f"count by (target, kind, id) ({own}){less} unless on (target, kind, id) lumctl_component_in_maintenance"


def _finding(states: str, more: str = "") -> str:
    return f'lumctl_finding_since_timestamp_seconds{{state=~"{states}",acknowledged="false"{more}}}'


_CAUSE = "{{ $labels.cause }} ({{ $labels.rule }})"
_COMPONENT = "{{ $labels.kind }} {{ $labels.id }}"
_EXPLAIN = "lumctl health explain {{ $labels.id }}"
_STATUS = "lumctl status: it shows the findings of the incident, and what to do"

_RULES = (
    _Rule(
        "LumctlAbsent",
        "critical",
        "absent(lumctl_watch_interval_seconds)",
        "2m",
        "no lumctl watch is scraped: the state of the rack is unknown",
        "systemctl status lumctl-watch; then look at the target of this scrape",
    ),
    _Rule(
        "LumctlBlind",
        "critical",
        # The limit is that of SelfMetrics. A daemon that has read nothing since its start has no age at all.
        "lumctl_watch_look_age_seconds > clamp_min(5 * lumctl_watch_interval_seconds, 10)"
        " or (lumctl_watch_interval_seconds unless lumctl_watch_look_age_seconds)",
        "30s",
        "lumctl watch runs but has read nothing new: every other alert of lumctl is silent",
        "read the log of lumctl watch: journalctl -u lumctl-watch",
    ),
    _Rule("LumctlIncidentFailed", "critical", _incidents("failed"), "15s", f"failed: {_CAUSE}", _STATUS),
    _Rule("LumctlFailed", "critical", _findings("failed"), "15s", f"failed: {_COMPONENT}", _EXPLAIN),
    _Rule("LumctlIncidentDegraded", "warning", _incidents("degraded"), "5m", f"degraded: {_CAUSE}", _STATUS),
    _Rule(
        "LumctlDegraded", "warning", _findings("degraded", worse="failed"), "5m", f"degraded: {_COMPONENT}", _EXPLAIN
    ),
    _Rule("LumctlIncidentUnknown", "warning", _incidents("unknown"), "5m", f"cannot be read: {_CAUSE}", _STATUS),
    _Rule(
        "LumctlUnknown",
        "warning",
        _findings("unknown", worse="failed|degraded"),
        "5m",
        f"cannot be read: {_COMPONENT}",
        _EXPLAIN,
    ),
    _Rule(
        "LumctlRunUnfinished",
        "critical",
        "lumctl_unfinished_runs > 0",
        "10m",
        "{{ $value }} runs were left half done: light paths may differ from the store",
        "lumctl status: it lists each run with the command that finishes it",
    ),
    _Rule(
        "LumctlSparesLow",
        "warning",
        "lumctl_spares_free < 2 and lumctl_spares_free < lumctl_spares",
        "10m",
        "{{ $value }} spares of {{ $labels.class }} are free in {{ $labels.rack }}",
        "lumctl spare list: it says where the others are, and which can return",
    ),
    _Rule(
        "LumctlJobWaitsForSpare",
        "critical",
        "lumctl_spare_demands > 0",
        "10m",
        "{{ $value }} demands wait for spares in {{ $labels.rack }}",
        "lumctl spare queue: it says what each waits for",
    ),
    _Rule(
        "LumctlAutopilotStopped",
        "warning",
        "lumctl_autopilot_breaker_open == 1",
        "1m",
        "the circuit breaker of policy {{ $labels.policy }} is open: no automatic swaps are made",
        "lumctl autopilot status",
    ),
    _Rule(
        "LumctlNotificationsLost",
        "warning",
        'increase(lumctl_watch_notifications_total{outcome=~"failed|dropped"}[1h]) > 0',
        "0s",
        "lumctl watch could not deliver notifications to a receiver",
        "read the log of lumctl watch: journalctl -u lumctl-watch",
    ),
    _Rule(
        "LumctlHistoryNotWritten",
        "warning",
        "increase(lumctl_watch_history_write_failures_total[15m]) > 0",
        "0s",
        "the rack's history cannot be written",
        "lumctl store status: is its disk full, does its database answer?",
    ),
)


def alert_rules() -> str:
    """The rules as a file for ``rule_files`` in prometheus.yml."""
    groups = {"groups": [{"name": "lumctl", "rules": [_document(rule) for rule in _RULES]}]}
    # Wide, so that no expression is broken over two lines.
    return yaml.safe_dump(groups, sort_keys=False, width=1000, allow_unicode=True).rstrip()


def _document(rule: _Rule) -> dict[str, Any]:
    return {
        "alert": rule.name,
        "expr": rule.expression,
        "for": rule.lasts,
        "labels": {"severity": rule.severity},
        "annotations": {"summary": rule.summary, "advice": rule.advice},
    }
