"""How ``lumctl job run`` runs a job, as it is written."""

from typing import Annotated

from pydantic import Field

from lumctl.inventory.entry import Entry, Text
from lumctl.inventory.hook_entries import Command
from lumctl.inventory.running import JobRun, WithoutSpare

_DEFAULT = JobRun(())
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"


class JobRunEntry(Entry):
    """How ``lumctl job run`` runs a job."""

    command: Command = Field(description="Program and arguments of one process; it uses lumctl.training.torch.")
    folder: Text | None = Field(None, description="Where it runs, on each host; the home folder unless given.")
    environment: dict[Annotated[str, Field(pattern=_VARIABLE)], str] = Field(
        {}, description="Variables that it is given. No secrets: they are shown."
    )
    agent: Command = Field(
        list(_DEFAULT.agent), description="Program and arguments that start our agent on a host; lumctl is there."
    )
    heartbeat_s: Annotated[float, Field(ge=0.2, le=600, allow_inf_nan=False)] = Field(
        _DEFAULT.heartbeat_s,
        description="A process stopped for this long, for example by SIGSTOP, hangs.",
    )
    stall_s: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = Field(
        _DEFAULT.stall_s,
        description="A job that does no step for so many seconds hangs, and so does a process that keeps it from one.",
    )
    start_s: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = Field(
        _DEFAULT.start_s,
        description="Time that a process has to load its libraries and its model; a job that is waiting for it to "
        "begin then stops.",
    )
    silence_s: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = Field(
        _DEFAULT.silence_s,
        description="A running process that has sent no message for this long counts as hanging: something in it does "
        "not release the Python interpreter. Choose more than the longest such call of a healthy script.",
    )
    exit_s: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = Field(
        _DEFAULT.exit_s,
        description="Time that a process has to end after the last line of its script, or after the error that ends "
        "the script; then it is killed.",
    )
    standby: bool = Field(
        default=_DEFAULT.standby,
        description="Keep a ready process beside each rank, for a crash on a healthy accelerator.",
    )
    without_spare: WithoutSpare = Field(
        _DEFAULT.without_spare,
        strict=False,
        description="When no spare is left: wait for one, go on with fewer ranks, or stop.",
    )
    restarts: Annotated[int, Field(ge=1, le=1000)] = Field(
        _DEFAULT.restarts, description="Recoveries in a row without a new step after which the job is stopped."
    )
