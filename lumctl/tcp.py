"""TCP connections to hosts, devices and receivers; reasons of failures have the same words everywhere."""

import socket

from lumctl.errors import unresolved


def connect(host: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to an address; small packets are sent at once.

    Raises:
        OSError: the name cannot be resolved (:class:`socket.gaierror`, with :func:`unknown_name` as its text), or
            nothing answers there.
    """
    try:
        connected = socket.create_connection((host, port), timeout=timeout_s)
    except socket.gaierror as error:
        raise socket.gaierror(error.errno, unknown_name(host, error)) from None
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def unknown_name(host: str, error: socket.gaierror) -> str:
    """The message for a name without an address: either the name is unknown, or DNS did not answer."""
    if error.errno == socket.EAI_AGAIN:
        return f"{unresolved(host)}: no name server answers"
    return unresolved(host)


def reason(error: OSError) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    return (error.strerror or str(error) or type(error).__name__).lower()
