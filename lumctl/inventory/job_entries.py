"""A job as the inventory file has it: its ranks and links, its hook, and the settings of ``lumctl job run``."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from lumctl.inventory.entry import (
    VARIABLE,
    Entry,
    JobKindEntry,
    Number,
    OneOrMany,
    Text,
    Time,
    one_or_many,
)
from lumctl.inventory.job_run import JobRun, StragglerSchedule, WithoutSpare
from lumctl.inventory.sharing import SpareHosts

Command = Annotated[list[Text], Field(min_length=1, max_length=256)]
"""A program and its arguments; no shell reads them."""

COMMAND = "command"
"""The kind of control of a hook that names no kind: the operator's own programs."""


def _word(value: object) -> object:
    """``on`` and ``off``, which YAML reads as true and false."""
    return {True: StragglerSchedule.ON, False: StragglerSchedule.OFF}[value] if isinstance(value, bool) else value


class JobHookEntry(Entry):
    """How a job is paused before its light paths change, and resumed afterwards."""

    kind: Literal["command"] = "command"
    pause: Command = Field(
        description=(
            "Program and arguments. Exit code 0: the job is paused; any other: it is not, and no light path is changed."
        )
    )
    resume: Command = Field(
        description=(
            "Program and arguments. Exit code 0: the job runs where LUMCTL_RANKS says; any other: it does not. It is "
            "also called for a job that is already running. If it prints a line LUMCTL_RUNS_AT=NAME,NAME,..., that "
            "line gives the accelerator or host of each rank."
        )
    )
    status: Command | None = Field(
        None,
        description="Program and arguments. The first word that it prints is running, paused or stopped. For a "
        "running job it may print a line LUMCTL_RUNS_AT=NAME,NAME,..., like resume.",
    )
    timeout_s: Time = Field(
        30.0, description="Seconds within which each must end; then it is ended with all that it started."
    )
    on_sim: bool = Field(
        default=False, description="Also run them on target sim: for a job that runs on the simulator."
    )


class OtherHookEntry(JobKindEntry):
    """A hook of a kind that a plug-in knows; its other fields are read by the plug-in."""

    model_config = ConfigDict(extra="allow")


def _kind(written: Any) -> str:
    kind = written.get("kind", COMMAND) if isinstance(written, dict) else getattr(written, "kind", COMMAND)
    return COMMAND if kind == COMMAND else "other"


HookEntry = Annotated[
    Annotated[JobHookEntry, Tag(COMMAND)] | Annotated[OtherHookEntry, Tag("other")], Discriminator(_kind)
]


_DEFAULT = JobRun(())


class JobRunEntry(Entry):
    """How ``lumctl job run`` runs a job."""

    command: Command = Field(description="Program and arguments of one process; it uses lumctl.training.torch.")
    folder: Text | None = Field(None, description="Working folder on each host; by default the home folder.")
    environment: dict[Annotated[str, Field(pattern=VARIABLE)], str] = Field(
        {}, description="Environment variables of the process. No secrets: they are displayed."
    )
    agent: Command = Field(
        list(_DEFAULT.agent),
        description="Program and arguments that start lumctl's agent on a host, where lumctl is installed.",
    )
    heartbeat_s: Annotated[float, Field(ge=0.2, le=600, allow_inf_nan=False)] = Field(
        _DEFAULT.heartbeat_s,
        description="A process that is stopped for this long, for example by SIGSTOP, counts as hanging.",
    )
    stall_s: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = Field(
        _DEFAULT.stall_s,
        description=(
            "A job without a new step for this many seconds counts as hanging, and so does a process that blocks a "
            "step."
        ),
    )
    start_s: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = Field(
        _DEFAULT.start_s,
        description=(
            "Time limit for a process to load its libraries and its model; when it expires, a job that waits for the "
            "process stops."
        ),
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
        _DEFAULT.restarts, description="The job is stopped after this many consecutive recoveries without a new step."
    )
    straggler_schedule: Annotated[StragglerSchedule, BeforeValidator(_word)] = Field(
        _DEFAULT.straggler_schedule,
        strict=False,
        description="A schedule for a late rank, where it is faster: if an operator asks for it, always (on), or never "
        "(off). For gradients that job.average sums up.",
    )


class JobControlEntry(Entry):
    """How a job is paused, resumed and run."""

    hook: HookEntry | None = Field(
        None, description="How it is paused before its light paths change, and resumed afterwards."
    )
    needs_no_pause: bool = Field(
        default=False,
        description="Its light paths may change while it runs: without a hook, it need not be stopped first.",
    )
    run: JobRunEntry | None = Field(None, description="How `lumctl job run` runs it, and recovers it.")


RankList = Annotated[
    Annotated[Text, Tag("one")] | Annotated[list[Number], Field(min_length=1), Tag("many")], Discriminator(one_or_many)
]
"""Rank numbers: a list, or a text such as ``0-7,12``."""


class RingEntry(Entry):
    """Each rank is linked to the next, the last to the first."""

    kind: Literal["ring"]
    ranks: RankList | None = Field(None, description="Default: all ranks of the job, in order.")


class PairsEntry(Entry):
    """The listed pairs of ranks are linked."""

    kind: Literal["pairs"]
    pairs: list[Annotated[list[Number], Field(min_length=2, max_length=2)]] = Field(min_length=1)


class TorusEntry(Entry):
    """Ranks in row-major order on a torus."""

    kind: Literal["torus"]
    ranks: RankList | None = Field(None, description="Default: all ranks of the job, in order.")
    shape: list[Annotated[int, Field(ge=1, le=100_000)]] = Field(
        min_length=1, max_length=8, description="Extent of each dimension; their product is the number of ranks."
    )


LinksEntry = Annotated[RingEntry | PairsEntry | TorusEntry, Field(discriminator="kind")]

Version = Annotated[list[Text], Field(min_length=1)]


class SpareConstraintsEntry(Entry):
    """What a spare must have to replace an accelerator of the job, beyond model and memory."""

    driver: Version | None = Field(None, description="Patterns of the driver's version, such as 570.*; one must match.")
    firmware: Version | None = Field(None, description="Patterns of the accelerator's firmware (VBIOS) version.")
    most_loss_db: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] | None = Field(
        None, description="The most that a new circuit of the job may lose."
    )
    free_memory_gib: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] | None = Field(
        None, description="Memory that nobody may be using when the spare is chosen."
    )
    hosts: Annotated[SpareHosts, Field(strict=False)] = Field(
        SpareHosts.ANY,
        description="same: spares taken together are on one host; different: each is on a host without another rank.",
    )


class JobEntry(JobControlEntry):
    """A training job and the links that it needs."""

    name: Text
    ranks: OneOrMany[Text] = Field(description="Accelerators in rank order; folded.")
    links: list[LinksEntry] = Field([])
    phases: dict[Text, Annotated[list[LinksEntry], Field(min_length=1)]] = Field(
        {},
        max_length=64,
        description="Instead of links: the links of each phase of a training step, by the phase's name. Phases share "
        "the lanes of the ranks.",
    )
    order: list[Text] = Field(
        [],
        max_length=1024,
        description="The phases in the order in which a training step passes through them; one may occur more than "
        "once. By default each once, as listed.",
    )
    spares: SpareConstraintsEntry | None = Field(None, description="What its spares must have.")


class FillerEntry(Entry):
    """A job without links that runs on spares, and gives them up when a swap needs one of them."""

    name: Text
    ranks: OneOrMany[Text] = Field(description="Spares of one rack in rank order; folded.")
    hook: HookEntry = Field(
        description="How it is paused before a swap takes one of its spares, and resumed when all are free again. A "
        "paused filler job must leave no memory of the accelerators in use."
    )
