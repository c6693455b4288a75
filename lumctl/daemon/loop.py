"""The daemon's loop: observe the rack at each beat of its clock and pass the observation on. Errors never stop it."""

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
from lumctl.daemon.spare_watcher import SpareWatcher
from lumctl.errors import LumctlError
from lumctl.health.observation import Observation, rack_of
from lumctl.health.states import HealthReport, State
from lumctl.health.transitions import Transition, transitions
from lumctl.inventory.folded_names import fold
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory

_CAUSES_FIRST = ("host", "device", "accelerator", "link", "circuit")


def transition_lines(changes: Iterable[Transition]) -> Iterator[str]:
    """One line for each change; components of one kind that changed in the same way share a line."""
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
"""The time between two writes while findings do not change: the memory is large, and disks wear out."""
REFUSED_PAUSE_S = 5.0
"""The pause before a store that refused is tried again."""


class MemorySchedule:
    """Decides when health's memory is written: at once when findings change, otherwise rarely."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._found: frozenset[tuple[str, ...]] | None = None
        self._by = self._not_before = monotonic()

    def is_due(self, newest: HealthReport | None) -> bool:
        """Whether to write the memory at the next observation; ``newest`` is the last report."""
        now = self._monotonic()
        news = newest is not None and _found_in(newest) != self._found
        return now >= self._not_before and (news or now >= self._by)

    def wrote(self, report: HealthReport) -> None:
        """Note that the memory was written with this report."""
        self._found = _found_in(report)
        self._by = self._monotonic() + REMEMBER_S

    def refused(self) -> None:
        """Note that the store refused the memory."""
        self._not_before = self._monotonic() + REFUSED_PAUSE_S


def _found_in(report: HealthReport) -> frozenset[tuple[str, ...]]:
    """The identity of each finding, without evidence, which may change with each observation."""
    return frozenset((f.component, f.rule, f.case, f.about, f.state) for f in report.findings())


SET_S = 5.0
"""The smallest jump of the wall clock, in seconds, that counts as setting it; drift and NTP stay far below."""


class WatchedClock:
    """The wall clock ``now`` (seconds since the epoch) and the ``monotonic`` clock."""

    def __init__(self, now: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.monotonic = monotonic
        self._ahead = now() - monotonic()

    def set_by(self) -> float | None:
        """The seconds by which the wall clock was set since the last call; ``None`` if it was not set."""
        ahead = self.now() - self.monotonic()
        by, self._ahead = ahead - self._ahead, ahead
        return by if abs(by) >= SET_S else None


class Cadence:
    """The daemon's clock: beats at ``start + n * interval_s`` (monotonic); missed beats are counted and skipped."""

    def __init__(self, interval_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._last = monotonic()

    def to_next(self) -> tuple[float, int]:
        """Continue to the next beat; return the seconds until then, and the number of missed beats."""
        behind = self._monotonic() - self._last
        beats = max(math.ceil(behind / self._interval_s), 1)
        self._last += beats * self._interval_s
        return max(self._last - self._monotonic(), 0.0), beats - 1


PAUSE_S = 5.0
"""The pause before a rack that does not answer is opened again."""
ALIVE_S = 10.0
"""How often systemd is notified, for any interval."""

Known = Mapping[tuple[str, str], State]
"""The states of components by id and kind, as an earlier daemon recorded them."""


class DaemonOrder(Enum):
    """An order that a signal gives to a daemon."""

    STOP = "stop"
    RELOAD = "reload"


class NotKeptError(LumctlError):
    """Health's memory could not be written."""


class RackReader(Protocol):
    """Reads the rack: a :class:`lumctl.context.Context`."""

    def observe(self, *, tick: bool = False, remember: bool = False) -> Observation:
        """Read the rack once."""

    def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True)
class Sinks:
    """The consumers of an observation."""

    newest: LatestObservation
    history: TransitionQueue
    notes: NotificationFile
    ledger: NotificationLedger
    outbox: Receivers | None
    self_metrics: SelfMetrics
    errors: ErrorLog
    pilot: Pilot | None = None
    readings: ReadingHistory | None = None
    spares: SpareWatcher | None = None


class Daemon:
    """Observes a rack until it is ordered to stop. Everything runs in the thread that calls ``run``."""

    def __init__(
        self,
        inventory: Inventory,
        open_rack: Callable[[Inventory], RackReader],
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
        """Orders from signal handlers, in which only a ``SimpleQueue`` may be used."""
        self._open_rack = open_rack
        self._sinks = sinks
        self._say = say
        self._interval_s = interval_s
        self._load = load
        self._clock = clock or WatchedClock()
        self._monotonic = monotonic = self._clock.monotonic
        self._rack: RackReader | None = None
        self._known = known
        self._before: HealthReport | None = None
        self._remembering = MemorySchedule(monotonic)
        self._reopen_at = monotonic()

    def run(self) -> None:
        """Observe at each beat until ``DaemonOrder.STOP`` arrives."""
        notify_systemd("READY=1")
        cadence = Cadence(self._interval_s, self._monotonic)
        try:
            while True:
                with self._sinks.self_metrics.tick_duration.time():
                    self.beat()
                # After the beat: systemd then restarts a daemon that hangs in one.
                notify_systemd("WATCHDOG=1")
                wait_s, missed = cadence.to_next()
                self._sinks.self_metrics.missed(missed)
                if not self._pause(self._monotonic() + wait_s):
                    return
        finally:
            # Before anything is closed, which may take long: systemd then shows the service as stopping.
            notify_systemd("STOPPING=1")
            self._close()
            self._keep()

    def beat(self) -> None:
        """Observe once and pass the observation on."""
        # First write what a store refused before: it is older than this observation.
        wrote = self._safely("history", self._sinks.history.flush)
        self._mind_the_clock()
        try:
            look = self._look()
        except Exception as error:  # noqa: BLE001 - no error of an observation ends the daemon
            self._sinks.errors.record("look", error)
            if not isinstance(error, LumctlError):  # unexpected: start again with new connections
                self._reopen()
        else:
            self._sinks.errors.resolve("look")
            # Until all parts of the rack have answered or timed out once, an observation is incomplete: show no change.
            if not look.awaited:
                self._put(look)
            if wrote and look.not_kept is not None:  # the store was opened while the disk was full and stays read-only
                self._reopen()
        self._keep()

    def _put(self, look: Observation) -> None:
        """Pass an observation to clients, to metrics, notifications and autopilot, and to the history."""
        # First: clients and metrics get it even if something below fails.
        self._sinks.newest.put(look)
        self._safely("verdict", lambda: self._hand_on(look))
        if (readings := self._sinks.readings) is not None:
            self._safely("folding", lambda: readings.see(look))
        if (spares := self._sinks.spares) is not None:
            self._safely("spares", lambda: spares.see(look))

    def _keep(self) -> None:
        """Write the data that the next daemon needs."""
        self._safely("history", self._sinks.history.flush)
        self._safely("notes", self._sinks.notes.save)

    def _look(self) -> Observation:
        if self._rack is None:
            self._rack = self._open_rack(self.inventory)
        remember = self._remembering.is_due(self._before)
        look = self._rack.observe(tick=True, remember=remember)
        if look.not_kept is not None:
            self._sinks.errors.record("memory", NotKeptError(look.not_kept))
            self._remembering.refused()
        elif remember and not look.awaited:
            self._sinks.errors.resolve("memory")
            self._remembering.wrote(look.report)
        self._mind_the_simulator(look)
        return look

    def _mind_the_clock(self) -> None:
        """Reopen the rack after the clock was set: its readings would seem old, or from the future."""
        set_by = self._clock.set_by()
        if set_by is not None and self._rack is not None:
            self._say(f"clock: set by {set_by:+.0f} s; everything is read again")
            self._close()

    def _mind_the_simulator(self, look: Observation) -> None:
        """Reopen a simulator when nothing answers: after a restart it answers at other addresses."""
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
        # Before the rest, which may fail: a change must not be counted twice.
        self._before = report
        for line in transition_lines(changes):
            self._say(line)
        for change in changes:
            sinks.self_metrics.changed(change)
            # A store takes each change once: it ignores changes that the observation itself has written.
            sinks.history.add(rack_of(look.inventory, change.component, look.circuits) or "", change)
        if sinks.pilot is not None:
            sinks.pilot.see(look)
        if sinks.outbox is not None:
            for notification in sinks.ledger.review(look):
                sinks.outbox.put(notification)

    def _safely(self, place: str, work: Callable[[], bool | None]) -> bool:
        """Do work and log its error; return whether it was done. Work returns ``False`` if there was nothing to do."""
        try:
            done = work() is not False
        except Exception as error:  # noqa: BLE001 - no error of one part ends the daemon
            self._sinks.errors.record(place, error)
            return False
        if done:
            self._sinks.errors.resolve(place)
        return done

    def _pause(self, until: float) -> bool:
        """Wait for the next beat and follow orders in the meantime; return ``False`` after the order to stop."""
        while True:
            left_s = max(until - self._monotonic(), 0.0)
            try:
                order = self.orders.get(timeout=min(left_s, ALIVE_S))
            except Empty:
                if left_s <= ALIVE_S:
                    return True
                # An interval may be longer than systemd waits for a sign of life.
                notify_systemd("WATCHDOG=1")
                continue
            if order is DaemonOrder.STOP:
                return False
            self._reload()

    def _reload(self) -> None:
        """Read the inventory again; keep the old one if the new one is invalid."""
        try:
            fresh = self._load(self.inventory.path)
            if fresh.digest == self.inventory.digest:
                self._say("inventory: read again, unchanged")
                return
            # Before the old one is closed: an inventory that cannot be opened changes nothing.
            reader = self._open_rack(fresh)
        except LumctlError as error:
            self._say(f"inventory: the new version cannot be used, the old one stays in force: {error.message}")
            return
        self._close()
        self._rack, self.inventory = reader, fresh
        self._say(f"inventory: {fresh.path} was read again and is in force")

    def _close(self) -> None:
        if self._rack is not None:
            self._safely("end", self._rack.close)
            self._rack = None


def _as_known(known: Known, report: HealthReport) -> HealthReport:
    """The report with the states that an earlier daemon recorded; components without such a state are omitted."""
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
