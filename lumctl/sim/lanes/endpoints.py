"""Endpoints: loopback addresses at which one connection is awaited.

Of two ranks that gloo joins, the one with the greater address connects: addresses are compared first, and then ports,
as numbers whose low byte was sent first. A port whose low byte is zero is less than almost every other in that order,
so that whoever is given an endpoint as its peer's address connects to it.
"""

import errno
import random
import socket

from lumctl.errors import RefusedError

LOOPBACK = "127.0.0.1"
_PORTS = range(1024, 32513, 256)


def listen() -> socket.socket:
    """A listening socket at a free endpoint.

    Raises:
        RefusedError: none is free.
    """
    for port in random.sample(_PORTS, len(_PORTS)):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # A connection that was accepted here before keeps the port busy for everything but another listener.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((LOOPBACK, port))
            listening.listen(1)
        except OSError as error:
            listening.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            listening.settimeout(0.0)
            return listening
    raise RefusedError(f"all {len(_PORTS)} endpoints of the lanes await somebody", hint="ask again in a while")
