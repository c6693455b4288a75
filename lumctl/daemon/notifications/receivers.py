"""Receivers of messages. Each has its own outbox and thread, so that it delays neither others nor the daemon's loop."""

import random
import shlex
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from lumctl.daemon.notifications.http_receivers import DeliveryError, post, webhook_in
from lumctl.daemon.notifications.message import ESCALATES, Message, Notification, autopilot_message, case_message
from lumctl.daemon.process import ErrorLog
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.inventory.policies import NotificationReceiver
from lumctl.programs import NotStartedError, run_program

MOST_WAITING = 256
GIVE_UP_AFTER_S = 3600.0
"""The age at which a message is dropped. The ledger notifies again of cases that are still open."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_END_WITHIN_S = 2.0


class DeliveryOutcome(StrEnum):
    """The outcome of a delivery."""

    SENT = "sent"
    FAILED = "failed"
    """The message became too old, or the receiver refused it."""
    DROPPED = "dropped"
    """Too many messages waited."""


class Outbox:
    """Delivers messages in order. It retries, with growing random pauses, until a message is too old."""

    def __init__(  # noqa: PLR0913 - tests pass clock and randomness
        self,
        deliver: Callable[[Message], None],
        ended: Callable[[Message, DeliveryOutcome], None],
        errors: ErrorLog,
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
        self._errors = errors
        self._place = place
        self._most = most
        self._give_up_after_s = give_up_after_s
        self._first_pause_s = first_pause_s
        self._monotonic = monotonic
        self._chance = chance
        self._waiting: deque[tuple[Message, float]] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._counts: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, name="lumctl-outbox", daemon=True)
        self._thread.start()

    def put(self, notification: Message) -> None:
        """Queue a message; when too many wait, the oldest is dropped."""
        dropped: Message | None = None
        with self._changed:
            if len(self._waiting) >= self._most:
                dropped, _ = self._waiting.popleft()
                self._counts[DeliveryOutcome.DROPPED] += 1
            self._waiting.append((notification, self._monotonic()))
            self._changed.notify()
        # Outside the lock: the callback takes locks of its own.
        if dropped is not None:
            self._ended_with(dropped, DeliveryOutcome.DROPPED)

    @property
    def waiting(self) -> int:
        """The number of messages not yet delivered."""
        return len(self._waiting)

    def counts(self) -> dict[str, int]:
        """Counts of messages ``sent``, ``failed`` (too old) and ``dropped`` (no room), and of attempts ``retried``."""
        with self._changed:
            return {outcome: self._counts[outcome] for outcome in ("retried", *DeliveryOutcome)}

    def close(self) -> None:
        """Send nothing more. Undelivered messages are not recorded as known, so the next daemon sends them."""
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

    def _head(self) -> tuple[Message, float] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._waiting)
            # The message stays in the queue until it is finished, so that the order holds and it counts as waiting.
            return None if self._ended else self._waiting[0]

    def _attempt(self, notification: Message, taken_at: float, failures: int) -> float | None:
        """Try once; return the seconds until the next attempt, or ``None`` if this message is finished."""
        try:
            self._deliver(notification)
        except Exception as error:  # noqa: BLE001 - a bug in one delivery must not end all of them
            self._errors.record(self._place, error)
            again = isinstance(error, DeliveryError) and error.again
            if again and self._monotonic() - taken_at < self._give_up_after_s:
                self._count("retried")
                return self._pause_s(failures, error.wait_s if isinstance(error, DeliveryError) else 0.0)
            self._done(notification, DeliveryOutcome.FAILED)
            return None
        self._errors.resolve(self._place)
        self._done(notification, DeliveryOutcome.SENT)
        return None

    def _pause_s(self, failures: int, asked_s: float) -> float:
        # A larger exponent would overflow: 2.0 ** 1024 raises an error.
        grown = min(self._first_pause_s * 2.0 ** min(failures, 16), _LONGEST_PAUSE_S)
        # Random, so that several daemons do not all try again at once.
        return max(grown * (0.5 + self._chance() / 2), asked_s)

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended, seconds)

    def _count(self, outcome: str) -> None:
        with self._changed:
            self._counts[outcome] += 1

    def _done(self, notification: Message, outcome: DeliveryOutcome) -> None:
        with self._changed:
            self._counts[outcome] += 1
            # The message may have been dropped during the attempt.
            if self._waiting and self._waiting[0][0] is notification:
                self._waiting.popleft()
        self._ended_with(notification, outcome)


Deliver = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class NamedReceiver:
    """A receiver that policies refer to: its function for one attempt, and how many seconds a message is retried."""

    deliver: Deliver
    give_up_after_s: float


class Receivers:
    """Sends each message to every receiver. Once all have finished a case, it reports whether any accepted it."""

    def __init__(
        self,
        receivers: Mapping[str, Deliver],
        told: Callable[[Notification, bool], None],
        errors: ErrorLog,
        *,
        target: str = "rack",
        now: Callable[[], float] = time.time,
        named: Callable[[str], NamedReceiver | None] = lambda _name: None,
    ) -> None:
        """``receivers`` are by the name for error reports; ``named`` finds receivers that policies refer to."""
        self._told = told
        self._errors = errors
        self._named = named
        self._escalating: dict[str, Outbox] = {}
        self._target = target
        self._now = now
        self._lock = threading.Lock()
        self._open: dict[int, tuple[int, bool]] = {}
        """For each message, how many receivers have not finished it, and whether any accepted it."""
        self._outboxes = [Outbox(deliver, self._ended, errors, place=name) for name, deliver in receivers.items()]

    def put(self, notification: Notification) -> None:
        """Send a notification."""
        self._send(case_message(notification))

    def tell(self, occasion: str, text: str, data: Mapping[str, Any]) -> None:
        """Send a message of the autopilot. An escalation also goes to the receiver in the policy."""
        message = autopilot_message(occasion, text, data, target=self._target, at=self._now())
        self._send(message)
        hook = data.get("hook")
        if hook is not None and occasion in ESCALATES:
            outbox = self._escalation(str(hook))
            if outbox is not None:
                outbox.put(message)

    @property
    def usual(self) -> bool:
        """Whether there are receivers other than those that policies refer to."""
        return bool(self._outboxes)

    def _escalation(self, name: str) -> Outbox | None:
        with self._lock:
            known = self._escalating.get(name)
        if known is not None:
            return known
        place = f"receiver {name}"
        found = self._named(name)
        if found is None:
            self._errors.record(
                place, UsageError("a policy refers to it, but the inventory has no receiver of that name")
            )
            return None
        with self._lock:
            if name not in self._escalating:  # another thread may have made the outbox meanwhile
                self._escalating[name] = Outbox(
                    found.deliver, lambda *_: None, self._errors, place=place, give_up_after_s=found.give_up_after_s
                )
            return self._escalating[name]

    @property
    def waiting(self) -> int:
        """The number of outstanding deliveries."""
        return sum(outbox.waiting for outbox in self._all())

    def counts(self) -> dict[str, int]:
        """The sum of :meth:`Outbox.counts` over all receivers."""
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

    def _send(self, message: Message) -> None:
        if not self._outboxes:
            return
        with self._lock:
            # Before the first put: a receiver may be done before the next line.
            self._open[id(message)] = (len(self._outboxes), False)
        for outbox in self._outboxes:
            outbox.put(message)

    def _ended(self, message: Message, outcome: DeliveryOutcome) -> None:
        with self._lock:
            left, taken = self._open[id(message)]
            left, taken = left - 1, taken or outcome is DeliveryOutcome.SENT
            if left:
                self._open[id(message)] = (left, taken)
                return
            del self._open[id(message)]
        if message.about is not None:
            self._told(message.about, taken)


TIMEOUT_S = 30.0
REFUSES = 65
"""The exit code of a program that refuses a message permanently (EX_DATAERR)."""
_VARIABLES = ("occasion", "text", "rack", "target", "component", "state_after", "incident")


def parse_command(text: str) -> tuple[str, ...]:
    """The program and its arguments, split as by a shell; no other shell syntax applies.

    Raises:
        UsageError: the text is invalid or the program does not exist.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"the command {text!r} cannot be parsed: {error}") from None
    if not words:
        raise UsageError("the command of notifications is empty")
    require_program(words[0])
    return words


def require_program(path: str) -> None:
    """Require a program at an absolute path.

    Raises:
        UsageError: there is no such file, or the path is relative.
    """
    program = Path(path)
    if not program.is_absolute():
        raise UsageError(
            f"{path!r} is not an absolute path", hint="such as /etc/lumctl/notify: a daemon does not have your PATH"
        )
    if not program.is_file():
        raise UsageError(f"program {program} does not exist")


def run(command: tuple[str, ...], message: Message, *, timeout_s: float = TIMEOUT_S) -> None:
    """Run a program with the document on its standard input, without a shell.

    Raises:
        DeliveryError: the program's exit code was not 0, or it took too long.
    """
    variables = {f"LUMCTL_{key.upper()}": str(message.document[key]) for key in _VARIABLES if message.document.get(key)}
    name = Path(command[0]).name
    try:
        ended = run_program(command, timeout_s=timeout_s, given=message.body, variables=variables)
    except NotStartedError as error:
        raise DeliveryError(error.message, again=True) from None
    if ended.late:
        raise DeliveryError(f"{name} was still running after {timeout_s:g} s and was ended", again=True)
    if ended.code:
        said = f": {ended.last_line}" if ended.last_line else ""
        raise DeliveryError(f"{name} ended with {ended.code}{said}", again=ended.code != REFUSES)


def receiver_lookup(current: Callable[[], Inventory]) -> Callable[[str], NamedReceiver | None]:
    """A function that finds a receiver by name in the current inventory, or returns ``None``."""

    def find(name: str) -> NamedReceiver | None:
        found = current().receivers.get(name)
        if found is None:
            return None

        def deliver(message: Message) -> None:
            # The inventory may have been read again since then.
            deliver_to(current().receivers.get(name, found), message)

        return NamedReceiver(deliver, found.give_up_after_s)

    return find


def deliver_to(receiver: NotificationReceiver, message: Message) -> None:
    """Deliver one message to a receiver of the inventory.

    Raises:
        DeliveryError: the message was not accepted, or the file with the address cannot be read now.
    """
    if receiver.command:
        run(receiver.command, message, timeout_s=receiver.timeout_s)
        return
    try:
        webhook = webhook_in(receiver.webhook_file, receiver.token_file)
    except UsageError as error:
        raise DeliveryError(error.message, again=True) from None
    post(webhook, message.body, timeout_s=receiver.timeout_s)


def require_reachable(inventory: Inventory) -> None:
    """Refuse receivers that cannot be used, so that an escalation does not fail later.

    Raises:
        UsageError: a file cannot be read or has no URL, or a program does not exist.
    """
    for receiver in inventory.receivers.values():
        try:
            if receiver.command:
                require_program(receiver.command[0])
            else:
                webhook_in(receiver.webhook_file, receiver.token_file)
        except UsageError as error:
            raise UsageError(f"receiver {receiver.name}: {error.message}", hint=error.hint) from None
