"""The faults because of which accelerators were replaced, and whether a reading shows that they are gone.

A run switches off the light of what it takes out of a job. So a lane that sent no light looks like any other
afterwards: it has no finding, but nothing shows that it works.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lumctl.health.remedy import Remedy
from lumctl.health.rulebook import looks_at
from lumctl.health.states import ComponentHealth, Finding, HealthReport, is_fault
from lumctl.inventory.model import Inventory

DARK = "link.tx-power"
"""The rule of a transmitter that sends no light."""
_NEED_NO_CIRCUIT = frozenset({DARK, "link.missing"})
"""The rules of lanes whose faults are seen to be gone while no circuit brings light; a dark lane must be lit for it."""


@dataclass(frozen=True, slots=True)
class ReplacedFault:
    """A fault because of which an accelerator was replaced: its own, or one of a lane, of its host or of a circuit.

    ``rule`` is empty if no finding of the accelerator, its lanes or its host shows the fault.
    """

    accelerator: str
    kind: str
    component: str
    rule: str
    evidence: str

    @property
    def words(self) -> str:
        """What is unknown, as long as no reading shows that the fault is gone."""
        return (
            f"{self.component} was at fault when {self.accelerator} was replaced ({self.evidence}), and nothing shows "
            "that it is repaired"
        )


def faults_of(
    report: HealthReport, inventory: Inventory, remedies: Iterable[Remedy], accelerator: str
) -> tuple[ReplacedFault, ...]:
    """The faults because of which an accelerator is replaced now; none if it is healthy."""
    lanes = [report.links[lane.id] for lane in inventory.transponders_of(accelerator)]
    host = report.hosts.get(inventory.accelerators[accelerator].host)
    own = [report.accelerators[accelerator], *lanes]
    for parts in (own, [host] if host is not None else []):
        if found := tuple(_own_faults(parts, accelerator)):
            return found
    replacing = [remedy for remedy in remedies if accelerator in remedy.replace]
    return tuple(ReplacedFault(accelerator, r.kind, r.cause, "", r.evidence) for r in replacing)


def lanes_to_light(faults: Iterable[ReplacedFault]) -> tuple[str, ...]:
    """The lanes that show their repair once they are lit; none if that would leave other faults unproven."""
    faults = tuple(faults)
    return tuple(fault.component for fault in faults) if all(fault.rule == DARK for fault in faults) else ()


def _own_faults(parts: Iterable[ComponentHealth], accelerator: str) -> Iterator[ReplacedFault]:
    parts = list(parts)
    causes = {None, *(f"{part.kind}:{part.id}" for part in parts)}
    for part in parts:
        for finding in part.findings:
            # What another component causes is repaired there.
            if is_fault(finding.state) and finding.incident in causes:
                yield ReplacedFault(accelerator, part.kind, part.id, finding.rule, finding.evidence)


def unproven(report: HealthReport, faults: Iterable[ReplacedFault]) -> tuple[ReplacedFault, ...]:
    """Those of some faults of which no reading shows that they are gone."""
    return tuple(fault for fault in faults if not _is_gone(report, fault))


def _is_gone(report: HealthReport, fault: ReplacedFault) -> bool:
    group = {"accelerator": report.accelerators, "link": report.links, "host": report.hosts}.get(fault.kind, {})
    health = group.get(fault.component)
    if health is None or not health.seen or not fault.rule or not looks_at(fault.rule).probes <= health.seen:
        return False
    found = health.if_used | _faults_in(health.findings)
    # Without light, most rules of a lane find nothing: the lane must be ok as a whole.
    return not found if fault.kind == "link" and fault.rule not in _NEED_NO_CIRCUIT else fault.rule not in found


def _faults_in(findings: Iterable[Finding]) -> frozenset[str]:
    return frozenset(finding.rule for finding in findings if is_fault(finding.state))
