"""What a rank has received over the light of phases: it shows the coordinator that the light is right.

A message that arrives in the light of a phase, and was sent in it, has passed the circuit between both ranks.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

MOST_ROWS = 64
"""The most rows in the report on a step."""
_UNKNOWN = -1


class TransferPart(NamedTuple):
    """What a transfer does with a peer, given by its rank; ``None``: it shows nothing of a single circuit.

    ``exchanges``: a collective of two ranks that ends only when the peer's part has arrived.
    """

    peer: int | None
    sends: int = 0
    receives: int = 0
    exchanges: int = 0


NO_PEER = TransferPart(None)


class Traffic(NamedTuple):
    """What a rank did with a peer in the light of one request, in one training step.

    ``sent_before`` and ``received_before`` count the messages of this generation to and from that peer in this phase
    before; ``received`` those that came now. ``exchanged`` counts collectives that end only when the peer's part has
    arrived. Without a ``peer``: transfers that show nothing of single circuits.
    """

    number: int
    peer: int | None
    sent_before: int = 0
    received_before: int = 0
    received: int = 0
    exchanged: int = 0

    @classmethod
    def of(cls, row: Sequence[Any]) -> "Traffic":
        """A row that a rank reports. Raises ``TypeError`` or ``ValueError`` if it is malformed."""
        number, peer, *counts = row
        sent_before, received_before, received, exchanged = map(int, counts)
        return cls(int(number), None if peer is None else int(peer), sent_before, received_before, received, exchanged)

    def heard(self, peers: "Traffic | None") -> bool:
        """Whether this rank received something that its peer, by its own row, sent in the same light.

        A message that was sent earlier may have waited here: it shows nothing of the light that is used now.
        """
        if peers is None:
            return False
        return self.exchanged > 0 or (self.received > 0 and peers.sent_before == self.received_before)


class TrafficCount:
    """Counts the transfers of a rank, and makes the rows of a step. Not thread-safe."""

    def __init__(self) -> None:
        self._now: dict[int | None, list[int]] = {}
        """By peer, the messages sent and received, and the exchanges, in the light that is held."""
        self._before: dict[tuple[str, int | None], tuple[int, int]] = {}
        self._rows: list[Traffic] = []

    def count(self, part: TransferPart) -> None:
        """Count a transfer that was started."""
        if (found := self._now.get(part.peer)) is None:
            found = self._now[part.peer] = [0, 0, 0]
        found[0] += part.sends
        found[1] += part.receives
        found[2] += part.exchanges

    def close(self, phase: str, number: int, *, all_ended: bool = True) -> None:
        """End what was counted in the light of a request; without ``all_ended``, it goes on counting."""
        if not all_ended:
            self._rows.append(Traffic(number, None))
            return
        for peer, (sent, received, exchanged) in self._now.items():
            sent_before, received_before = self._before.get((phase, peer), (0, 0))
            self._rows.append(Traffic(number, peer, sent_before, received_before, received, exchanged))
            self._before[phase, peer] = sent_before + sent, received_before + received
        self._now.clear()

    def take(self) -> list[Traffic]:
        """The rows since the last call. If there are too many, the last stands for what is left out."""
        rows, self._rows = self._rows, []
        return rows if len(rows) <= MOST_ROWS else [*rows[: MOST_ROWS - 1], Traffic(_UNKNOWN, None)]
