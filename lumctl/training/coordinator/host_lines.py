"""The state of the line to each host's agent, retries with growing pauses, and the placement in the store."""

import math
from collections.abc import Callable, Iterable, Sequence

from lumctl.errors import LumctlError


class Retries:
    """The times at which failed actions are tried again, by name."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._failed: dict[str, int] = {}
        self._at: dict[str, float] = {}

    def failed(self, name: str, now: float) -> int:
        """Record a failure; return how often the action has failed in a row."""
        times = self._failed[name] = self._failed.get(name, 0) + 1
        # The exponent is limited, because a float overflows at 2.0**1024.
        self._at[name] = now + min(self._longest_s, self._first_s * 2.0 ** min(times - 1, 30))
        return times

    def over(self, name: str) -> None:
        """Forget an action that succeeded or is no longer needed."""
        self._failed.pop(name, None)
        self._at.pop(name, None)

    def waits(self, name: str, now: float) -> bool:
        """Whether the action's next attempt is not due yet."""
        return now < self._at.get(name, -math.inf)

    @property
    def next_at(self) -> float:
        """When the next attempt is due; infinity if nothing waits."""
        return min(self._at.values(), default=math.inf)

    def due(self, now: float) -> list[str]:
        """Remove and return the actions that are due now."""
        names = [name for name, at in self._at.items() if at <= now]
        for name in names:
            del self._at[name]
        return names


AT_ONCE = 2
"""How often a lost line is reopened at once, before its host counts as away."""
FIRST_S, LONGEST_S = 0.5, 10.0
"""The pauses between attempts to reach a host that is away."""


class HostLines:
    """The state of each host's line. ``opens`` starts to open a line; the result is reported later."""

    def __init__(self, opens: Callable[[str], None]) -> None:
        self._opens = opens
        self._asked: set[str] = set()
        self._known: set[str] = set()
        self._lost: dict[str, int] = {}
        self._away: dict[str, str] = {}
        self._pauses = Retries(FIRST_S, LONGEST_S)
        self.lists = 0
        """The number of lists that agents have sent."""

    def open(self, host: str) -> None:
        """Start to open a line."""
        self._asked.add(host)
        self._opens(host)

    def want(self, host: str) -> bool:
        """Return whether requests can be sent to the host's agent; open its line if that was never done."""
        if self.is_up(host):
            return True
        if host not in self._asked and host not in self._lost:
            self.open(host)
        return False

    def listed(self, host: str) -> None:
        """Record that the host's agent has listed its workers."""
        self.lists += 1
        self._known.add(host)
        self._lost.pop(host, None)
        self._away.pop(host, None)
        self._pauses.over(host)

    def lost(self, host: str, why: str, now: float) -> bool:
        """Record that a line was lost or could not be opened; return whether its host counts as away from now on."""
        times = self._lost[host] = self._lost.get(host, 0) + 1
        if times <= AT_ONCE:
            self.open(host)
            return False
        # Counts as known: the job must not wait for a host that may never answer.
        self._known.add(host)
        self._away[host] = why
        self._pauses.failed(host, now)
        return times == AT_ONCE + 1

    def is_up(self, host: str) -> bool:
        """Whether a host has listed its workers and its line is open."""
        return host in self._known and host not in self._lost

    def known(self, hosts: Iterable[str]) -> bool:
        """Whether each of these hosts has listed its workers or is away."""
        return self._known.issuperset(hosts)

    def away(self, hosts: Iterable[str]) -> str:
        """The hosts among these that are unreachable, with the reason, in words; empty if none is."""
        return "; ".join(f"host {host} cannot be reached: {self._away[host]}" for host in hosts if host in self._away)

    @property
    def next_at(self) -> float:
        """When a host that is away is tried again."""
        return self._pauses.next_at

    def try_again(self, now: float) -> None:
        """Reopen the connections to unreachable hosts for which a retry is due."""
        for host in self._pauses.due(now):
            self.open(host)


AGAIN_S = 30.0
"""The pause before spares are read again after the store could not be read."""


class StorePlacement:
    """The accelerators of the ranks, and the spares that must be ready, as last read from the store."""

    def __init__(
        self,
        placement: Callable[[], Sequence[str]],
        ready_on: Callable[[], Sequence[str]],
        say: Callable[[str], None],
        now: Callable[[], float],
    ) -> None:
        self._placement, self._ready_on, self._say, self._now = placement, ready_on, say, now
        self.placed = tuple(placement())
        """The placement as last read."""
        self._spares: tuple[str, ...] = ()
        self._spares_from = 0.0
        """When the spares are read again."""
        self._why = ""

    def read(self) -> LumctlError | None:
        """Read the placement. If that fails, return the error and keep the last placement."""
        self.changed()
        try:
            self.placed = tuple(self._placement())
        except LumctlError as error:
            self._unread(error)
            return error
        self._why = ""
        return None

    def changed(self) -> None:
        """Read the spares again when they are needed next."""
        self._spares_from = min(self._spares_from, self._now())

    @property
    def spares(self) -> tuple[str, ...]:
        """The accelerators without a rank on which a worker must be ready."""
        if self._now() >= self._spares_from:
            try:
                self._spares, self._spares_from = tuple(self._ready_on()), float("inf")
            except LumctlError as error:
                self._unread(error)
                self._spares_from = self._now() + AGAIN_S
        return self._spares

    def _unread(self, error: LumctlError) -> None:
        if self._why != error.message:
            self._say(f"the store cannot be read, the last placement is used: {error.message}")
            self._why = error.message
