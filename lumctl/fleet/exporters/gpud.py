"""gpud: the states of its components (``/v1/states``). These are gpud's own verdicts and are shown as such."""

import json
import re
from typing import Any

from lumctl.devices.formats.complaint import first_line
from lumctl.fleet.host_readings import ComponentReport
from lumctl.fleet.parsers.fields import find_pci
from lumctl.fleet.probe_output import OK, Gathered, ProbeAnswer, Verdict
from lumctl.fleet.readings import ProbeStatus

SOURCE = "gpud"
_WELL = "healthy"
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MOST_REPORTS = 256


class Gpud:
    """Reads the states of one gpud."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """A page replaces what was reported before."""
        try:
            document = json.loads(answer.text)
        except (ValueError, RecursionError):
            return ProbeStatus.FAILED, "the answer is not JSON, or is truncated"
        if not isinstance(document, list) or not document:
            return ProbeStatus.FAILED, "the answer lists no component"
        reports: list[ComponentReport] = []
        for entry in document:
            component = entry.get("component") if isinstance(entry, dict) else None
            states = entry.get("states") if isinstance(entry, dict) else None
            if not isinstance(component, str) or not isinstance(states, list):
                return ProbeStatus.FAILED, "the answer contains a component without its states"
            found = [_report(component, state, taken_at) for state in states]
            reports += [report for report in found if report.health != _WELL]
        gathered.reports = {**gathered.reports, "gpud": tuple(reports[:_MOST_REPORTS])}
        gathered.answered = {**gathered.answered, "gpud": frozenset()}
        return OK


def _report(component: str, state: Any, taken_at: float) -> ComponentReport:
    """One state. If it does not have the known form, its health is ``unknown``."""
    said = state if isinstance(state, dict) else {}
    health, reason, error = (str(said.get(key) or "") for key in ("health", "reason", "error"))
    text = " ".join(filter(None, (reason, error)))
    extra = said.get("extra_info")
    everything = f"{text} {json.dumps(extra) if isinstance(extra, dict) else ''}"
    devices = {uuid.lower() for uuid in _UUID.findall(everything)}
    devices |= {pci for word in everything.split() if (pci := find_pci(word)) is not None}
    return ComponentReport(
        taken_at,
        SOURCE,
        first_line(component),
        health.lower() or "unknown",
        first_line(text) if text else "",
        frozenset(devices),
    )
