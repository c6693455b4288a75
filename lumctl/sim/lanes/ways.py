"""The path from one accelerator to another over lit hops; accelerators in between forward, as hosts in a ring do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True, slots=True)
class Hop:
    """Light from a transmitter of one accelerator (``source``) that a receiver of another (``sink``) hears.

    ``transmitter`` and ``receiver`` are transponders.
    """

    transmitter: str
    receiver: str
    source: str
    sink: str

    @property
    def lane(self) -> str:
        """Its name: transmitter and receiver."""
        return f"{self.transmitter}>{self.receiver}"


class Ways:
    """All lit hops at one time."""

    def __init__(self, hops: Iterable[Hop]) -> None:
        self._from: dict[str, list[Hop]] = {}
        for hop in hops:
            self._from.setdefault(hop.source, []).append(hop)

    def shortest(self, source: str, sink: str, load: Mapping[str, int]) -> tuple[str, ...] | None:
        """The lanes of the path with the fewest hops; among equals, of the path with the fewest connections.

        ``load`` is how many connections each lane already carries. ``None`` if there is no lit path.
        """
        ahead: list[tuple[int, int, str, tuple[str, ...]]] = [(0, 0, source, ())]
        passed: set[str] = set()
        while ahead:
            # Ordered by hops, then load; the names after them make the choice the same each time.
            hops, carried, here, way = heappop(ahead)
            if here == sink:
                return way
            if here in passed:
                continue
            passed.add(here)
            for hop in self._from.get(here, ()):
                if hop.sink not in passed:
                    burden = carried + load.get(hop.lane, 0)
                    heappush(ahead, (hops + 1, burden, hop.sink, (*way, hop.lane)))
        return None
