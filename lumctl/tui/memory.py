"""What earlier looks of one session knew: health itself has no memory, and each look is judged anew."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from lumctl.health.states import CircuitHealth, ComponentHealth, State
from lumctl.site.observation import Observation

Health = TypeVar("Health", ComponentHealth, CircuitHealth)
_Component = tuple[str, str]
_Verdict = tuple[str, int]


class Memory:
    """Remembers when each component was last read, and since when each of its findings stands."""

    def __init__(self) -> None:
        self._read_at: dict[_Component, float] = {}
        self._since: dict[_Component, dict[_Verdict, float]] = {}

    def recall(self, observation: Observation) -> Observation:
        """The observation with what it does not say itself; it is remembered in turn."""
        report = observation.report
        return replace(
            observation,
            report=replace(
                report,
                hosts=self._all("host", report.hosts),
                accelerators=self._all("accelerator", report.accelerators),
                links=self._all("link", report.links),
                devices=self._all("device", report.devices),
                circuits=self._all("circuit", report.circuits),
            ),
        )

    def _all(self, kind: str, group: Mapping[str, Health]) -> dict[str, Health]:
        return {name: self._one((kind, name), health) for name, health in group.items()}

    def _one(self, component: _Component, health: Health) -> Health:
        if health.read_at is not None:
            self._read_at[component] = health.read_at
        before = self._since.get(component, {})
        stands: dict[_Verdict, float] = {}
        said: Counter[str] = Counter()
        findings = []
        for finding in health.findings:
            # A rule may speak of one component twice: its first finding is not its second.
            said[finding.rule] += 1
            verdict = finding.rule, said[finding.rule]
            stands[verdict] = min(finding.since, before.get(verdict, finding.since))
            findings.append(replace(finding, since=stands[verdict]))
        # Of a component that cannot be read nothing is taken back: what was found may still stand.
        self._since[component] = before | stands if health.state is State.UNKNOWN else stands
        return replace(health, findings=tuple(findings), read_at=self._read_at.get(component))
