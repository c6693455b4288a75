"""The permission to send to a device, asked immediately before each send.

A change writes under a lease, and the process may be frozen at any instant. When it continues, its lease may have ended
and another process may have changed the rack. So every transport calls this right before it sends, after every wait
(for a connection, a channel or its turn). Outside a change all sends are permitted: reading needs no lease.

A driver that opens its own connections instead of using :mod:`lumctl.devices.ways` should also call
:func:`require_permission`; otherwise permission is asked only when a step begins.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Permission = Callable[[], None]
"""Returns if data may be sent now, otherwise raises a ``DeviceError``."""


def _always() -> None:
    return None


_current: ContextVar[Permission] = ContextVar("permission", default=_always)


@contextmanager
def sending_with(permission: Permission) -> Iterator[None]:
    """Within the block, require this permission for everything that this thread sends to devices."""
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
        DeviceError: the thread's lease has ended; nothing may be sent.
    """
    _current.get()()
