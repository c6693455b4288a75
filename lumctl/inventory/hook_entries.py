"""A job's hook as it is written: the operator's own programs that pause the job, have it go on, and tell of it."""

from typing import Annotated

from pydantic import Field

from lumctl.inventory.entry import Entry, Text

MOST_TIME_S = 3600.0

Command = Annotated[list[Text], Field(min_length=1, max_length=256)]
"""A program and its arguments; no shell reads them."""


class JobHookEntry(Entry):
    """How a job is paused before light moves, and resumed afterwards."""

    pause: Command = Field(
        description="Program and arguments. Exit code 0: the job is paused; any other: it is not, and no light moves."
    )
    resume: Command = Field(
        description="Program and arguments. Exit code 0: the job goes on, where LUMCTL_RANKS says; any other: it does "
        "not. Is asked of a job that runs already, too."
    )
    status: Command | None = Field(
        None, description="Program and arguments. Its first word is running, paused or stopped."
    )
    timeout_s: Annotated[float, Field(gt=0, le=MOST_TIME_S, allow_inf_nan=False)] = Field(
        30.0, description="Seconds within which each must end; then it is ended with all that it started."
    )
    on_sim: bool = Field(default=False, description="Run them on target sim too: for a job that runs on the simulator.")
