"""The settings of ``lumctl job run`` in the inventory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

WORKERS = "workers"
"""The kind of control for a job that ``lumctl job run`` runs."""
PAUSED_WITHIN_S = 60.0
"""The time in seconds within which the processes of such a job pause, or form their group again."""


class WithoutSpare(StrEnum):
    """What happens to a job that has lost a rank if no spare is left."""

    WAIT = "wait"
    SHRINK = "shrink"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class JobRun:
    """The processes of a job: one for each rank, and standby processes.

    ``agent`` is the program, with its arguments, that starts lumctl's agent on a host. Paths of programs and ``folder``
    are paths on the hosts. A process counts as hung if the kernel has stopped it for ``heartbeat_s``, or if it is not
    ready ``start_s`` after its start. A job counts as hung if no rank has completed a step for ``stall_s``. With
    ``standby``, a second process waits ready on the accelerator of each rank. The job is stopped after ``restarts``
    recoveries without a step in between.
    """

    command: tuple[str, ...]
    folder: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    agent: tuple[str, ...] = ("python3", "-m", "lumctl.training.agent")
    heartbeat_s: float = 2.0
    stall_s: float = 600.0
    start_s: float = 600.0
    silence_s: float = 600.0
    exit_s: float = 60.0
    standby: bool = True
    without_spare: WithoutSpare = WithoutSpare.WAIT
    restarts: int = 3
