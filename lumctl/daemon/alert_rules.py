"""Alert rules for Prometheus over the daemon's metrics: who is called, how urgently, and what to type then.

One alert for each incident and for each component with findings outside of incidents, as receivers of notifications
are told. What is acknowledged or in maintenance calls nobody. That lumctl itself sees nothing calls at once: no news is
not good news.
"""

from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    severity: str
    expression: str
    lasts: str
    """How long the expression must hold before anyone is called, as Prometheus writes it."""
    summary: str
    advice: str


def _incidents(state: str) -> str:
    return f'lumctl_incident_since_timestamp_seconds{{state="{state}",acknowledged="false"}}'


def _findings(state: str, worse: str = "") -> str:
    """How many findings of a state each component has, outside of incidents; none where it has worse ones."""
    less = f" unless on (target, kind, id) {_finding(worse)}" if worse else ""
    own = _finding(state, ',incident=""')
    return f"count by (target, kind, id) ({own}){less} unless on (target, kind, id) lumctl_component_in_maintenance"


def _finding(states: str, more: str = "") -> str:
    return f'lumctl_finding_since_timestamp_seconds{{state=~"{states}",acknowledged="false"{more}}}'


_CAUSE = "{{ $labels.cause }} ({{ $labels.rule }})"
_COMPONENT = "{{ $labels.kind }} {{ $labels.id }}"
_EXPLAIN = "lumctl health explain {{ $labels.id }}"
_STATUS = "lumctl status: it shows what belongs to the incident, and what to do"

_RULES = (
    _Rule(
        "LumctlAbsent",
        "critical",
        "absent(lumctl_watch_interval_seconds)",
        "2m",
        "no lumctl watch is scraped: nothing is known of the rack",
        "systemctl status lumctl-watch; then look at the target of this scrape",
    ),
    _Rule(
        "LumctlBlind",
        "critical",
        "lumctl_watch_look_age_seconds > clamp_min(5 * lumctl_watch_interval_seconds, 10)"
        " or (lumctl_watch_interval_seconds unless lumctl_watch_look_age_seconds)",
        "30s",
        "lumctl watch runs and has read nothing new: every other alert of lumctl is silent",
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
        "{{ $value }} runs were left half done: light may be where the store does not say",
        "lumctl status: it names each, and the command that ends it",
    ),
    _Rule(
        "LumctlAutopilotStopped",
        "warning",
        "lumctl_autopilot_breaker_open == 1",
        "1m",
        "the breaker of policy {{ $labels.policy }} is open: nothing is swapped unasked",
        "lumctl autopilot status",
    ),
    _Rule(
        "LumctlNotificationsLost",
        "warning",
        'increase(lumctl_watch_notifications_total{outcome=~"failed|dropped"}[1h]) > 0',
        "0s",
        "notifications of lumctl watch did not reach a receiver",
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
    return yaml.safe_dump(groups, sort_keys=False, width=1000, allow_unicode=True).rstrip()


def _document(rule: _Rule) -> dict[str, Any]:
    return {
        "alert": rule.name,
        "expr": rule.expression,
        "for": rule.lasts,
        "labels": {"severity": rule.severity},
        "annotations": {"summary": rule.summary, "advice": rule.advice},
    }
