"""Lets a real sshd serve a simulated host: ``ForceCommand python -m lumctl.sim.forward CONTROL_SOCKET HOST``."""

import os
import select
import sys
from pathlib import Path

from lumctl.errors import LumctlError
from lumctl.sim.client import ask

_LOST = 255


def forward(control: Path, host: str, command: str) -> int:
    """Run one command on a simulated host: print what it prints and return its exit status."""
    try:
        given = ask(control, "answer", host=host, command=command)
    except LumctlError as error:
        sys.stderr.write(f"{error.message}\n")
        return _LOST
    if given["delay_s"] != 0 and _client_gone_within(given["delay_s"]):
        return _LOST
    sys.stdout.write(given["stdout"])
    sys.stdout.flush()
    sys.stderr.write(given["stderr"])
    return int(given["exit_status"])


def _client_gone_within(seconds: float | None) -> bool:
    """Wait (``None``: for ever) and see whether sshd has closed our output, as it does when its client goes."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # a hang-up is reported whatever is asked for
    return bool(poll.poll(None if seconds is None else seconds * 1000))


if __name__ == "__main__":
    sys.exit(forward(Path(sys.argv[1]), sys.argv[2], os.environ.get("SSH_ORIGINAL_COMMAND", "")))
