"""The settings of ``lumctl job run`` and of hooks, as they are written."""

from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from lumctl.inventory.entry import Entry, Text
from lumctl.inventory.job_run import JobRun, WithoutSpare
from lumctl.inventory.problems import Mark

MOST_TIME_S = 3600.0

Command = Annotated[list[Text], Field(min_length=1, max_length=256)]
"""A program and its arguments; no shell reads them."""

COMMAND = "command"
"""The kind of control of a hook that names no other: programs of the operator's own."""
Time = Annotated[float, Field(gt=0, le=MOST_TIME_S, allow_inf_nan=False)]


class JobHookEntry(Entry):
    """How a job is paused before light moves, and resumed afterwards."""

    kind: Literal["command"] = "command"
    pause: Command = Field(
        description="Program and arguments. Exit code 0: the job is paused; any other: it is not, and no light moves."
    )
    resume: Command = Field(
        description="Program and arguments. Exit code 0: the job runs where LUMCTL_RANKS says; any other: it does not. "
        "It is also called for a job that is already running. A line LUMCTL_RUNS_AT=NAME,NAME,... that it prints gives "
        "the accelerator or host of each rank."
    )
    status: Command | None = Field(
        None,
        description="Program and arguments. The first word that it prints is running, paused or stopped. For a "
        "running job it may print a line LUMCTL_RUNS_AT=NAME,NAME,..., like resume.",
    )
    timeout_s: Time = Field(
        30.0, description="Seconds within which each must end; then it is ended with all that it started."
    )
    on_sim: bool = Field(default=False, description="Run them on target sim too: for a job that runs on the simulator.")


class JobKindEntry(Entry):
    """What every kind of control has, beside the programs of the operator's own."""

    kind: Text = Field(description="How the job is controlled: the name of an installed kind.")
    timeout_s: Time = Field(30.0, description="Seconds within which it must be paused, or continue.")
    on_sim: bool = Field(default=False, description="Act on target sim too: for a job that runs on the simulator.")

    def complaints(self, hosts: Collection[str]) -> Iterator[tuple[Mark, str]]:
        """What is wrong in view of the rest of the inventory: ``hosts`` are the names of the job's rack's hosts."""
        del hosts
        yield from ()


class OtherHookEntry(JobKindEntry):
    """A hook of a kind that a plug-in knows; what else stands in it is read by that one."""

    model_config = ConfigDict(extra="allow")


def _kind(written: Any) -> str:
    kind = written.get("kind", COMMAND) if isinstance(written, dict) else getattr(written, "kind", COMMAND)
    return COMMAND if kind == COMMAND else "other"


HookEntry = Annotated[
    Annotated[JobHookEntry, Tag(COMMAND)] | Annotated[OtherHookEntry, Tag("other")], Discriminator(_kind)
]


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
        description="When no spare is left: wait for one, continue with fewer ranks, or stop.",
    )
    restarts: Annotated[int, Field(ge=1, le=1000)] = Field(
        _DEFAULT.restarts, description="Recoveries in a row without a new step after which the job is stopped."
    )
