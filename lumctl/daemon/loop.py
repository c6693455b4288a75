"""The loop: one look at each beat, and what is done about it. Whatever goes wrong in one beat, the next one comes."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from lumctl.daemon.autopilot.pilot import Pilot
from lumctl.daemon.history import LatestObservation, ReadingHistory, TransitionQueue
from lumctl.daemon.metrics.exporter import SelfMetrics
from lumctl.daemon.notifications.ledger import NotificationFile, NotificationLedger
from lumctl.daemon.notifications.receivers import Receivers
from lumctl.daemon.process import ErrorLog, notify_systemd
from lumctl.errors import LumctlError
from lumctl.health.states import HealthReport, State
from lumctl.health.transitions import Transition, transitions
from lumctl.inventory.folded_names import fold
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.site.observation import Observation
from lumctl.site.racks import rack_of

_CAUSES_FIRST = ("host", "device", "accelerator", "link", "circuit")


def transition_lines(changes: Iterable[Transition]) -> Iterator[str]:
    """One line for each change, or for all components of a kind that changed in the same way."""
    alike: dict[tuple[str, str], list[str]] = {}
    for change in sorted(changes, key=lambda change: _CAUSES_FIRST.index(change.kind)):
        alike.setdefault((change.kind, _change_text(change)), []).append(change.component)
    for (kind, what), components in alike.items():
        counted = kind if len(components) == 1 else f"{len(components)} {kind}s"
        yield f"{counted} {', '.join(fold(components))} {what}"


def _change_text(change: Transition) -> str:
    before = change.before.value if change.before else "new"
    rules = f" ({', '.join(change.rules)})" if change.rules else ""
    evidence = f": {' '.join(change.evidence.split())}" if change.evidence else ""
    return f"{before} -> {change.after.value}{evidence}{rules}"


REMEMBER_S = 10.0
"""How long it may be unwritten while nothing new is found: it is large, and disks wear out."""
REFUSED_PAUSE_S = 5.0
"""Before a store that refused is asked again."""


class MemorySchedule:
    """Knows what was found when the memory was last written."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._found: frozenset[tuple[str, ...]] | None = None
        self._by = self._not_before = monotonic()

    def is_due(self, newest: HealthReport | None) -> bool:
        """Whether the next look is to be remembered; ``newest`` is the report of the last one."""
        now = self._monotonic()
        news = newest is not None and _found_in(newest) != self._found
        return now >= self._not_before and (news or now >= self._by)

    def wrote(self, report: HealthReport) -> None:
        """The look of this report was remembered."""
        self._found = _found_in(report)
        self._by = self._monotonic() + REMEMBER_S

    def refused(self) -> None:
        """The store had no room for it."""
        self._not_before = self._monotonic() + REFUSED_PAUSE_S


def _found_in(report: HealthReport) -> frozenset[tuple[str, ...]]:
    """All that is found, but for what changes from look to look without being news."""
    return frozenset((f.component, f.rule, f.case, f.about, f.state) for f in report.findings())


SET_S = 5.0
"""What parts the two from one beat to the next once somebody has set the clock: drift and NTP never do."""


class WatchedClock:
    """Both clocks. ``now`` is in seconds since the epoch; ``monotonic`` only ever goes on."""

    def __init__(self, now: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.monotonic = monotonic
        self._ahead = now() - monotonic()

    def set_by(self) -> float | None:
        """By how many seconds the clock was set since this was last asked; ``None`` if it was not."""
        ahead = self.now() - self.monotonic()
        by, self._ahead = ahead - self._ahead, ahead
        return by if abs(by) >= SET_S else None


class Cadence:
    """The beats ``start, start + interval_s, start + 2 * interval_s, ...`` of a clock that nobody sets."""

    def __init__(self, interval_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._last = monotonic()

    def to_next(self) -> tuple[float, int]:
        """Go on to the next beat that is still to come: seconds until it, and how many were missed before it."""
        behind = self._monotonic() - self._last
        beats = max(math.ceil(behind / self._interval_s), 1)
        self._last += beats * self._interval_s
        return max(self._last - self._monotonic(), 0.0), beats - 1


PAUSE_S = 5.0
"""Before a site of which nothing answers is opened again."""
ALIVE_S = 10.0
"""How often a supervisor hears that we live, however far apart the beats are."""

Known = Mapping[tuple[str, str], State]
"""The states of components by id and kind, as an earlier daemon left them."""


class DaemonOrder(Enum):
    """What may be asked of a daemon."""

    STOP = "stop"
    RELOAD = "reload"


class NotKeptError(LumctlError):
    """What health remembers could not be written down."""


class RackReader(Protocol):
    """What looks at the rack: a :class:`lumctl.site.Site`."""

    def observe(self, *, tick: bool = False, remember: bool = False) -> Observation:
        """Take one look."""

    def close(self) -> None:
        """Look no more."""


@dataclass(frozen=True)
class Sinks:
    """Where a look goes."""

    newest: LatestObservation
    history: TransitionQueue
    notes: NotificationFile
    ledger: NotificationLedger
    outbox: Receivers | None
    vitals: SelfMetrics
    troubles: ErrorLog
    pilot: Pilot | None = None
    readings: ReadingHistory | None = None


class Daemon:
    """Looks at an inventory until it is told to stop. All of it runs in the thread that calls ``run``."""

    def __init__(
        self,
        inventory: Inventory,
        open_eyes: Callable[[Inventory], RackReader],
        sinks: Sinks,
        say: Callable[[str], None],
        *,
        interval_s: float,
        known: Known,
        load: Callable[[Path], Inventory] = load_inventory,
        clock: WatchedClock | None = None,
    ) -> None:
        self.inventory = inventory
        self.orders: SimpleQueue[DaemonOrder] = SimpleQueue()
        """Orders may be put from a signal handler: this queue alone allows that."""
        self._open_eyes = open_eyes
        self._sinks = sinks
        self._say = say
        self._interval_s = interval_s
        self._load = load
        self._clock = clock or WatchedClock()
        self._monotonic = monotonic = self._clock.monotonic
        self._eyes: RackReader | None = None
        self._known = known
        self._before: HealthReport | None = None
        self._remembering = MemorySchedule(monotonic)
        self._reopen_at = monotonic()

    def run(self) -> None:
        """Look at each beat until ``Order.STOP`` comes."""
        notify_systemd("READY=1")
        cadence = Cadence(self._interval_s, self._monotonic)
        try:
            while True:
                with self._sinks.vitals.tick_duration.time():
                    self.beat()
                notify_systemd("WATCHDOG=1")
                wait_s, missed = cadence.to_next()
                self._sinks.vitals.missed(missed)
                if not self._pause(self._monotonic() + wait_s):
                    return
        finally:
            self._close()
            self._keep()

    def beat(self) -> None:
        """One look and what is done about it."""
        # First what a store had no room for: it dates from before this look.
        wrote = self._safely("history", self._sinks.history.flush)
        self._mind_the_clock()
        try:
            look = self._look()
        except Exception as error:  # noqa: BLE001 - the daemon outlives every look
            self._sinks.troubles.arose("look", error)
            if not isinstance(error, LumctlError):  # something is out of joint: begin anew
                self._reopen()
        else:
            self._sinks.troubles.passed("look")
            # Until all have answered once, or are known not to, a look shows what is not read yet, and no change.
            if not look.awaited:
                self._put(look)
            if wrote and look.not_kept is not None:  # it was opened while the disk was full, and goes by that
                self._reopen()
        self._keep()

    def _put(self, look: Observation) -> None:
        """Give a look to everybody who waits for one."""
        self._sinks.newest.put(look)
        self._safely("verdict", lambda: self._hand_on(look))
        if (readings := self._sinks.readings) is not None:
            self._safely("folding", lambda: readings.see(look))

    def _keep(self) -> None:
        """Write down what the next daemon must know."""
        self._safely("history", self._sinks.history.flush)
        self._safely("notes", self._sinks.notes.save)

    def _look(self) -> Observation:
        if self._eyes is None:
            self._eyes = self._open_eyes(self.inventory)
        remember = self._remembering.is_due(self._before)
        look = self._eyes.observe(tick=True, remember=remember)
        if look.not_kept is not None:
            self._sinks.troubles.arose("memory", NotKeptError(look.not_kept))
            self._remembering.refused()
        elif remember and not look.awaited:
            self._sinks.troubles.passed("memory")
            self._remembering.wrote(look.report)
        self._mind_the_simulator(look)
        return look

    def _mind_the_clock(self) -> None:
        """Readings are dated by the clock: once that is set they look old, or yet to come, until all is read anew."""
        set_by = self._clock.set_by()
        if set_by is not None and self._eyes is not None:
            self._say(f"clock: set by {set_by:+.0f} s; everything is read anew")
            self._close()

    def _mind_the_simulator(self, look: Observation) -> None:
        """A simulator that was started again answers at other addresses: open it anew when nothing answers."""
        alive = any(host.reachable for host in look.snapshot.hosts.values())
        if look.target == "sim" and not alive:
            self._reopen()

    def _reopen(self) -> None:
        if self._monotonic() >= self._reopen_at:
            self._reopen_at = self._monotonic() + PAUSE_S
            self._close()

    def _hand_on(self, look: Observation) -> None:
        sinks, report = self._sinks, look.report
        changes = transitions(self._before or _as_known(self._known, report), report)
        self._before = report
        for line in transition_lines(changes):
            self._say(line)
        for change in changes:
            sinks.vitals.changed(change)
            # A store takes a change once: what a look that was remembered has left there already is passed over.
            sinks.history.add(rack_of(look.inventory, change.component, look.circuits) or "", change)
        if sinks.pilot is not None:
            sinks.pilot.see(look)
        if sinks.outbox is not None:
            for notification in sinks.ledger.review(look):
                sinks.outbox.put(notification)

    def _safely(self, place: str, work: Callable[[], bool | None]) -> bool:
        """Whether it was done; work that says ``False`` had nothing to do."""
        try:
            done = work() is not False
        except Exception as error:  # noqa: BLE001 - the daemon outlives all of its work
            self._sinks.troubles.arose(place, error)
            return False
        if done:
            self._sinks.troubles.passed(place)
        return done

    def _pause(self, until: float) -> bool:
        """Wait for the next beat and take orders meanwhile; whether there shall be a next beat."""
        while True:
            left_s = max(until - self._monotonic(), 0.0)
            try:
                order = self.orders.get(timeout=min(left_s, ALIVE_S))
            except Empty:
                if left_s <= ALIVE_S:
                    return True
                notify_systemd("WATCHDOG=1")
                continue
            if order is DaemonOrder.STOP:
                return False
            self._reload()

    def _reload(self) -> None:
        """Read the inventory again; a broken one changes nothing."""
        try:
            fresh = self._load(self.inventory.path)
            if fresh.digest == self.inventory.digest:
                self._say("inventory: read again, unchanged")
                return
            eyes = self._open_eyes(fresh)
        except LumctlError as error:
            self._say(f"inventory: kept as it was, for the new one cannot be used: {error.message}")
            return
        self._close()
        self._eyes, self.inventory = eyes, fresh
        self._say(f"inventory: {fresh.path} read again, and in force")

    def _close(self) -> None:
        if self._eyes is not None:
            self._safely("end", self._eyes.close)
            self._eyes = None


def _as_known(known: Known, report: HealthReport) -> HealthReport:
    """A report of the same components in states that are known from before; the others are not in it."""
    groups: dict[str, Any] = {
        group: {
            name: replace(health, state=known[name, kind])
            for name, health in components.items()
            if (name, kind) in known
        }
        for group, components in report.groups().items()
        for kind in (group.removesuffix("s"),)
    }
    return replace(report, **groups)
