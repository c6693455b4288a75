"""What an inventory says of a job that torchrun starts."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from lumctl.inventory.entry import Text
from lumctl.inventory.job_entries import Command, JobKindEntry, Time

MOST_PORT = 65_535


class TorchrunHookEntry(JobKindEntry):
    """A job that torchrun starts: it is ended before light moves, and started again where it is placed then."""

    kind: Literal["torchrun"] = Field(description="torchrun has the job.")
    command: Command = Field(
        description="The script and its arguments, as they are on each host. It continues from its own checkpoint."
    )
    torchrun: Command = Field(["torchrun"], description="The program that starts it on a host.")
    options: Annotated[list[Text], Field(max_length=256)] = Field(
        [], description="Options of torchrun beside ours, such as --max-restarts=3."
    )
    id: Text | None = Field(
        None,
        description="Its rendezvous id, by which a torchrun that somebody else started is found. Default: its name.",
    )
    endpoint: Text | None = Field(
        None, description="Where its ranks meet, host:port. Default: the address of rank 0's host, and `port`."
    )
    port: Annotated[int, Field(ge=1, le=MOST_PORT)] = Field(29400, description="The port where its ranks meet.")
    folder: Text | None = Field(
        None, description="The folder in which it runs, on each host. Default: the home folder."
    )
    environment: Mapping[Text, str] = Field({}, description="Added to its environment; no secret belongs here.")
    on: Annotated[list[Text], Field(max_length=64)] = Field(
        [],
        description='Put before what is run on a host, such as [ssh, "{host}"]. Default: all hosts are this machine.',
    )
    python: Text = Field("python3", description="A Python on each host, 3.9 or newer, that looks after torchrun.")
    grace_s: Time = Field(10.0, description="Seconds between asking it to end and ending it.")
