"""What a process that a script forks, such as a worker of a DataLoader, does not keep of ours.

A copy of a connection keeps it open: a peer would not see the end of a rank that has died, as long as one of its loader
workers lives.
"""

import os
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress


def in_children(call: Callable[[], None]) -> None:
    """Have a bound method called in each process that is forked from this one, for as long as its object lives."""
    method = weakref.WeakMethod(call)

    def forked() -> None:
        if (found := method()) is not None:
            found()

    os.register_at_fork(after_in_child=forked)


def give_up(descriptors: Iterable[int]) -> None:
    """Let go of connections in a forked process. Their numbers stay taken, so that closing them closes nothing else."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in descriptors:
        with suppress(OSError):
            os.dup2(nothing, each, inheritable=False)
    os.close(nothing)
