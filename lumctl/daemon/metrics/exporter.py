"""Metrics of rack, daemon and autopilot over HTTP for Prometheus; and the daemon's health check."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Self

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

from lumctl import __version__
from lumctl.daemon.autopilot.pilot import Pilot
from lumctl.daemon.history import LatestObservation, TransitionQueue
from lumctl.daemon.metrics.collectors import look_metrics
from lumctl.daemon.notifications.receivers import Receivers
from lumctl.daemon.process import ErrorLog
from lumctl.daemon.spare_watcher import SpareWatcher
from lumctl.errors import UsageError
from lumctl.health.observation import Observation
from lumctl.health.transitions import Transition
from lumctl.sockets import POLL_S, BoundedThreads

STALE_AFTER_BEATS, STALE_AFTER_S = 5, 10.0
_TICK_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class SelfMetrics(Collector):
    """The daemon's own metrics, and the metrics of the newest observation while that is new enough. Thread-safe."""

    def __init__(
        self,
        newest: LatestObservation,
        interval_s: float,
        errors: ErrorLog,
        history: TransitionQueue,
        outbox: Receivers | None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._newest = newest
        self._interval_s = interval_s
        self._errors = errors
        self._history = history
        self._outbox = outbox
        self._now = now
        self._lock = threading.Lock()
        self._changes: dict[tuple[str, str], int] = {}
        self._overruns = 0
        # Creation times of counters are useless here and double the number of series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.tick_duration = Histogram(
            "lumctl_watch_tick_duration_seconds",
            "Duration of one observation, including the actions that follow it.",
            buckets=_TICK_BUCKETS,
            registry=self.registry,
        )
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    @property
    def limit_s(self) -> float:
        """The age in seconds beyond which the newest observation is not served."""
        return max(STALE_AFTER_BEATS * self._interval_s, STALE_AFTER_S)

    def well(self) -> bool:
        """Whether the daemon works: its newest observation is no older than the limit."""
        age_s = self._newest.age_s()
        return age_s is not None and age_s <= self.limit_s

    def missed(self, beats: int) -> None:
        """Count beats that were skipped because the previous one took too long."""
        with self._lock:
            self._overruns += beats

    def changed(self, change: Transition) -> None:
        """Count a state change."""
        with self._lock:
            key = (change.kind, change.after.value)
            self._changes[key] = self._changes.get(key, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """All metrics, for one scrape."""
        build = InfoMetricFamily("lumctl_build", "The version of the program.", value={"version": __version__})
        yield build
        look = self._newest.look
        if look is not None and self.well():
            yield from look_metrics(look, now=self._now(), ages=True)
            yield _one(
                "hosts_late", "Hosts without a new answer in the newest observation.", _late(look, self._interval_s)
            )
        age_s = self._newest.age_s()
        if look is not None and age_s is not None:
            yield _one("look_timestamp_seconds", "Time of the newest observation.", look.at)
            yield _one("look_age_seconds", "Age of the newest observation.", age_s)
        yield _one("interval_seconds", "Seconds between two observations.", self._interval_s)
        yield from self._counts()

    def describe(self) -> list[Metric]:
        """Return nothing: otherwise the registry would render a whole observation to learn the names."""
        return []

    def _counts(self) -> Iterator[Metric]:
        with self._lock:
            changes, overruns = dict(self._changes), self._overruns
        yield _count("overruns", "Observations skipped because the previous one took too long.", overruns)
        transitions = _counter("transitions", "Changes of a component's state.", ["kind", "state"])
        for key, value in changes.items():
            transitions.add_metric(list(key), value)
        yield transitions
        errors = _counter("errors", "Errors, by place and kind.", ["place", "kind"])
        for key, value in self._errors.counts().items():
            errors.add_metric(list(key), value)
        yield errors
        history = self._history
        yield _count("history_write_failures", "Attempts to write transitions that failed.", history.failures)
        yield _count("history_dropped", "Transitions dropped for lack of memory.", history.dropped)
        yield _one("history_waiting", "Transitions that are not written yet.", history.waiting)
        if self._outbox is not None:
            sent = _counter("notifications", "Notifications, by result.", ["outcome"])
            for outcome, value in self._outbox.counts().items():
                sent.add_metric([outcome], value)
            yield sent
            yield _one("notifications_waiting", "Notifications that are not delivered yet.", self._outbox.waiting)


class AutopilotMetrics(Collector):
    """The autopilot's metrics; there are none without policies."""

    def __init__(self, pilot: Pilot) -> None:
        self._pilot = pilot

    def describe(self) -> list[Metric]:
        """Return nothing: metrics are made for each scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics, for one scrape."""
        states = self._pilot.states()
        if not states:
            return
        running = GaugeMetricFamily(
            "lumctl_autopilot_running", "Whether the autopilot of a rack may act.", labels=["rack"]
        )
        breakers = GaugeMetricFamily(
            "lumctl_autopilot_breaker_open", "Whether a policy's circuit breaker is open.", labels=["rack", "policy"]
        )
        decisions = CounterMetricFamily(
            "lumctl_autopilot_decisions", "New decisions, by result.", labels=["rack", "act"]
        )
        attempts = CounterMetricFamily(
            "lumctl_autopilot_attempts", "Attempted swaps, by outcome.", labels=["rack", "outcome"]
        )
        for rack, state in states.items():
            running.add_metric([rack], float(state["running"]))
            for policy, is_open in state["breakers"].items():
                breakers.add_metric([rack, policy], float(is_open))
            for (what, word), count in state["counts"].items():
                (decisions if what == "decision" else attempts).add_metric([rack, word], count)
        yield from (running, breakers, decisions, attempts)


class SpareMetrics(Collector):
    """The jobs that wait for spares, and how often accelerators of each class fail."""

    def __init__(self, watcher: SpareWatcher, now: Callable[[], float] = time.time) -> None:
        self._watcher, self._now = watcher, now

    def describe(self) -> list[Metric]:
        """Return nothing: metrics are made for each scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics, for one scrape."""
        waiting = GaugeMetricFamily("lumctl_spare_demands", "Demands that wait for spares.", labels=["rack"])
        oldest = GaugeMetricFamily(
            "lumctl_spare_demand_oldest_seconds", "How long the oldest of them has waited.", labels=["rack"]
        )
        now = self._now()
        for rack, entries in self._watcher.waiting.items():
            waiting.add_metric([rack], len(entries))
            if entries:
                oldest.add_metric([rack], now - min(entry.demand.asked_at for entry in entries))
        fails = GaugeMetricFamily(
            "lumctl_spare_failures_per_day",
            "Failures a day of all accelerators of a class, by the history of the store.",
            labels=["rack", "class"],
        )
        for (rack, name), forecast in self._watcher.forecasts.items():
            fails.add_metric([rack, name], forecast.failures_per_day)
        yield from (waiting, oldest, fails)


def _late(look: Observation, interval_s: float) -> int:
    oldest = look.snapshot.taken_at - interval_s
    return sum(not host.reachable or host.taken_at < oldest for host in look.snapshot.hosts.values())


def _counter(name: str, text: str, labels: list[str]) -> CounterMetricFamily:
    return CounterMetricFamily(f"lumctl_watch_{name}", text, labels=labels)


def _count(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"lumctl_watch_{name}", text, value=value)


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"lumctl_watch_{name}", text, value=value)


DEFAULT_LISTEN = "127.0.0.1:9469"
_HIGHEST_PORT = 65535
_PATIENCE_S = 10.0


def parse_listen(text: str) -> tuple[str, int] | None:
    """Parse ``HOST:PORT`` or ``[IPV6]:PORT``; ``None`` for ``none``. Port 0 selects a free port.

    Raises:
        UsageError: the text has none of these forms.
    """
    if text == "none":
        return None
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isdecimal() or int(port) > _HIGHEST_PORT:
        raise UsageError(
            f"{text!r} is not an address to listen at", hint=f"use HOST:PORT such as {DEFAULT_LISTEN}, or none"
        )
    return host, int(port)


class MetricsServer:
    """Serves ``/metrics`` and ``/healthz`` until it is closed."""

    def __init__(self, listen: tuple[str, int], self_metrics: SelfMetrics) -> None:
        """Begin to serve.

        Raises:
            UsageError: the address does not belong to this machine, or the port is in use.
        """
        host, port = listen
        try:
            # HTTPServer knows only IPv4 unless it is told the family.
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
            self._server = _Server(listen, family, self_metrics)
        except OSError as error:
            raise UsageError(
                f"cannot listen at {host}:{port}: {error.strerror or error}",
                hint="choose another address with --listen",
            ) from error
        self.port = int(self._server.server_address[1])
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/metrics"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), name="lumctl-exporter", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(BoundedThreads, HTTPServer):
    def __init__(self, listen: tuple[str, int], family: socket.AddressFamily, self_metrics: SelfMetrics) -> None:
        self.address_family = family
        self.self_metrics = self_metrics
        super().__init__(listen, _Handler)

    def server_bind(self) -> None:
        """Bind without a reverse look-up of the address, which may hang."""
        super(HTTPServer, self).server_bind()
        self.server_name, self.server_port = "lumctl", int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    # A time limit of the socket: a client that sends nothing must not hold a thread forever.
    timeout = _PATIENCE_S
    server: _Server

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics()
        elif path == "/healthz":
            well = self.server.self_metrics.well()
            said = "ok" if well else f"no observation within {self.server.self_metrics.limit_s:g} s"
            self._say(HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE, said)
        else:
            self._say(HTTPStatus.NOT_FOUND, "there are /metrics and /healthz")

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self.do_GET()

    def version_string(self) -> str:
        """The server's name in answers."""
        return "lumctl"

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _metrics(self) -> None:
        encode, kind = choose_encoder(self.headers.get("Accept", ""))
        body = encode(self.server.self_metrics.registry)
        headers = {"Content-Type": kind}
        if gzip_accepted(self.headers.get("Accept-Encoding", "")):
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        self._answer(HTTPStatus.OK, body, headers)

    def _say(self, status: HTTPStatus, text: str) -> None:
        self._answer(status, f"{text}\n".encode(), {"Content-Type": "text/plain; charset=utf-8"})

    def _answer(self, status: HTTPStatus, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
