"""The lines to the agents of hosts: which hosts have told what runs there, which are not heard, when to try again."""

from collections.abc import Callable, Iterable

from lumctl.training.coordinator.retries import Retries

AT_ONCE = 2
"""How often a line that is lost is opened again at once, before its host counts as away."""
FIRST_S, LONGEST_S = 0.5, 10.0
"""The pauses after which the line to a host that is away is tried again."""


class HostLines:
    """How the line to each host stands; ``opens`` has one opened, which is told later."""

    def __init__(self, opens: Callable[[str], None]) -> None:
        self._opens = opens
        self._asked: set[str] = set()
        self._known: set[str] = set()
        self._lost: dict[str, int] = {}
        self._away: dict[str, str] = {}
        self._pauses = Retries(FIRST_S, LONGEST_S)

    def open(self, host: str) -> None:
        """Have a line opened."""
        self._asked.add(host)
        self._opens(host)

    def want(self, host: str) -> bool:
        """Whether its agent can be asked for something; a line that nobody has wanted before is opened."""
        if self.is_up(host):
            return True
        if host not in self._asked and host not in self._lost:
            self.open(host)
        return False

    def told(self, host: str) -> None:
        """Its agent has told what runs there."""
        self._known.add(host)
        self._lost.pop(host, None)
        self._away.pop(host, None)
        self._pauses.over(host)

    def lost(self, host: str, why: str, now: float) -> bool:
        """A line was lost, or could not be opened; whether its host counts as away since now."""
        times = self._lost[host] = self._lost.get(host, 0) + 1
        if times <= AT_ONCE:
            self.open(host)
            return False
        self._known.add(host)
        self._away[host] = why
        self._pauses.failed(host, now)
        return times == AT_ONCE + 1

    def is_up(self, host: str) -> bool:
        """Whether it is known what runs on a host, and its agent listens."""
        return host in self._known and host not in self._lost

    def known(self, hosts: Iterable[str]) -> bool:
        """Whether it is known of each what runs there, or that it is away."""
        return self._known.issuperset(hosts)

    def away(self, hosts: Iterable[str]) -> str:
        """Which of these are away, and why; empty if none is."""
        return "; ".join(f"host {host} is not heard: {self._away[host]}" for host in hosts if host in self._away)

    @property
    def next_at(self) -> float:
        """When a host that is away is tried again."""
        return self._pauses.next_at

    def try_again(self, now: float) -> None:
        """Open the lines to hosts that are away whose pause is over."""
        for host in self._pauses.due(now):
            self.open(host)
