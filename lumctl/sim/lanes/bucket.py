"""How much a lane carries in a time: a token bucket, kept as the time at which its lane is free again."""

import math


class Bucket:
    """A rate is in bytes per second, ``inf`` for no limit; times are in seconds of any steady clock.

    Whoever finds the lane free may take a whole piece, and then it is busy for as long as the piece takes: pieces of
    any size pass, and over time the rate is exact.
    """

    _DEPTH_S = 0.005
    """What a lane that rested may carry at once, as the time in which it would have carried that."""
    _PIECE_S = 0.004
    _PIECES = (16 * 1024, 512 * 1024)

    def __init__(self, rate: float) -> None:
        self.rate = rate
        least, most = self._PIECES
        self.piece = int(min(max(rate * self._PIECE_S, least), most))
        """The most bytes that are taken at once, so that those who share a lane take turns."""
        self._free_at = -math.inf
        self._wanted_until = -math.inf

    def ready_at(self, now: float) -> float:
        """When a piece may be taken: ``now``, or later."""
        return max(now, self._free_at)

    def take(self, count: int, now: float, *, due: float | None = None) -> None:
        """Carry bytes now. ``due``: whoever takes them waited, was let go on only now, and could have at that time.

        So the rate does not suffer from a timer that is late, while a lane that rested because nobody wanted anything
        of it does not catch up.
        """
        start = max(self._free_at, now - self._DEPTH_S)
        if due is not None:
            start = max(self._free_at, min(due, start))
            self._wanted_until = max(self._wanted_until, now)
        elif self._free_at < self._wanted_until:
            start = self._free_at
        self._free_at = start + count / self.rate
