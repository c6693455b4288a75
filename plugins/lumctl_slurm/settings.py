"""What an inventory says of a job that Slurm runs."""

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from lumctl.inventory.entry import Text
from lumctl.inventory.job_entries import JobKindEntry
from lumctl.inventory.problems import Mark


class SlurmHookEntry(JobKindEntry):
    """A job that Slurm runs: it is requeued and held before light moves, and released where it is placed then."""

    kind: Literal["slurm"] = Field(description="Slurm has the job.")
    job: Text | None = Field(None, description="Its name in Slurm. Default: its name here.")
    user: Text | None = Field(None, description="Whose it is, where several users have a job of that name.")
    id_file: Text | None = Field(None, description="A file that holds its number, in the place of its name.")
    id_variable: Text | None = Field(
        None, description="A variable of lumctl's environment that holds its number, in the place of its name."
    )
    nodes: Mapping[Text, Text] = Field(
        {}, description="Slurm's names of hosts that are called otherwise there, by host."
    )
    on: Annotated[list[Text], Field(max_length=64)] = Field(
        [], description="Put before each command of Slurm, such as [ssh, HEAD-NODE]. Default: they run here."
    )

    def complaints(self, hosts: Collection[str]) -> Iterator[tuple[Mark, str]]:
        """Hosts that are not there, two hosts that are one node, and a job that is named in two ways."""
        hosts_by_node: dict[str, str] = {}
        for host, node in self.nodes.items():
            mark = self.item_mark("nodes", host)
            if host not in hosts:
                yield mark, f"host {host!r} is not known"
            if node in hosts_by_node:
                yield mark, f"node {node} is host {hosts_by_node[node]} already, expected a node for each host"
            hosts_by_node[node] = host
        named = [key for key in ("job", "id_file", "id_variable") if getattr(self, key) is not None]
        if len(named) > 1:
            yield self.mark(named[1]), f"found {' and '.join(named)}, expected one of them"

    def node_of(self, host: str) -> str:
        """What Slurm calls a host."""
        return self.nodes.get(host, host)
