"""A job's hook as it is written: the operator's own programs, or a kind of control that a plug-in knows.

What a kind of control needs is a subclass of :class:`JobKindEntry`, named by the plug-in's class as its ``entry``.
"""

from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from lumctl.inventory.entry import Entry, Text
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
    timeout_s: Time = Field(30.0, description="Seconds within which it must be paused, or go on.")
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
