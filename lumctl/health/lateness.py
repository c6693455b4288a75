"""Which ranks are late for the collectives of their jobs: the reading that the rule ``gpu.straggler`` judges."""

from collections.abc import Mapping
from dataclasses import dataclass, field

STRAGGLER = "gpu.straggler"
"""The rule that judges it."""


@dataclass(frozen=True, slots=True)
class RankLateness:
    """A rank that is late by more than chance, and how long the others of its group wait in each training step.

    ``group`` is empty for all ranks of the job. ``at`` is the time of the newest training step that was judged, and
    ``since`` that of the first from which on the rank was late (seconds since the epoch). ``worked_around``: the ranks
    use a schedule that hides the wait.
    """

    job: str
    rank: int
    accelerator: str
    group: str
    gap_s: float
    step_s: float
    since: float
    at: float
    worked_around: bool = False


@dataclass(frozen=True, slots=True)
class Lateness:
    """The late ranks by accelerator, of those in ``judged``.

    Of those in ``unknown``, nobody has lately judged who is late in their job, which runs. All others wait for nobody.
    """

    late: Mapping[str, RankLateness] = field(default_factory=dict)
    judged: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()


NOBODY_LATE = Lateness()
