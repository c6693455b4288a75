"""Who is asking: the operating system's identity, the machine, and the SSH client it came from, if any."""

import getpass
import os
import socket


def origin() -> str:
    """For example ``ops@console from 10.0.0.7``; never a secret."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid {os.getuid()}"
    came_from = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
    return f"{user}@{socket.gethostname()}" + (f" from {came_from}" if came_from else "")
