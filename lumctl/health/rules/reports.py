"""Verdicts of other programs, such as gpud: findings that name the program."""

from collections.abc import Iterable, Iterator

from lumctl.fleet.host_readings import ComponentReport
from lumctl.health.rulebook import found, has_case
from lumctl.health.states import Finding


def findings(component: str, rule: str, reports: Iterable[ComponentReport]) -> Iterator[Finding]:
    """One finding for each report; a health that the rule does not know is ``unknown``."""
    for report in reports:
        case = report.health if has_case(rule, report.health) else "unknown"
        reason = f": {report.reason}" if report.reason else ""
        evidence = f"{report.source} reports {report.component} {report.health}{reason}"
        yield found(component, rule, case, evidence, since=report.taken_at, about=report.component)
