"""The requester: the operating system's user, the machine, and the SSH client, if any."""

import os
import pwd
import socket


def origin() -> str:
    """The requester in words, for example ``ops@console from 10.0.0.7``; they contain no secret.

    The user is that of the process, not ``$USER``, which anyone can set: a policy with ``by_another`` must not let
    operators approve their own plans.
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = f"uid {os.getuid()}"
    came_from = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
    return f"{user}@{socket.gethostname()}" + (f" from {came_from}" if came_from else "")
