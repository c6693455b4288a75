"""A plan of kind ``phases`` for tests, and the record of a run by which it permits a job to light its phases."""

from collections.abc import Mapping

from lumctl.change.plan import PHASES, Plan, PlannedPhase, Start, to_document
from lumctl.inventory.phase_records import phase_of
from lumctl.store import Record, Store

TERM_S = 30.0
Phases = Mapping[str, Mapping[str, Mapping[int, str]]]
"""By phase and device, the state of each cell."""


def plan_of(phases: Phases, rack: str, *, kind: str = PHASES) -> Plan:
    """A plan that holds these phases, and nothing else."""
    planned = tuple(PlannedPhase(name, cells) for name, cells in phases.items())
    return Plan(kind, "phases", rack, "sim", 0.0, "", Start({}), phases=planned).sealed()


def record(store: Store, rack: str, placed: Mapping[str, tuple[str, ...]], *, now: float) -> None:
    """A run that places this and nothing else."""
    lease = store.leases.acquire(rack, "a test", term_s=TERM_S, now=now)
    plan = {"schema": "x", "rack": rack, "digest": "d" * 64}
    about = {"kind": "swap", "target": "sim", "title": "t", "inventory_digest": "", "who": "me"}
    run = store.runs.begin(lease, {**about, "plan_digest": "d" * 64}, plan, now=now)
    store.runs.end(lease, run, Record(now, "end", "", {"state": "done"}), "done", placed=placed)
    store.leases.release(lease)


def permit(store: Store, job: str, phases: Phases, rack: str, *, now: float, **how: str) -> Plan:
    """Save a plan for these phases of a job, the first of which is lit, and record that it permits them."""
    plan = plan_of(phases, rack, **how)
    store.runs.save_plan(to_document(plan))
    record(store, rack, {phase_of(job): (next(iter(phases)), plan.permit)}, now=now)
    return plan
