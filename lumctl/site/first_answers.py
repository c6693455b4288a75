"""Which hosts and devices have not given their first answers yet: what is unknown because of that is no news."""

import time
from collections.abc import Callable, Collection, Iterable

from lumctl.fleet.readings import HostSnapshot, Snapshot
from lumctl.health.rulebook import verdict

WAIT_S = 60.0
"""After this time a look counts, even if some hosts have not answered.

A host that is lost misses three times within 20 s, and the time limits of probes and drivers are shorter.
"""


class FirstAnswers:
    """Follows the looks of one process from its first one on."""

    def __init__(self, names: Iterable[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        """``names`` are the hosts and the devices of which answers are expected."""
        self._names = dict.fromkeys(names)
        self._monotonic = monotonic
        self._until = monotonic() + WAIT_S

    def outstanding(self, snapshot: Snapshot, devices: Collection[str]) -> tuple[str, ...]:
        """Those of which nothing final is known: neither an answer, nor that none comes. Each is named until then.

        ``devices`` are those that answered, or whose time is over.
        """
        if self._names and self._monotonic() >= self._until:
            self._names.clear()
        for name in list(self._names):
            host = snapshot.hosts.get(name)
            if name in devices or (host is not None and _is_final(host)):
                del self._names[name]
        return tuple(self._names)


def _is_final(host: HostSnapshot) -> bool:
    """Whether each of its probes has ended in some way, or it is known not to answer."""
    if host.reachable:
        return not host.awaited
    return host.host_key_problem or host.attempts >= verdict("host.missed", "missed").limit
