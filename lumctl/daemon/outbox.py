"""Notifications on their way out, in a thread of its own: a slow receiver never delays a look."""

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from enum import StrEnum

from lumctl.daemon.letter import Letter
from lumctl.daemon.troubles import Troubles
from lumctl.daemon.webhook import DeliveryError

MOST_WAITING = 256
GIVE_UP_AFTER_S = 3600.0
"""After that the next one has its turn: the ledger tells anew what is still so."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_END_WITHIN_S = 2.0


class Outcome(StrEnum):
    """What became of a notification."""

    SENT = "sent"
    FAILED = "failed"
    """It was given up, or the receiver does not want it."""
    DROPPED = "dropped"
    """There was no room for it."""


class Outbox:
    """Delivers in order and tries again with growing, random pauses, until a notification is too old."""

    def __init__(  # noqa: PLR0913 - the clock and chance are a test's
        self,
        deliver: Callable[[Letter], None],
        ended: Callable[[Letter, Outcome], None],
        troubles: Troubles,
        *,
        place: str = "notifications",
        most: int = MOST_WAITING,
        give_up_after_s: float = GIVE_UP_AFTER_S,
        first_pause_s: float = _FIRST_PAUSE_S,
        monotonic: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._deliver = deliver
        self._ended_with = ended
        self._troubles = troubles
        self._place = place
        self._most = most
        self._give_up_after_s = give_up_after_s
        self._first_pause_s = first_pause_s
        self._monotonic = monotonic
        self._chance = chance
        self._waiting: deque[tuple[Letter, float]] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._counts: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, name="lumctl-outbox", daemon=True)
        self._thread.start()

    def put(self, notification: Letter) -> None:
        """Take a notification; where too many wait, the oldest is dropped."""
        dropped: Letter | None = None
        with self._changed:
            if len(self._waiting) >= self._most:
                dropped, _ = self._waiting.popleft()
                self._counts[Outcome.DROPPED] += 1
            self._waiting.append((notification, self._monotonic()))
            self._changed.notify()
        if dropped is not None:
            self._ended_with(dropped, Outcome.DROPPED)

    @property
    def waiting(self) -> int:
        """How many are not delivered yet."""
        return len(self._waiting)

    def counts(self) -> dict[str, int]:
        """How many were ``sent``, ``retried`` (each attempt), ``failed`` (given up) and ``dropped`` (no room)."""
        with self._changed:
            return {outcome: self._counts[outcome] for outcome in ("retried", *Outcome)}

    def close(self) -> None:
        """Send nothing more. What was not delivered is not written down as told: the next daemon tells it."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(_END_WITHIN_S)

    def _run(self) -> None:
        failures = 0
        while (head := self._head()) is not None:
            pause_s = self._attempt(*head, failures)
            failures = failures + 1 if pause_s is not None else 0
            if pause_s is not None:
                self._pause(pause_s)

    def _head(self) -> tuple[Letter, float] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._waiting)
            return None if self._ended else self._waiting[0]

    def _attempt(self, notification: Letter, taken_at: float, failures: int) -> float | None:
        """Try once; how long to wait before the next attempt, ``None`` if this notification is done with."""
        try:
            self._deliver(notification)
        except Exception as error:  # noqa: BLE001 - a bug in one delivery must not end all of them
            self._troubles.arose(self._place, error)
            again = isinstance(error, DeliveryError) and error.again
            if again and self._monotonic() - taken_at < self._give_up_after_s:
                self._count("retried")
                return self._pause_s(failures, error.wait_s if isinstance(error, DeliveryError) else 0.0)
            self._done(notification, Outcome.FAILED)
            return None
        self._troubles.passed(self._place)
        self._done(notification, Outcome.SENT)
        return None

    def _pause_s(self, failures: int, asked_s: float) -> float:
        grown = min(self._first_pause_s * 2.0 ** min(failures, 16), _LONGEST_PAUSE_S)
        return max(grown * (0.5 + self._chance() / 2), asked_s)

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended, seconds)

    def _count(self, outcome: str) -> None:
        with self._changed:
            self._counts[outcome] += 1

    def _done(self, notification: Letter, outcome: Outcome) -> None:
        with self._changed:
            self._counts[outcome] += 1
            # It may have been dropped for want of room while it was tried.
            if self._waiting and self._waiting[0][0] is notification:
                self._waiting.popleft()
        self._ended_with(notification, outcome)
