"""How a fleet waits: for the answers of many hosts at once, for a turn to connect, and before it tries a host again."""

import random
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

_LOOK_S = 0.25


class Round:
    """Counts the hosts that still owe something: one event is set when the last missing answer arrives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owing = 0
        self._settled = threading.Event()
        self._settled.set()

    def opened(self) -> None:
        """Wait for one more host."""
        with self._lock:
            if self._owing == 0:
                self._settled.clear()
            self._owing += 1

    def closed(self) -> None:
        """Wait for one host less."""
        with self._lock:
            self._owing -= 1
            if self._owing == 0:
                self._settled.set()

    def wait(self, until: float, expire: Callable[[float], float]) -> None:
        """Wait until nothing is owed, or until a moment of the monotonic clock.

        ``expire`` is called with the time. It abandons hosts whose own deadlines have passed, and returns when it must
        be called next at the latest. It is not called in a fast round: most rounds end long before any deadline.
        """
        next_look = time.monotonic() + _LOOK_S
        while not self._settled.wait(max(0.0, min(next_look, until) - time.monotonic())):
            now = time.monotonic()
            if now >= until:
                return
            # A request that starts meanwhile has a deadline that is not known here.
            next_look = min(expire(now), now + _LOOK_S)


class Owed:
    """The missing answers of one host in one round: for each probe, an answer to this request or to a later one."""

    def __init__(self, round_: Round, probes: Collection[int]) -> None:
        self._round = round_
        self._probes = set(probes)
        self._least: dict[int, int] = {}
        if self._probes:
            round_.opened()

    def __bool__(self) -> bool:
        """Whether an answer is missing."""
        return bool(self._probes)

    @property
    def probes(self) -> frozenset[int]:
        """The probes whose answers are still missing."""
        return frozenset(self._probes)

    def require(self, probe: int, request: int) -> None:
        """Set the first request whose answer counts for a probe."""
        self._least[probe] = request

    def answered(self, probe: int, request: int) -> None:
        """Note an answer."""
        # Until a request is required, no answer counts: it would be of a request from before the round.
        if probe in self._probes and request >= self._least.get(probe, request + 1):
            self.forgive(probe)

    def forgive(self, probe: int) -> None:
        """Stop waiting for a probe: its answer came, or will not come in time."""
        if probe in self._probes:
            self._probes.remove(probe)
            if not self._probes:
                self._round.closed()

    def forgive_all(self) -> None:
        """Stop waiting for all probes."""
        for probe in list(self._probes):
            self.forgive(probe)


class Gate:
    """Lets ``most`` connection attempts run at a time, so that neither lumctl nor a jump host is flooded.

    An attempt normally takes some tens of milliseconds. One that has run for ``patience_s`` waits for a host that hangs
    and no longer counts: it costs resources, so it must not delay the others.
    """

    def __init__(self, most: int = 16, patience_s: float = 1.0) -> None:
        self._most = most
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._inside: dict[int, float] = {}
        self._visits = 0

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Wait for a free place, and hold it for the duration of the block."""
        with self._changed:
            while (wait_s := self._until_free()) > 0:
                self._changed.wait(wait_s)
            self._visits += 1
            visit = self._visits
            self._inside[visit] = time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                del self._inside[visit]
                self._changed.notify()

    def _until_free(self) -> float:
        """Seconds until a place becomes free if none is released before; 0 if one is free."""
        now = time.monotonic()
        fresh = sorted(since for since in self._inside.values() if now - since < self._patience_s)
        if len(fresh) < self._most:
            return 0.0
        # When this visit no longer counts, one less than `most` do. Never 0, which means that a place is free.
        return max(fresh[len(fresh) - self._most] + self._patience_s - now, 0.001)


_LONGEST_S = 60.0


class Backoff:
    """Retries at growing intervals, from a second to a minute, until one succeeds.

    ``until`` is the moment of the monotonic clock before which only a deliberate request tries again. ``failures``
    counts the failed tries in a row; ``shown`` counts only the ones since the last deliberate request.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.shown = 0
        self.until = 0.0

    def failed(self, now: float) -> None:
        """Note a failed try."""
        self.failures += 1
        self.shown += 1
        # The exponent is bounded too: after a day of failures the power would overflow.
        longest = min(_LONGEST_S, 2.0 ** min(self.failures - 1, 10))
        # Random, so that hosts that were lost together are not all retried at the same moment. Not cryptography.
        self.until = now + longest * random.uniform(0.5, 1.0)  # noqa: S311

    def worked(self) -> None:
        """Note a successful try."""
        self.failures = self.shown = 0

    def asked_for(self) -> None:
        """Note a deliberate request: failures from before it are no longer shown."""
        self.shown = 0
