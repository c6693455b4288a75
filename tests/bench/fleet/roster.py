"""Who is measured, and how often: the slower a way is, the fewer of its ticks tell how slow."""

import shutil
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender.

    ``kept``: its ssh clients go over connections that are held open for all such contenders. ``ticks``: so many one
    after the other when its turn comes. ``every``: it takes part in one of so many rounds. ``at_least``: how many times
    as long as lumctl's its tick has to be at 256 hosts; ``at_most``: how many times as long as its lumctl's may be.
    """

    name: str
    script: str
    what: str
    variant: str = ""
    kept: bool = False
    ticks: int = 5
    every: int = 1
    program: str | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def tells_apart(self) -> bool:
        """Whether it does less where a host says what it said before."""
        return self.script == "contender_lumctl.py" or self.variant == "loop"

    @property
    def missing(self) -> str | None:
        """The program of the system that this one lacks here."""
        return self.program if self.program and shutil.which(self.program) is None else None


ROSTER: tuple[Entry, ...] = (
    Entry("lumctl", "contender_lumctl.py", "lumctl"),
    Entry("asyncssh-loop", "contender_asyncssh.py", "asyncssh, the same loop", variant="loop", at_most=1.1),
    Entry("asyncssh-exec", "contender_asyncssh.py", "asyncssh, a command per tick", "exec", ticks=3, at_least=2.5),
    Entry("mitogen", "contender_mitogen.py", "mitogen, a Python per host", ticks=3, at_least=1.5),
    Entry("parallel-ssh", "contender_parallel_ssh.py", "parallel-ssh, libssh", "ssh", ticks=2, at_least=4),
    Entry("parallel-ssh2", "contender_parallel_ssh.py", "parallel-ssh, libssh2", "ssh2", ticks=2, at_least=4),
    Entry("pdsh", "contender_pdsh.py", "pdsh, ControlPersist", "", kept=True, ticks=1, program="pdsh", at_least=8),
    Entry("clush", "contender_clush.py", "clush, ControlPersist", "", kept=True, ticks=1, every=2, at_least=20),
    Entry("ansible", "contender_ansible.py", "Ansible ad hoc, 64 forks", "", kept=True, ticks=1, every=2, at_least=40),
)

NAMES = tuple(entry.name for entry in ROSTER)


def chosen(only: str | None) -> tuple[Entry, ...]:
    """The entries that a comma-separated list names; all of them without one."""
    if only is None:
        return ROSTER
    wanted = only.split(",")
    unknown = sorted(set(wanted) - set(NAMES))
    if unknown:
        raise SystemExit(f"no contender {unknown[0]!r}; there are {', '.join(NAMES)}")
    return tuple(entry for entry in ROSTER if entry.name in wanted)
