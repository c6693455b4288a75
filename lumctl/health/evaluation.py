"""Judge every component by one collection. Pure: no clock, no I/O, no memory of earlier observations.

Correlation comes first: components behind an unreadable host are ``unknown`` without findings of their own, so a lost
host is one finding, not one for each component.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol

from lumctl.devices.types import DeviceReading
from lumctl.fleet.readings import Snapshot
from lumctl.health.event_record import EventRecord
from lumctl.health.events import HostEvents
from lumctl.health.expectations import Expectations
from lumctl.health.look import Look, Past
from lumctl.health.rulebook import verdict
from lumctl.health.states import HealthReport, Judged, judged
from lumctl.health.verdicts import judge_accelerator, judge_circuit, judge_device, judge_host, judge_link
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.wiring import Circuit


def evaluate(  # noqa: PLR0913 - everything that a verdict depends on
    inventory: Inventory,
    snapshot: Snapshot,
    circuits: tuple[Circuit, ...],
    *,
    losses: Mapping[str, float],
    devices: Mapping[str, DeviceReading],
    now: float,
    disabled: Collection[str] = (),
    events: Mapping[str, HostEvents] | None = None,
    accelerators: Collection[str] | None = None,
) -> HealthReport:
    """Judge every component of an inventory by one collection; with ``accelerators``, only these and their hosts.

    ``losses`` are expected losses (dB) by circuit id. ``devices`` are readings of meshes and switches; a missing device
    was never read. ``disabled`` are accelerators out of service besides those that the inventory disables. An
    accelerator that a swap removed from its job is out of service: it no longer counts as a fault of the rack, but
    keeps its findings.

    ``events`` are the XIDs and SXids that count, by host; by default those of the log.

    Faults that count only if they persist are not found here; see :class:`lumctl.health.memory.Memory`.
    """
    # An empty record: with no memory, the events of the log count by the same rules as with one.
    known = EventRecord().take(inventory, snapshot, (), now) if events is None else events
    past = Past(events=known)
    look = Look(inventory, snapshot, circuits, out_of_service(inventory, disabled), now, past)
    if accelerators is not None:
        expected = Expectations(look)
        found = {name: judge_accelerator(look, inventory.accelerators[name], expected) for name in accelerators}
        through = dict.fromkeys(inventory.accelerators[name].host for name in accelerators)
        hosts = {name: judge_host(look, name, expected) for name in through}
        return each(HealthReport(now, hosts, found, {}, {}, {}), _found_at_once)
    return each(look_over(look, losses, devices), _found_at_once)


def out_of_service(inventory: Inventory, disabled: Collection[str]) -> frozenset[str]:
    """The accelerators out of service: those in ``disabled``, and those that the inventory disables."""
    return frozenset({*disabled, *(a.id for a in inventory.accelerators.values() if a.role is Role.DISABLED)})


def look_over(look: Look, losses: Mapping[str, float], devices: Mapping[str, DeviceReading]) -> HealthReport:
    """Everything that the rules find in one observation, including findings that count only if they persist."""
    inventory, expected = look.inventory, Expectations(look)
    return HealthReport(
        at=look.now,
        hosts={name: judge_host(look, name, expected) for name in inventory.hosts},
        accelerators={a.id: judge_accelerator(look, a, expected) for a in inventory.accelerators.values()},
        links={t.id: judge_link(look, t, expected) for t in inventory.transponders.values()},
        devices={
            device.id: judge_device(
                device.id, devices.get(device.id), look.now, stale_after_s=look.limits.stale_after_s
            )
            for device in inventory.light_devices
        },
        circuits={c.id: judge_circuit(look, c, losses.get(c.id)) for c in look.circuits},
        slots={name: slot for here in look.collected.values() for name, slot in here.slots.items()},
    )


class Change(Protocol):
    """A function that changes the health of a component of any kind."""

    def __call__(self, health: Judged, /) -> Judged:
        """The changed component."""
        ...


def each(report: HealthReport, change: Change) -> HealthReport:
    """A report in which every component is changed."""
    return replace(
        report,
        hosts={name: change(health) for name, health in report.hosts.items()},
        accelerators={name: change(health) for name, health in report.accelerators.items()},
        links={name: change(health) for name, health in report.links.items()},
        devices={name: change(health) for name, health in report.devices.items()},
        circuits={name: change(health) for name, health in report.circuits.items()},
    )


def _found_at_once(health: Judged) -> Judged:
    kept = tuple(finding for finding in health.findings if verdict(finding.rule, finding.case).at_once)
    return health if len(kept) == len(health.findings) else judged(health, kept)
