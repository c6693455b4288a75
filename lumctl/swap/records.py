"""What the store remembers of an accelerator: how often it was in trouble lately, and since when it is back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time

from lumctl.health.states import State, is_fault
from lumctl.health.transitions import Transition
from lumctl.inventory.model import Accelerator, Inventory
from lumctl.store import Store

LATELY_S = 7 * 86_400.0
"""How far back trouble counts against a spare."""
BURN_IN_S = 24 * 3600.0
"""How long one that was out of order or out of service must have run again before it is as good as others."""


@dataclass(frozen=True, slots=True)
class AcceleratorRecord:
    """One accelerator with its lanes. Times are seconds since the epoch.

    ``faults`` is how often it or a lane became degraded or failed lately, ``last_fault_at`` when it last did;
    ``back_at`` is when it last came back from a failure or from being out of service. ``burned_in_at`` is what the
    inventory says; what was before it does not count.
    """

    faults: int = 0
    last_fault_at: float | None = None
    back_at: float | None = None
    burned_in_at: float | None = None

    def fresh_until(self, now: float) -> float | None:
        """Until when it ranks behind others because it has not run for long; ``None`` if it does not."""
        if self.burned_in_at is not None and self.burned_in_at > now:
            return self.burned_in_at
        settled_at = None if self.back_at is None else self.back_at + BURN_IN_S
        return settled_at if settled_at is not None and settled_at > now else None


Records = Mapping[str, AcceleratorRecord]
UNKNOWN = AcceleratorRecord()


def records_of(store: Store, inventory: Inventory, accelerators: Iterable[Accelerator], now: float) -> Records:
    """The record of each of these accelerators, by id, from the history that the store keeps."""
    burned_in = {a.id: _burned_in_at(a) for a in accelerators}
    found = {name: AcceleratorRecord(burned_in_at=at) for name, at in burned_in.items()}
    of_lane = {lane.id: name for name in burned_in for lane in inventory.transponders_of(name)}
    for row in store.transitions(since=now - LATELY_S):
        kind_of = {"accelerator": row.component, "link": of_lane.get(row.component, "")}
        name = kind_of.get(row.kind, "")
        if name in found and row.at <= now and row.at >= (burned_in[name] or 0.0):
            found[name] = _added(found[name], row)
    return found


def _added(record: AcceleratorRecord, row: Transition) -> AcceleratorRecord:
    if is_fault(row.after) and not (row.before is not None and is_fault(row.before)):
        return replace(record, faults=record.faults + 1, last_fault_at=row.at)
    if row.kind == "accelerator" and row.after is State.OK and row.before in {State.FAILED, State.DISABLED}:
        return replace(record, back_at=row.at)
    return record


def _burned_in_at(accelerator: Accelerator) -> float | None:
    day = accelerator.burned_in
    return None if day is None else datetime.combine(day, time(), UTC).timestamp()
