"""All receivers of notifications: each has an outbox of its own, so that one who does not answer delays no other."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from lumctl.watch.letter import Letter, of_autopilot, of_case
from lumctl.watch.notification import Notification
from lumctl.watch.outbox import Outbox, Outcome
from lumctl.watch.troubles import Troubles

Deliver = Callable[[Letter], None]


class Receivers:
    """Hands each letter to every receiver, and tells once all are done with a case whether any has taken it."""

    def __init__(
        self,
        receivers: Mapping[str, Deliver],
        told: Callable[[Notification, bool], None],
        troubles: Troubles,
        *,
        target: str = "rack",
        now: Callable[[], float] = time.time,
    ) -> None:
        """``receivers`` by the name under which their troubles are told."""
        self._told = told
        self._target = target
        self._now = now
        self._lock = threading.Lock()
        self._open: dict[int, tuple[int, bool]] = {}
        """By letter: how many receivers are not done with it, and whether any has taken it."""
        self._outboxes = [Outbox(deliver, self._ended, troubles, place=name) for name, deliver in receivers.items()]

    def put(self, notification: Notification) -> None:
        """Tell of a case."""
        self._send(of_case(notification))

    def tell(self, occasion: str, text: str, data: Mapping[str, Any]) -> None:
        """Tell of what the autopilot did, or wants a person to do."""
        self._send(of_autopilot(occasion, text, data, target=self._target, at=self._now()))

    @property
    def waiting(self) -> int:
        """How many deliveries are still to be made."""
        return sum(outbox.waiting for outbox in self._outboxes)

    def counts(self) -> dict[str, int]:
        """As of :meth:`Outbox.counts`, over all receivers."""
        total: Counter[str] = Counter()
        for outbox in self._outboxes:
            total.update(outbox.counts())
        return dict(total)

    def close(self) -> None:
        """Send nothing more."""
        for outbox in self._outboxes:
            outbox.close()

    def _send(self, letter: Letter) -> None:
        with self._lock:
            self._open[id(letter)] = (len(self._outboxes), False)
        for outbox in self._outboxes:
            outbox.put(letter)

    def _ended(self, letter: Letter, outcome: Outcome) -> None:
        with self._lock:
            left, taken = self._open[id(letter)]
            left, taken = left - 1, taken or outcome is Outcome.SENT
            if left:
                self._open[id(letter)] = (left, taken)
                return
            del self._open[id(letter)]
        if letter.about is not None:
            self._told(letter.about, taken)
