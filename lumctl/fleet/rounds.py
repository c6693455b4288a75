"""Waiting for many hosts at once: one event for all of them, set by the answer that was missing last."""

import random
import threading
import time
from collections.abc import Callable, Collection

_LOOK_S = 0.25


class Round:
    """Counts the hosts that still owe something."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owing = 0
        self._settled = threading.Event()
        self._settled.set()

    def opened(self) -> None:
        """One host more is waited for."""
        with self._lock:
            if self._owing == 0:
                self._settled.clear()
            self._owing += 1

    def closed(self) -> None:
        """One host less."""
        with self._lock:
            self._owing -= 1
            if self._owing == 0:
                self._settled.set()

    def wait(self, until: float, expire: Callable[[float], float]) -> None:
        """Wait until nothing is owed, or until a moment of the monotonic clock.

        ``expire`` is given the time, lets those go whose own deadlines are over, and tells when it wants to be called
        next, at the latest. It is not called while all is well: most rounds end long before anybody's deadline.
        """
        next_look = time.monotonic() + _LOOK_S
        while not self._settled.wait(max(0.0, min(next_look, until) - time.monotonic())):
            now = time.monotonic()
            if now >= until:
                return
            # What is begun meanwhile has a deadline that nobody told us.
            next_look = min(expire(now), now + _LOOK_S)


class Owed:
    """What one host owes to one round: for each probe, an answer to this request or to a later one."""

    def __init__(self, round_: Round, probes: Collection[int]) -> None:
        self._round = round_
        self._probes = set(probes)
        self._least: dict[int, int] = {}
        self.began = time.monotonic()
        if self._probes:
            round_.opened()

    def __bool__(self) -> bool:
        """Whether anything is owed."""
        return bool(self._probes)

    @property
    def probes(self) -> frozenset[int]:
        """The probes that are still owed."""
        return frozenset(self._probes)

    def require(self, probe: int, request: int) -> None:
        """Which request is the first whose answer counts."""
        self._least[probe] = request

    def answered(self, probe: int, request: int) -> None:
        """An answer came."""
        if probe in self._probes and request >= self._least.get(probe, request + 1):
            self.forgive(probe)

    def forgive(self, probe: int) -> None:
        """It will not come in time."""
        if probe in self._probes:
            self._probes.remove(probe)
            if not self._probes:
                self._round.closed()

    def forgive_all(self) -> None:
        """Nothing more is waited for."""
        for probe in list(self._probes):
            self.forgive(probe)


_LONGEST_S = 60.0


class Backoff:
    """Tries come at growing distances, from a second to a minute, until one works.

    ``until`` is the moment of the monotonic clock before which nobody tries unless told to. ``failures`` counts the
    failed tries in a row, ``shown`` those of them since somebody last asked deliberately.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.shown = 0
        self.until = 0.0

    def failed(self, now: float) -> None:
        """One more try was in vain."""
        self.failures += 1
        self.shown += 1
        longest = min(_LONGEST_S, 2.0 ** min(self.failures - 1, 10))
        # Not cryptography: hosts that were lost together must not all come back in the same moment.
        self.until = now + longest * random.uniform(0.5, 1.0)  # noqa: S311

    def worked(self) -> None:
        """The host is there."""
        self.failures = self.shown = 0

    def asked_for(self) -> None:
        """Somebody wants to know now: what failed before is not their answer."""
        self.shown = 0
