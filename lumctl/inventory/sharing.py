"""How the spares of a rack are shared among jobs that need them at the same time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lumctl.inventory.problems import Mark

LEAST_SPARES = 2
"""How many spares of a pool must be free, if it has as many: the last one is told of before it is taken."""


class Preemption(StrEnum):
    """Which jobs give their spares up to a job that lost an accelerator."""

    NEVER = "never"
    FILLERS = "fillers"


class SpareHosts(StrEnum):
    """On which hosts the spares of one job may be that are taken together."""

    ANY = "any"
    SAME = "same"
    """On one host."""
    DIFFERENT = "different"
    """Each on another host, and on none where another rank of the job runs."""


@dataclass(frozen=True, slots=True)
class SpareConstraints:
    """What a job requires of its spares, beyond the model and memory of what failed.

    ``driver`` and ``firmware`` are patterns of versions, any of which suffices. ``most_loss_db`` is the most that a new
    circuit may lose, ``free_memory_gib`` how much memory must not be in use.
    """

    driver: tuple[str, ...] = ()
    firmware: tuple[str, ...] = ()
    most_loss_db: float | None = None
    free_memory_gib: float | None = None
    hosts: SpareHosts = SpareHosts.ANY


@dataclass(frozen=True, slots=True)
class Sharing:
    """Who gets which spares: the name of a sharing policy, and what it is told.

    ``weights`` are those of jobs (default: 1). ``reserve`` is how many free spares of a class are held back, in each
    rack, from demands that another class could serve too. ``ageing_s`` is how long a demand waits until it weighs one
    more. ``return_cost_s`` is how many accelerator-seconds a job may stand still to move back after a repair; ``None``
    is no limit. ``mark`` is the place of the policy's name in the file.
    """

    policy: str = "best-fit"
    weights: Mapping[str, float] = field(default_factory=dict)
    reserve: Mapping[str, int] = field(default_factory=dict)
    ageing_s: float = 86_400.0
    preemption: Preemption = Preemption.FILLERS
    return_cost_s: float | None = None
    mark: Mark | None = field(default=None, compare=False)
