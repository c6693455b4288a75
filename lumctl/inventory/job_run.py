"""How a job is paused, resumed and run, as the inventory states it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lumctl.inventory.entry import JobKindEntry

WORKERS = "workers"
"""The kind of control for a job that ``lumctl job run`` runs."""
PAUSED_WITHIN_S = 60.0
"""The time in seconds within which the processes of such a job pause, or form their group again."""


@dataclass(frozen=True, slots=True)
class JobHook:
    """How a job is paused and resumed: by the operator's programs, each with its arguments.

    With another ``kind`` of control, that kind controls it, with its ``settings`` from the inventory. ``on_sim`` means
    that the hook is also used on the simulator.
    """

    pause: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    status: tuple[str, ...] | None = None
    timeout_s: float = 30.0
    on_sim: bool = False
    kind: str = "command"
    settings: "JobKindEntry | None" = None

    @property
    def for_control(self) -> "JobHook | JobKindEntry":
        """The settings from which the kind of control is made: those of another kind, otherwise these programs."""
        return self if self.settings is None else self.settings


class WithoutSpare(StrEnum):
    """What happens to a job that has lost a rank if no spare is left."""

    WAIT = "wait"
    SHRINK = "shrink"
    STOP = "stop"


class StragglerSchedule(StrEnum):
    """When a job sums up gradients by a schedule for a late rank instead of the backend's all-reduce."""

    ASK = "ask"
    ON = "on"
    OFF = "off"


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
    straggler_schedule: StragglerSchedule = StragglerSchedule.ASK
