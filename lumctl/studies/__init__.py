"""The published results, run again over the rooms that run the rack, with a verdict on each claim."""

from collections.abc import Mapping

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest
from lumctl.studies import (
    bandwidth,
    collectives,
    fragmentation,
    matchings,
    overprovisioning,
    placement,
    rail_steps,
    rails,
    recovery,
    sharing,
    spares,
    trace,
)
from lumctl.studies.results import ClaimResult, StudyResult, claim_document, claim_entry, result_document, run_study
from lumctl.studies.study import Study

STUDIES: Mapping[str, Study] = {
    each.STUDY.name: each.STUDY
    for each in (
        *(bandwidth, collectives, fragmentation, matchings, overprovisioning, placement),
        *(rail_steps, rails, recovery, sharing, spares, trace),
    )
}


def find_study(name: str) -> Study:
    """The study of a name.

    Raises:
        UsageError: there is none.
    """
    if name not in STUDIES:
        near = nearest(name, STUDIES)
        hint = f"did you mean {near!r}?" if near else "see: lumctl study list"
        raise UsageError(f"there is no study {name!r}", hint=hint)
    return STUDIES[name]


__all__ = [
    "STUDIES",
    "ClaimResult",
    "StudyResult",
    "claim_document",
    "claim_entry",
    "find_study",
    "result_document",
    "run_study",
]
