"""What is remembered between observations: start times, counters, events, findings that persist for a while."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from lumctl.devices.types import DeviceReading
from lumctl.fleet.readings import Snapshot
from lumctl.health.acknowledgements import (
    Acknowledgement,
    CoveredFinding,
    EventClear,
    MaintenanceWindow,
    covered,
    covered_from,
)
from lumctl.health.evaluation import each, look_over, out_of_service
from lumctl.health.event_record import EventRecord
from lumctl.health.events import HostEvents
from lumctl.health.expectations import Expectations
from lumctl.health.history import ACCELERATOR, UNSTEADY, TrendHistory
from lumctl.health.incidents import with_incidents
from lumctl.health.lateness import NOBODY_LATE, STRAGGLER, Lateness
from lumctl.health.look import NO_EVIDENCE, LightEvidence, Look, Past, Place
from lumctl.health.persistence import StandingFindings
from lumctl.health.rulebook import rulebook
from lumctl.health.states import Finding, HealthReport, Judged, State, judged, kind_and_id
from lumctl.health.verdicts import judge_accelerator
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit

_VERSION = 1


class Memory:
    """Judges one observation after another. ``document`` is an earlier memory; an invalid one is ignored."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        known = document if document is not None and document.get("version") == _VERSION else {}
        try:
            self._history = TrendHistory(known.get("history"))
            self._standing = StandingFindings(known.get("standing"))
            self._acknowledged = AcknowledgedFindings(known.get("acknowledged"))
            self._events = EventRecord(known.get("events"))
            self._quiet_until = {str(host): float(at) for host, at in known.get("quiet_until", {}).items()}
        except (TypeError, ValueError, KeyError, AttributeError):
            # A document that cannot be read is ignored: the next observation is treated as the first.
            self._history, self._standing, self._acknowledged = (
                TrendHistory(),
                StandingFindings(),
                AcknowledgedFindings(),
            )
            self._events = EventRecord()
            self._quiet_until = {}
        self.spent: tuple[Acknowledgement, ...] = ()
        """The acknowledgements that ended at the last observation; the caller may delete them from its store."""

    def document(self) -> dict[str, Any]:
        """The whole memory as JSON values; its size is bounded by the size of the inventory."""
        return {
            "version": _VERSION,
            "history": self._history.document(),
            "standing": self._standing.document(),
            "acknowledged": self._acknowledged.document(),
            "events": self._events.document(),
            "quiet_until": dict(self._quiet_until),
        }

    def events(
        self, inventory: Inventory, snapshot: Snapshot, cleared: Collection[EventClear], now: float
    ) -> dict[str, HostEvents]:
        """The events of kernel logs that count at a collection outside observations; the memory does not change."""
        return EventRecord(self._events.document()).take(inventory, snapshot, cleared, now)

    def judge(  # noqa: PLR0913 - everything that a verdict depends on
        self,
        inventory: Inventory,
        snapshot: Snapshot,
        circuits: tuple[Circuit, ...],
        *,
        losses: Mapping[str, float],
        devices: Mapping[str, DeviceReading],
        now: float,
        disabled: Collection[str] = (),
        acknowledged: Collection[Acknowledgement] = (),
        windows: Collection[MaintenanceWindow] = (),
        cleared: Collection[EventClear] = (),
        moving: Collection[str] = (),
        moved: Mapping[str, float] = MappingProxyType({}),
        light: LightEvidence = NO_EVIDENCE,
        lateness: Lateness = NOBODY_LATE,
    ) -> HealthReport:
        """Judge one observation and remember it.

        ``cleared`` are the events of kernel logs, the losses and the recoveries that operators ended. ``moving`` are
        components whose light path a run changes now (a mapping gives the end time): new findings are expected there.
        ``moved`` has the time when a run last changed the light path of a component: readings from before that time do
        not count, and neither does flapping since the last observation. What is read afterwards counts: a fault right
        after a run is a fault. ``light`` is other evidence of where light is lost.
        ``lateness`` says which ranks are late in their jobs.
        """
        covered = at_work(inventory, circuits, windows, now)
        expected = _moving(inventory, circuits, moving, now)
        self._quiet_until = {h: at for h, at in self._quiet_until.items() if h in inventory.hosts}
        self._quiet_until |= {component: now for kind, component in covered if kind == "host"}
        events = self._events.take(inventory, snapshot, cleared, now)
        self._history.clear(cleared)
        for clear in cleared:
            if clear.rule in {None, UNSTEADY}:
                self._standing.clear((ACCELERATOR, clear.component), UNSTEADY, clear.at)
        for name in inventory.accelerators.keys() - lateness.judged - lateness.unknown:
            # Its job has ended or has left it: that says nothing about how late it was.
            self._standing.clear((ACCELERATOR, name), STRAGGLER, now)
        # Not a copy: `take` below adds this observation's counts, and the rules must see them.
        past = Past(self._history.trends, self._standing.lost_hosts(), self._quiet_until, events)
        out = out_of_service(inventory, disabled)
        changed = _moved(inventory, circuits, moved)
        look = Look(inventory, snapshot, circuits, out, now, past, changed, light, lateness)
        last = self._standing.looked_at
        just_changed = {place for place, at in changed.items() if last is None or at >= last}
        self._history.take(look, quiet=covered.keys() | expected | just_changed)
        raw = look_over(look, losses, devices)
        places = {kind_and_id(health) for group in raw.groups().values() for health in group.values()}
        self._standing.begin(places, now, forgets_after_s=rulebook().forgets_after_s)

        def settle(health: Judged, /) -> Judged:
            place = kind_and_id(health)
            return self._standing.settle(health, now, at_work=place in covered, moving=place in expected)

        settled = in_maintenance(each(raw, settle), covered)
        # An accelerator that is back is judged again with this loss in its history: it may have been lost too often.
        # Maintenance is laid over before: what happens under work is neither a loss nor a recovery.
        usual = Expectations(look)
        again = {
            name: settle(judge_accelerator(look, inventory.accelerators[name], usual))
            for name in self._history.note_states(settled)
        }
        if again:
            settled = replace(settled, accelerators={**settled.accelerators, **again})
        self._standing.end(now)
        report, self.spent = self._acknowledged.lay_over(with_incidents(settled, look), inventory, acknowledged)
        return report


def merged(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the documents of several racks, each of which knows only its own components, into one memory."""
    whole: dict[str, Any] = {}
    # The newest last, because it wins where two documents know the same component.
    for document in sorted(documents, key=_looked_at):
        if document.get("version") == _VERSION:
            whole = _added(whole, document)
    return whole


def _added(whole: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two documents; for keys in both, the second one wins."""
    if not whole:
        return dict(more)
    old_history, new_history = whole["history"], more["history"]
    trends = {(kind, name): written for kind, name, written in (*old_history["trends"], *new_history["trends"])}
    touched = {tuple(mark[:2]) for mark in more["standing"]["marks"]}
    kept = [mark for mark in whole["standing"]["marks"] if tuple(mark[:2]) not in touched]
    return {
        "version": _VERSION,
        "history": {
            "boots": {**old_history["boots"], **new_history["boots"]},
            "trends": [[*place, written] for place, written in trends.items()],
        },
        "standing": {
            "looked_at": more["standing"]["looked_at"],
            "marks": [*kept, *more["standing"]["marks"]],
        },
        "acknowledged": {**whole["acknowledged"], **more["acknowledged"]},
        "events": {**whole.get("events", {}), **more.get("events", {})},
        "quiet_until": {**whole["quiet_until"], **more["quiet_until"]},
    }


def _looked_at(document: Mapping[str, Any]) -> float:
    return document.get("standing", {}).get("looked_at") or 0.0


def _moving(
    inventory: Inventory, circuits: tuple[Circuit, ...], moving: Collection[str], now: float
) -> frozenset[Place]:
    """Links and circuits whose light paths a run changes now."""
    until = moving if isinstance(moving, Mapping) else dict.fromkeys(moving, now)
    return frozenset(_moved(inventory, circuits, {component: at for component, at in until.items() if now <= at}))


def _moved(inventory: Inventory, circuits: tuple[Circuit, ...], moved: Mapping[str, float]) -> dict[Place, float]:
    """When the light paths of links and circuits were last changed, from the times of the components in runs."""
    found: dict[Place, float] = {}
    for component, at in moved.items():
        for place in reached(inventory, circuits, component):
            if place[0] in {"link", "circuit"}:
                found[place] = max(at, found.get(place, at))
    return found


def reached(inventory: Inventory, circuits: Iterable[Circuit], component: str) -> frozenset[Place]:
    """All components affected by work on a named item: an inventory id, a rack or a circuit."""
    places = set(_on(inventory, component))
    lit: set[Place] = set()
    for circuit in circuits:
        ends = (("link", circuit.a.transponder), ("link", circuit.b.transponder))
        touched = circuit.id == component or any(("device", device) in places for device in circuit.devices)
        if touched or any(end in places for end in ends):
            # The far end loses its light too, which is not a fault of its own.
            lit |= {("circuit", circuit.id), *ends}
    return frozenset(places | lit)


def _on(inventory: Inventory, component: str) -> Iterator[Place]:
    """The component itself and its parts."""
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
    """A report in which components under work are ``disabled``; their findings stay visible."""

    def change(health: Judged, /) -> Judged:
        window = covered.get(kind_and_id(health))
        if window is None:
            return health
        return judged(replace(health, disabled=True, maintenance=window.told), health.findings)

    return each(report, change) if covered else report


class AcknowledgedFindings:
    """The findings that each acknowledgement covers: those acknowledged that have not cleared since."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        self._covers = {str(key): covered_from(written) or () for key, written in (document or {}).items()}

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {key: [list(entry) for entry in covers] for key, covers in self._covers.items()}

    def lay_over(
        self, report: HealthReport, inventory: Inventory, acknowledged: Collection[Acknowledgement]
    ) -> tuple[HealthReport, tuple[Acknowledgement, ...]]:
        """Add to each finding who acknowledged it; return the report and the ended acknowledgements."""
        spent: list[Acknowledgement] = []
        # By id(): the report holds all findings meanwhile, so each id is of one finding.
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
                # An acknowledgement that does not name its findings covers those of the first observation.
                covers = covered(meant)
            # A component that could not be read has no findings, which does not mean that they have cleared.
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

    If it covered notes, a permanent note would keep the acknowledgement open until the next fault.
    """
    found = (finding for health in _meant(report, inventory, said) for finding in health.findings)
    return [finding for finding in found if finding.state is not State.OK]


def _is_told(report: HealthReport, inventory: Inventory, said: Acknowledgement) -> bool:
    """Whether all covered components could be judged: an unread one may still have its findings."""
    return all(health.state is not State.UNKNOWN for health in _meant(report, inventory, said))


def _meant(report: HealthReport, inventory: Inventory, said: Acknowledgement) -> list[Any]:
    groups = report.groups().values()
    if said.component in inventory.racks:
        places = reached(inventory, (), said.component)
        # By the rack of its first device, as for `rack_of`, by which commands choose the findings to acknowledge.
        circuits = (c for c in report.circuits.values() if inventory.devices[c.devices[0]].rack == said.component)
        places |= {kind_and_id(circuit) for circuit in circuits}
        return [health for group in groups for health in group.values() if kind_and_id(health) in places]
    return [group[said.component] for group in groups if said.component in group]
