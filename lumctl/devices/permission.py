"""The permission to send to a device, asked immediately before each send.

A change writes under a lease, and the process may be frozen at any instant: when it wakes up its lease may have ended,
and somebody else may have changed the rack. So every transport asks here right before its bytes leave, after whatever
it had to wait for (a connection, a channel, its turn). Outside a change everything may be sent: reading needs no lease.

A driver that opens connections of its own, past the ways of :mod:`lumctl.devices.ways`, should call
:func:`require_permission` as well; without that it is asked only when a step begins.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Permission = Callable[[], None]
"""Returns if something may be sent now; else raises a ``DeviceError``."""


def _always() -> None:
    return None


_current: ContextVar[Permission] = ContextVar("permission", default=_always)


@contextmanager
def sending_with(permission: Permission) -> Iterator[None]:
    """While inside, what this thread sends to devices needs a permission."""
    token = _current.set(permission)
    try:
        yield
    finally:
        _current.reset(token)


def permission() -> Permission:
    """The permission that the caller needs, for a send that another thread does on its behalf."""
    return _current.get()


def require_permission() -> None:
    """Return if this thread may send to a device now.

    Raises:
        DeviceError: its lease has ended; nothing may be sent.
    """
    _current.get()()
