"""What earlier looks leave behind for the next one: since when, counters, events, states that stick."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from lumctl.devices.types import DeviceReading
from lumctl.fleet.readings import Snapshot
from lumctl.health.acknowledgements import Acknowledgement, EventClear, MaintenanceWindow
from lumctl.health.attention import AcknowledgedFindings, at_work, in_maintenance, reached
from lumctl.health.evaluation import each, look_over, out_of_service
from lumctl.health.event_record import EventRecord
from lumctl.health.history import TrendHistory
from lumctl.health.incidents import with_incidents
from lumctl.health.look import NO_EVIDENCE, LightEvidence, Look, Past, Place
from lumctl.health.persistence import StandingFindings
from lumctl.health.rulebook import rulebook
from lumctl.health.states import HealthReport, Judged, place_of
from lumctl.health.verdicts import judge_accelerator
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit

_VERSION = 1


class Memory:
    """Judges look after look. ``document`` is what an earlier one left; one that is not understood is passed over."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        known = document if document is not None and document.get("version") == _VERSION else {}
        try:
            self._history = TrendHistory(known.get("history"))
            self._standing = StandingFindings(known.get("standing"))
            self._acknowledged = AcknowledgedFindings(known.get("acknowledged"))
            self._events = EventRecord(known.get("events"))
            self._quiet_until = {str(host): float(at) for host, at in known.get("quiet_until", {}).items()}
        except (TypeError, ValueError, KeyError, AttributeError):
            # What cannot be read is as good as a first look.
            self._history, self._standing, self._acknowledged = (
                TrendHistory(),
                StandingFindings(),
                AcknowledgedFindings(),
            )
            self._events = EventRecord()
            self._quiet_until = {}
        self.spent: tuple[Acknowledgement, ...] = ()
        """The acknowledgements of the last observation that are over: their keeper may delete them."""

    def document(self) -> dict[str, Any]:
        """All that is remembered, as JSON values, bounded by the size of the inventory."""
        return {
            "version": _VERSION,
            "history": self._history.document(),
            "standing": self._standing.document(),
            "acknowledged": self._acknowledged.document(),
            "events": self._events.document(),
            "quiet_until": dict(self._quiet_until),
        }

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
    ) -> HealthReport:
        """Judge one observation and remember it.

        ``cleared`` are the events of kernel logs that operators ended. ``moving`` are components whose light a run
        moves now (a mapping gives the end time): their flapping is expected. ``moved`` has the time when a run last
        moved the light of a component: earlier readings do not count against its present circuits. ``light`` is other
        evidence of where light is lost.
        """
        covered = at_work(inventory, circuits, windows, now)
        expected = _moving(inventory, circuits, moving, now)
        self._quiet_until = {h: at for h, at in self._quiet_until.items() if h in inventory.hosts}
        self._quiet_until |= {component: now for kind, component in covered if kind == "host"}
        events = self._events.take(inventory, snapshot, cleared, now)
        past = Past(self._history.trends, self._standing.lost_hosts(), self._quiet_until, events)
        out = out_of_service(inventory, disabled)
        look = Look(inventory, snapshot, circuits, out, now, past, _moved(inventory, circuits, moved), light)
        self._history.take(look, quiet=covered.keys() | expected)
        raw = look_over(look, losses, devices)
        places = {place_of(health) for group in raw.groups().values() for health in group.values()}
        self._standing.begin(places, now, forgets_after_s=rulebook().forgets_after_s)

        def settle(health: Judged, /) -> Judged:
            place = place_of(health)
            return self._standing.settle(health, now, at_work=place in covered, moving=place in expected)

        settled = in_maintenance(each(raw, settle), covered)
        # An accelerator that is back may have been lost once too often: it is judged again, with that in its history.
        again = {
            name: settle(judge_accelerator(look, inventory.accelerators[name]))
            for name in self._history.note_states(settled)
        }
        if again:
            settled = replace(settled, accelerators={**settled.accelerators, **again})
        self._standing.end(now)
        report, self.spent = self._acknowledged.lay_over(with_incidents(settled, look), inventory, acknowledged)
        return report


def merged(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One memory of the documents of several racks, which know nothing of each other's components."""
    whole: dict[str, Any] = {}
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
    """Links and circuits whose light a run moves now."""
    until = moving if isinstance(moving, Mapping) else dict.fromkeys(moving, now)
    return frozenset(_moved(inventory, circuits, {component: at for component, at in until.items() if now <= at}))


def _moved(inventory: Inventory, circuits: tuple[Circuit, ...], moved: Mapping[str, float]) -> dict[Place, float]:
    """When the light of links and circuits was last moved, by what moved it."""
    found: dict[Place, float] = {}
    for component, at in moved.items():
        for place in reached(inventory, circuits, component):
            if place[0] in {"link", "circuit"}:
                found[place] = max(at, found.get(place, at))
    return found
