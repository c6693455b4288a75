"""Apply operators' statements to a report: maintenance windows and acknowledgements."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lumctl.health.acknowledgements import Acknowledgement, CoveredFinding, MaintenanceWindow, covered, covered_from
from lumctl.health.evaluation import each
from lumctl.health.look import Place
from lumctl.health.states import Finding, HealthReport, Judged, State, judged, place_of
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit


def reached(inventory: Inventory, circuits: Iterable[Circuit], component: str) -> frozenset[Place]:
    """All components affected by work on an inventory id, a rack or a circuit; of everything with that name."""
    places = set(_on(inventory, component))
    lit: set[Place] = set()
    for circuit in circuits:
        ends = (("link", circuit.a.transponder), ("link", circuit.b.transponder))
        touched = circuit.id == component or ("device", circuit.device) in places
        if touched or any(end in places for end in ends):
            # The far end sees the light go: that is no fault of its own.
            lit |= {("circuit", circuit.id), *ends}
    return frozenset(places | lit)


def _on(inventory: Inventory, component: str) -> Iterator[Place]:
    """What is the component, or is part of it."""
    for host in inventory.hosts.values():
        if component in {host.name, host.rack}:
            yield "host", host.name
    for accelerator in inventory.accelerators.values():
        if component in {accelerator.id, accelerator.host, accelerator.rack}:
            yield "accelerator", accelerator.id
    for transponder in inventory.transponders.values():
        rack = inventory.hosts[transponder.host].rack
        if component in {transponder.id, transponder.accelerator, transponder.host, rack}:
            yield "link", transponder.id
    for device in inventory.light_devices:
        if component in {device.id, device.rack}:
            yield "device", device.id


def at_work(
    inventory: Inventory, circuits: Collection[Circuit], windows: Collection[MaintenanceWindow], now: float
) -> dict[Place, MaintenanceWindow]:
    """The components under work now, each with its window (the first that was opened)."""
    covered: dict[Place, MaintenanceWindow] = {}
    for window in sorted(windows, key=lambda window: (window.starts, window.id)):
        if window.open_at(now):
            for place in reached(inventory, circuits, window.component):
                covered.setdefault(place, window)
    return covered


def in_maintenance(report: HealthReport, covered: Mapping[Place, MaintenanceWindow]) -> HealthReport:
    """A report in which what is under work is ``disabled``; its findings stay to be seen."""

    def change(health: Judged, /) -> Judged:
        window = covered.get(place_of(health))
        if window is None:
            return health
        return judged(replace(health, disabled=True, maintenance=window.told), health.findings)

    return each(report, change) if covered else report


class AcknowledgedFindings:
    """Which findings each acknowledgement covers: those that it was given for and that have not cleared since."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        self._covers = {str(key): covered_from(written) or () for key, written in (document or {}).items()}

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {key: [list(entry) for entry in covers] for key, covers in self._covers.items()}

    def lay_over(
        self, report: HealthReport, inventory: Inventory, acknowledged: Collection[Acknowledgement]
    ) -> tuple[HealthReport, tuple[Acknowledgement, ...]]:
        """A report whose findings carry who knows of them, and the acknowledgements that are over."""
        spent: list[Acknowledgement] = []
        known: dict[int, str] = {}
        remaining: dict[str, tuple[CoveredFinding, ...]] = {}
        for said in acknowledged:
            meant = [finding for finding in _findings_of(report, inventory, said) if said.rule in {None, finding.rule}]
            key = f"{said.component}|{said.rule or ''}|{said.at!r}"
            over = said.until is not None and report.at >= said.until
            if over or (not meant and _is_told(report, inventory, said)):
                spent.append(said)
                continue
            covers = self._covers.get(key, said.covers)
            if covers is None:
                if not meant:
                    continue
                # It does not name its findings: they are those of the first observation.
                covers = covered(meant)
            unread = {health.id for health in _meant(report, inventory, said) if health.state is State.UNKNOWN}
            found = {(finding.component, finding.rule, finding.about) for finding in meant}
            covers = tuple(entry for entry in covers if entry[:3] in found or entry.component in unread)
            if not covers:
                spent.append(said)
                continue
            remaining[key] = covers
            for finding in meant:
                if any(entry.covers(finding) for entry in covers):
                    known.setdefault(id(finding), said.told)
        self._covers = remaining

        def change(health: Judged, /) -> Judged:
            if not any(id(finding) in known for finding in health.findings):
                return health
            findings = tuple(replace(finding, acknowledged=known.get(id(finding))) for finding in health.findings)
            return replace(health, findings=findings)

        return (each(report, change) if known else report), tuple(spent)


def _findings_of(report: HealthReport, inventory: Inventory, said: Acknowledgement) -> list[Finding]:
    """The findings that an acknowledgement may cover: faults only.

    A note that lasts would keep the acknowledgement alive for the next fault.
    """
    found = (finding for health in _meant(report, inventory, said) for finding in health.findings)
    return [finding for finding in found if finding.state is not State.OK]


def _is_told(report: HealthReport, inventory: Inventory, said: Acknowledgement) -> bool:
    """Whether the covered findings could be judged: an unread component refutes nothing."""
    return all(health.state is not State.UNKNOWN for health in _meant(report, inventory, said))


def _meant(report: HealthReport, inventory: Inventory, said: Acknowledgement) -> list[Any]:
    groups = report.groups().values()
    if said.component in inventory.racks:
        places = reached(inventory, (), said.component)
        return [health for group in groups for health in group.values() if place_of(health) in places]
    return [group[said.component] for group in groups if said.component in group]
