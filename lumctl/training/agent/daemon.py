"""An agent as a daemon: in a session of its own, with no parent and no terminal."""

import os
import time
from pathlib import Path

from lumctl.training.agent.agent import Agent
from lumctl.training.agent.folder import Folder, claimed, listening, private_folder
from lumctl.training.agent.worker_records import adopted


def serve(path: Path) -> None:
    """Start an agent for a folder. Once this returns in the caller, the agent accepts connections.

    Raises:
        LumctlError: another serves it already, or it cannot be served.
    """
    folder = private_folder(path)
    lock = claimed(folder)
    with listening(folder) as listener:
        # Connections are accepted from here on, and answered once the agent has found its workers.
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
    """Let go of the starter's terminal, pipes and working folder."""
    nothing = os.open(os.devnull, os.O_RDWR)
    errors = os.open(folder.errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    for descriptor, place in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(descriptor, place)
    os.close(nothing)
    os.close(errors)
    os.chdir("/")
