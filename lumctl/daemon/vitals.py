"""The metrics of the daemon itself, and of the newest look while it is new enough."""

import threading
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from lumctl import __version__
from lumctl.daemon.families import families
from lumctl.daemon.history import History
from lumctl.daemon.newest import Newest
from lumctl.daemon.receivers import Receivers
from lumctl.daemon.troubles import Troubles
from lumctl.health.transitions import Transition
from lumctl.site.observation import Observation

STALE_AFTER_BEATS, STALE_AFTER_S = 5, 10.0
_TICK_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Vitals(Collector):
    """Counts what the daemon does; rendered for every scrape, from any thread."""

    def __init__(
        self,
        newest: Newest,
        interval_s: float,
        troubles: Troubles,
        history: History,
        outbox: Receivers | None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._newest = newest
        self._interval_s = interval_s
        self._troubles = troubles
        self._history = history
        self._outbox = outbox
        self._now = now
        self._lock = threading.Lock()
        self._changes: dict[tuple[str, str], int] = {}
        self._overruns = 0
        # When a counter began is of no use here, and doubles the series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.tick_duration = Histogram(
            "lumctl_watch_tick_duration_seconds",
            "How long one look takes, with all that is done about it.",
            buckets=_TICK_BUCKETS,
            registry=self.registry,
        )
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    @property
    def limit_s(self) -> float:
        """The age at which the newest look is of no use any more, in seconds."""
        return max(STALE_AFTER_BEATS * self._interval_s, STALE_AFTER_S)

    def well(self) -> bool:
        """Whether the daemon does its work: its newest look is no older than the limit."""
        age_s = self._newest.age_s()
        return age_s is not None and age_s <= self.limit_s

    def missed(self, beats: int) -> None:
        """Count beats that were left out because the one before took too long."""
        with self._lock:
            self._overruns += beats

    def changed(self, change: Transition) -> None:
        """Count a change of state."""
        with self._lock:
            key = (change.kind, change.after.value)
            self._changes[key] = self._changes.get(key, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """Everything, for one scrape."""
        build = InfoMetricFamily("lumctl_build", "The version of the program.", value={"version": __version__})
        yield build
        look = self._newest.look
        if look is not None and self.well():
            yield from families(look, now=self._now(), ages=True)
            yield _one("hosts_late", "Hosts that had no new answer in the newest look.", _late(look, self._interval_s))
        age_s = self._newest.age_s()
        if look is not None and age_s is not None:
            yield _one("look_timestamp_seconds", "When the newest look was taken.", look.at)
            yield _one("look_age_seconds", "How long ago the newest look was taken.", age_s)
        yield _one("interval_seconds", "Seconds from one look to the next.", self._interval_s)
        yield from self._counts()

    def describe(self) -> list[Metric]:
        """Nothing: a registry that asks would render a whole look to learn the names."""
        return []

    def _counts(self) -> Iterator[Metric]:
        with self._lock:
            changes, overruns = dict(self._changes), self._overruns
        yield _count("overruns", "Looks left out because the one before took too long.", overruns)
        transitions = _counter("transitions", "Changes of a component's state.", ["kind", "state"])
        for key, value in changes.items():
            transitions.add_metric(list(key), value)
        yield transitions
        errors = _counter("errors", "What went wrong, by place and kind of error.", ["place", "kind"])
        for key, value in self._troubles.counts().items():
            errors.add_metric(list(key), value)
        yield errors
        history = self._history
        yield _count("history_write_failures", "Attempts to write transitions that failed.", history.failures)
        yield _count("history_dropped", "Transitions for which there was no room in memory.", history.dropped)
        yield _one("history_waiting", "Transitions that are not written yet.", history.waiting)
        if self._outbox is not None:
            sent = _counter("notifications", "Notifications, by what became of them.", ["outcome"])
            for outcome, value in self._outbox.counts().items():
                sent.add_metric([outcome], value)
            yield sent
            yield _one("notifications_waiting", "Notifications that are not delivered yet.", self._outbox.waiting)


def _late(look: Observation, interval_s: float) -> int:
    oldest = look.snapshot.taken_at - interval_s
    return sum(not host.reachable or host.taken_at < oldest for host in look.snapshot.hosts.values())


def _counter(name: str, text: str, labels: list[str]) -> CounterMetricFamily:
    return CounterMetricFamily(f"lumctl_watch_{name}", text, labels=labels)


def _count(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"lumctl_watch_{name}", text, value=value)


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"lumctl_watch_{name}", text, value=value)
