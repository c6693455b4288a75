"""The state of the line to each host's agent, retries with growing pauses, and the placement in the store."""

import math
from collections.abc import Callable, Iterable, Sequence

from lumctl.errors import LumctlError


class Retries:
    """When each failed thing is tried again, by name."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._failed: dict[str, int] = {}
        self._at: dict[str, float] = {}

    def failed(self, name: str, now: float) -> int:
        """Record a failure; how many times it has failed in a row."""
        times = self._failed[name] = self._failed.get(name, 0) + 1
        self._at[name] = now + min(self._longest_s, self._first_s * 2.0 ** min(times - 1, 30))
        return times

    def over(self, name: str) -> None:
        """Forget a thing: it succeeded, or is no longer wanted."""
        self._failed.pop(name, None)
        self._at.pop(name, None)

    def waits(self, name: str, now: float) -> bool:
        """Whether its next attempt is not due yet."""
        return now < self._at.get(name, -math.inf)

    @property
    def next_at(self) -> float:
        """When the next attempt is due; infinity if nothing waits."""
        return min(self._at.values(), default=math.inf)

    def due(self, now: float) -> list[str]:
        """Remove and return what is due now."""
        names = [name for name, at in self._at.items() if at <= now]
        for name in names:
            del self._at[name]
        return names


AT_ONCE = 2
"""How often a lost line is opened again at once; then its host counts as away."""
FIRST_S, LONGEST_S = 0.5, 10.0
"""The pauses between attempts to reach a host that is away."""


class HostLines:
    """The state of each host's line; ``opens`` starts to open one, and the result is reported later."""

    def __init__(self, opens: Callable[[str], None]) -> None:
        self._opens = opens
        self._asked: set[str] = set()
        self._known: set[str] = set()
        self._lost: dict[str, int] = {}
        self._away: dict[str, str] = {}
        self._pauses = Retries(FIRST_S, LONGEST_S)

    def open(self, host: str) -> None:
        """Start to open a line."""
        self._asked.add(host)
        self._opens(host)

    def want(self, host: str) -> bool:
        """Whether the host's agent can be asked; its line is opened if that was never done."""
        if self.is_up(host):
            return True
        if host not in self._asked and host not in self._lost:
            self.open(host)
        return False

    def listed(self, host: str) -> None:
        """The host's agent has listed its workers."""
        self._known.add(host)
        self._lost.pop(host, None)
        self._away.pop(host, None)
        self._pauses.over(host)

    def lost(self, host: str, why: str, now: float) -> bool:
        """Record that a line was lost, or could not be opened; whether its host counts as away from now on."""
        times = self._lost[host] = self._lost.get(host, 0) + 1
        if times <= AT_ONCE:
            self.open(host)
            return False
        self._known.add(host)
        self._away[host] = why
        self._pauses.failed(host, now)
        return times == AT_ONCE + 1

    def is_up(self, host: str) -> bool:
        """Whether a host has listed its workers and its agent listens."""
        return host in self._known and host not in self._lost

    def known(self, hosts: Iterable[str]) -> bool:
        """Whether each of these hosts has listed its workers or is away."""
        return self._known.issuperset(hosts)

    def away(self, hosts: Iterable[str]) -> str:
        """Which of these hosts are away, and why; empty if none is."""
        return "; ".join(f"host {host} cannot be reached: {self._away[host]}" for host in hosts if host in self._away)

    @property
    def next_at(self) -> float:
        """When a host that is away is tried again."""
        return self._pauses.next_at

    def try_again(self, now: float) -> None:
        """Reopen the lines to hosts that are away, where a retry is due."""
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
        """When they are read again."""
        self._why = ""

    def read(self) -> LumctlError | None:
        """Read the placement; if that fails, the error, and the last placement stays."""
        self.changed()
        try:
            self.placed = tuple(self._placement())
        except LumctlError as error:
            self._unread(error)
            return error
        self._why = ""
        return None

    def changed(self) -> None:
        """Have the spares read again when they are needed next."""
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
