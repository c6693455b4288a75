"""All receivers of notifications: each has an outbox of its own, so that one who does not answer delays no other."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lumctl.daemon.autopilot.telling import ESCALATES
from lumctl.daemon.letter import Letter, of_autopilot, of_case
from lumctl.daemon.notification import Notification
from lumctl.daemon.outbox import Outbox, Outcome
from lumctl.daemon.troubles import Troubles
from lumctl.errors import UsageError

Deliver = Callable[[Letter], None]


@dataclass(frozen=True, slots=True)
class Named:
    """A receiver that policies name: how one attempt is made, and for how long (seconds) a letter is tried."""

    deliver: Deliver
    give_up_after_s: float


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
        named: Callable[[str], Named | None] = lambda _name: None,
    ) -> None:
        """``receivers`` by the name under which their troubles are told; ``named`` finds those that policies name."""
        self._told = told
        self._troubles = troubles
        self._named = named
        self._escalating: dict[str, Outbox] = {}
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
        """Tell of what the autopilot did, or wants a person to do; of what escalates, whom the policy names as well."""
        letter = of_autopilot(occasion, text, data, target=self._target, at=self._now())
        self._send(letter)
        hook = data.get("hook")
        if hook is not None and occasion in ESCALATES:
            outbox = self._escalation(str(hook))
            if outbox is not None:
                outbox.put(letter)

    @property
    def usual(self) -> bool:
        """Whether there are receivers beside those that policies name."""
        return bool(self._outboxes)

    def _escalation(self, name: str) -> Outbox | None:
        with self._lock:
            known = self._escalating.get(name)
        if known is not None:
            return known
        place = f"receiver {name}"
        found = self._named(name)
        if found is None:
            self._troubles.arose(place, UsageError("a policy names it, and the inventory has none of that name"))
            return None
        with self._lock:
            if name not in self._escalating:  # another thread may have made it meanwhile: each one made is closed
                self._escalating[name] = Outbox(
                    found.deliver, lambda *_: None, self._troubles, place=place, give_up_after_s=found.give_up_after_s
                )
            return self._escalating[name]

    @property
    def waiting(self) -> int:
        """How many deliveries are still to be made."""
        return sum(outbox.waiting for outbox in self._all())

    def counts(self) -> dict[str, int]:
        """As of :meth:`Outbox.counts`, over all receivers."""
        total: Counter[str] = Counter()
        for outbox in self._all():
            total.update(outbox.counts())
        return dict(total)

    def close(self) -> None:
        """Send nothing more."""
        for outbox in self._all():
            outbox.close()

    def _all(self) -> list[Outbox]:
        with self._lock:
            return [*self._outboxes, *self._escalating.values()]

    def _send(self, letter: Letter) -> None:
        if not self._outboxes:
            return
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
