"""The state of the line to each host's agent: listed, up, lost or away, and when to retry."""

from collections.abc import Callable, Iterable

from lumctl.training.coordinator.retries import Retries

AT_ONCE = 2
"""How often a line that is lost is opened again at once, before its host counts as away."""
FIRST_S, LONGEST_S = 0.5, 10.0
"""The pauses after which the line to a host that is away is tried again."""


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
        """Whether the host's agent can be asked; a line that was never wanted before is opened."""
        if self.is_up(host):
            return True
        if host not in self._asked and host not in self._lost:
            self.open(host)
        return False

    def told(self, host: str) -> None:
        """The host's agent has listed its workers."""
        self._known.add(host)
        self._lost.pop(host, None)
        self._away.pop(host, None)
        self._pauses.over(host)

    def lost(self, host: str, why: str, now: float) -> bool:
        """A line was lost, or could not be opened; whether its host counts as away from now on."""
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
        """Which of these are away, and why; empty if none is."""
        return "; ".join(f"host {host} is not heard: {self._away[host]}" for host in hosts if host in self._away)

    @property
    def next_at(self) -> float:
        """When a host that is away is tried again."""
        return self._pauses.next_at

    def try_again(self, now: float) -> None:
        """Reopen the lines to hosts that are away, where a retry is due."""
        for host in self._pauses.due(now):
            self.open(host)
