"""The process that holds a rack's lease: it is stored with the lease, named in messages, and ended if necessary.

A holder that was frozen (SIGSTOP, a suspended virtual machine) may wake up in the middle of a write long after its
lease has ended. On the same machine, the next holder ends that process first. It cannot end a process on another
machine. There, only the old holder's own deadline protects the rack: the holder checks it before each send, and it
passes before the lease ends.
"""

import json
import os
from dataclasses import asdict, dataclass
from typing import Self

from lumctl.processes import ProcessId, ProcessState, find, kill_and_wait
from lumctl.store.clock import since_boot

ENDS_WITHIN_S = 5.0
"""How long a process may take to end after SIGKILL before the next holder continues without it."""


@dataclass(frozen=True, slots=True)
class LeaseProcess:
    """A process and the end of its lease, in seconds since the start of its machine."""

    process: ProcessId
    ends_at: float

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Parse the text stored with a lease; ``None`` if it cannot be parsed."""
        try:
            document = json.loads(text)
            return cls(ProcessId(**document["process"]), float(document["ends_at"]))
        except (ValueError, TypeError, KeyError):
            return None

    def text(self) -> str:
        """The text that is stored with a lease."""
        return json.dumps({"process": asdict(self.process), "ends_at": self.ends_at})

    @property
    def state(self) -> ProcessState | None:
        """The present state of the process; ``None`` if it has ended, is on another machine, or is this process."""
        # A take-over would otherwise end this process itself.
        if not self.process.is_here or self.process.pid == os.getpid():
            return None
        return find(self.process)

    @property
    def is_at_work(self) -> bool:
        """Whether the process runs on this machine, not stopped, and its lease lasts by a clock that cannot be set."""
        state = self.state
        return state is not None and not state.stopped and since_boot() < self.ends_at

    def may_wake(self, *, in_run: bool) -> bool:
        """Whether the process may still act although its lease has expired: it was stopped, or is within a run.

        A process on another machine counts as existing. One that runs but has no run only failed to release the lease.
        """
        state = self.state
        return (state is not None and (state.stopped or in_run)) or (in_run and not self.process.is_here)

    def end(self) -> bool:
        """End the process if it still exists on this machine; return whether it can write nothing more.

        ``False`` if it is on another machine, or this user may not end it.
        """
        if self.process.pid == os.getpid() and self.process.is_here:
            return True  # Another thread of this process: its own deadline limits it.
        return self.process.is_here and kill_and_wait(self.process, ENDS_WITHIN_S)

    @property
    def described(self) -> str:
        """The process in words: its PID, machine, user and start, and whether it is stopped."""
        where = f"process {self.process.pid} on {self.process.host}"
        if not self.process.is_here or self.process.pid == os.getpid():
            return where
        state = find(self.process)
        return f"{where} has ended" if state is None else state.described
