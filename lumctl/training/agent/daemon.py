"""An agent as a process of its own: of nobody's session, nobody's child, with no terminal."""

import os
import time
from pathlib import Path

from lumctl.training.agent.agent import Agent
from lumctl.training.agent.folder import Folder, claimed, listening, private_folder
from lumctl.training.agent.worker_records import adopted


def serve(path: Path) -> None:
    """Start an agent for a folder. When this returns, it can be connected to; the agent itself never comes back here.

    Raises:
        LumctlError: another serves it already, or it cannot be served.
    """
    folder = private_folder(path)
    lock = claimed(folder)
    with listening(folder) as listener:
        # From here on whoever connects is heard, at the latest when the agent has found its workers.
        agent = os.fork()
        if agent == 0:
            os.setsid()
            _say_who(lock, os.getpid())
            _leave(folder)
            Agent(folder, listener, adopted(folder, now=time.monotonic(), at=time.time())).run()
            return
        _say_who(lock, agent)
    os.close(lock)


def _say_who(lock: int, pid: int) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(pid).encode(), 0)


def _leave(folder: Folder) -> None:
    """Hold nothing of whoever started us: no terminal, no pipe, no folder."""
    nothing = os.open(os.devnull, os.O_RDWR)
    errors = os.open(folder.errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    for descriptor, place in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(descriptor, place)
    os.close(nothing)
    os.close(errors)
    os.chdir("/")
