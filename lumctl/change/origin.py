"""Who is asking: the operating system's identity, the machine, and the SSH client it came from, if any."""

import os
import pwd
import socket


def origin() -> str:
    """For example ``ops@console from 10.0.0.7``; never a secret.

    The user is the process's own: ``$USER`` and the like say what anybody puts there, and a policy with ``by_another``
    lets nobody approve a plan of their own.
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = f"uid {os.getuid()}"
    came_from = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
    return f"{user}@{socket.gethostname()}" + (f" from {came_from}" if came_from else "")
