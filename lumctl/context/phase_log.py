"""The journal's entries on light that a running job changes between its phases: written by the job, read by health.

The changes are too many for an entry each: a job writes one every ``ENTRY_EVERY_S``, and at once for each that failed.
"""

from collections.abc import Mapping

from lumctl.inventory.model import Inventory
from lumctl.inventory.phase_records import lit_phase, phase_permit
from lumctl.store import Store
from lumctl.store.journal import LIGHT_CHANGES, LIGHT_FAILED

ENTRY_EVERY_S = 10.0
FRESH_S = 2 * ENTRY_EVERY_S + 5.0
"""How old the evidence of a phase may be, in seconds, for health to rely on it."""


def shown(store: Store, inventory: Inventory, assignment: Mapping[str, tuple[str, ...]], now: float) -> set[str]:
    """The jobs that have shown lately, by traffic or a proof, that the phase on record has its light when it is lit.

    And that since then no change or proof has failed.

    Raises:
        StoreError: the store cannot be read.
    """
    permits = {name: phase_permit(name, assignment) for name, job in inventory.jobs.items() if job.phases}
    found = set[str]()
    for remark in (
        store.journal.remarks(LIGHT_CHANGES, LIGHT_FAILED, since=now - FRESH_S) if any(permits.values()) else ()
    ):
        job, seen = str(remark.data.get("job")), remark.data.get("shown") or {}
        found -= {job}
        if permits.get(job) is None or remark.data.get("permit") != permits[job]:
            continue
        at = seen.get(lit_phase(inventory.jobs[job], assignment).name)
        if at is not None and now - FRESH_S <= at <= now:
            found.add(job)
    return found
