"""From one collection to the verdict on every component. Pure: no clock, no I/O, no memory of earlier looks.

Correlation comes first: what lies behind a host that cannot be read is ``unknown`` without findings of its own, so a
lost host is one finding and not eight.
"""

from collections.abc import Collection, Mapping

from lumctl.fleet.readings import Snapshot
from lumctl.health.accelerators import judge_accelerator
from lumctl.health.circuits import judge_circuit
from lumctl.health.devices import judge_device
from lumctl.health.hosts import judge_host
from lumctl.health.links import judge_link
from lumctl.health.look import Look
from lumctl.health.states import HealthReport
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.wiring import Circuit


def evaluate(
    inventory: Inventory,
    snapshot: Snapshot,
    circuits: tuple[Circuit, ...],
    *,
    losses: Mapping[str, float],
    devices: Mapping[str, str | None],
    now: float,
    disabled: Collection[str] = (),
) -> HealthReport:
    """Judge every component of an inventory by one collection.

    ``losses`` are expected losses (dB) by circuit id. ``devices`` tells of each device what went wrong when it was
    asked, ``None`` if it answered. ``disabled`` are accelerators out of service besides those that the inventory
    itself disables: one that a swap took out of its job is no fault of the rack any more, though its findings stay.
    """
    out_of_service = {*disabled, *(a.id for a in inventory.accelerators.values() if a.role is Role.DISABLED)}
    look = Look(inventory, snapshot, circuits, frozenset(out_of_service), now)
    return HealthReport(
        at=now,
        hosts={name: judge_host(look, name) for name in inventory.hosts},
        accelerators={a.id: judge_accelerator(look, a) for a in inventory.accelerators.values()},
        links={t.id: judge_link(look, t) for t in inventory.transponders.values()},
        devices={name: judge_device(name, devices, now) for name in inventory.devices},
        circuits={c.id: judge_circuit(look, c, losses.get(c.id)) for c in circuits},
    )
