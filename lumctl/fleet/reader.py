"""One host's part of a collection: its probes run side by side, each under its own deadline."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

import paramiko

from lumctl.devices.errors import DeviceError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.errors import LumctlError
from lumctl.fleet.host_keys import HostKeyError
from lumctl.fleet.probes import Gathered, Probe
from lumctl.fleet.readings import HostSnapshot, ProbeOutcome, ProbeStatus
from lumctl.fleet.session import Session, StillRunningError
from lumctl.fleet.workers import Workers

_LANES = 6
"""Commands at a time on one host: sshd allows ten sessions by default, and drivers need some of them."""


@dataclass(frozen=True, slots=True)
class _Hanging:
    """A probe that did not end. Its channel stays open, because only that tells when it does."""

    channel: paramiko.Channel
    since: float


class HostReader:
    """A host's probes over its session, and which of them still hang there from earlier."""

    def __init__(
        self,
        host: str,
        session: Callable[[], Session],
        probes: tuple[Probe, ...],
        workers: Workers,
        now: Callable[[], float],
    ) -> None:
        self.host = host
        self.probes = probes
        self.workers = workers
        self.now = now
        self.session = session
        self._lock = threading.Lock()
        self._hanging: dict[str, _Hanging] = {}

    def begin(self, wanted: Collection[str] | None) -> "HostCollection":
        """Start reading. ``wanted`` names probes; ``optics`` means all of them."""
        probes = [p for p in self.probes if wanted is None or p.name in wanted or p.name.partition(":")[0] in wanted]
        collection = HostCollection(self, probes)
        self.workers.submit(collection.run)
        return collection

    def still_hanging(self, probe: str) -> float | None:
        """Since when an earlier run of a probe has not ended on the host; ``None`` if none is left there.

        A command in uninterruptible sleep cannot be killed; a second copy behind it would only hang as well.
        """
        with self._lock:
            earlier = self._hanging.get(probe)
            if earlier is None:
                return None
            if not earlier.channel.exit_status_ready():
                return earlier.since
            del self._hanging[probe]
        earlier.channel.close()
        return None

    def left_hanging(self, probe: str, channel: paramiko.Channel, since: float) -> None:
        """Note that a probe ran out of time and is still running."""
        with self._lock:
            self._hanging[probe] = _Hanging(channel, since)

    @property
    def lanes(self) -> int:
        """How many commands may run at a time now."""
        with self._lock:
            return max(1, _LANES - len(self._hanging))

    def longest_s(self, probes: Collection[Probe]) -> float:
        """How long a reading of these can take if all of them hang."""
        deadlines = [probe.deadline_s for probe in probes]
        return max(deadlines, default=0.0) + sum(deadlines) / self.lanes


class HostCollection:
    """One reading of one host, in progress."""

    def __init__(self, reader: HostReader, probes: list[Probe]) -> None:
        self.finished = threading.Event()
        self.limit_s = reader.longest_s(probes)
        self._reader = reader
        self._waiting = deque(probes)
        self._probes = probes
        self._started = reader.now()
        self._lock = threading.Lock()
        self._busy_lanes = 0
        self._over = False
        self._error: LumctlError | None = None
        self._connected_in: float | None = None
        self._connected = False
        self._answered = False
        self._outcomes: dict[str, ProbeOutcome] = {}
        self._gathered = Gathered()

    def run(self) -> None:
        """Connect, then start the lanes; this thread is one of them."""
        try:
            self._connected_in = self._reader.session().connect()
            self._connected = True
        except LumctlError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - one host's surprise must not take the others' readings along
            self._error = LumctlError(f"{self._reader.host}: unexpected {type(error).__name__}: {error}")
        if not self._connected:
            self.finished.set()
            return
        self._busy_lanes = max(1, min(self._reader.lanes, len(self._waiting)))
        for _ in range(self._busy_lanes - 1):
            self._reader.workers.submit(self._lane)
        self._lane()

    def snapshot(self) -> HostSnapshot:
        """What is known now. After this call nothing more is taken in: what is missing has run out of time."""
        with self._lock:
            self._over = True
            self._waiting.clear()
            # Read before the session is dropped below: what then breaks is our doing, not the host's.
            outcomes, gathered, error = dict(self._outcomes), self._gathered, self._error
        reader = self._reader
        if not self.finished.is_set():
            # Some thread waits in a place that has no time limit; without a connection it comes free.
            reader.session().drop()
        missing = [probe for probe in self._probes if probe.name not in outcomes]
        if not self._connected:
            error = error or DeviceUnreachableError(f"{reader.host}: no SSH session in time")
        elif missing:
            seconds = reader.now() - self._started
            for probe in missing:
                outcomes[probe.name] = ProbeOutcome(
                    probe.name, ProbeStatus.TIMED_OUT, self._started, seconds, "the host's time ran out before it"
                )
        reachable = self._connected and (self._answered or error is None)
        return HostSnapshot(
            host=reader.host,
            taken_at=self._started,
            reachable=reachable,
            error=None if reachable or error is None else error.message,
            host_key_problem=isinstance(error, HostKeyError),
            connect_seconds=self._connected_in,
            probes={p.name: outcomes[p.name] for p in self._probes if p.name in outcomes} if reachable else {},
            gpus=gathered.gpus,
            lost_gpus=gathered.lost_gpus,
            xids=gathered.xids,
            interfaces=gathered.interfaces,
            infiniband=gathered.infiniband,
            optics=dict(gathered.optics),
            neighbours=gathered.neighbours,
        )

    def _lane(self) -> None:
        try:
            while (probe := self._next()) is not None:
                self._ask(probe)
        finally:
            with self._lock:
                self._busy_lanes -= 1
                last = self._busy_lanes == 0
            if last:
                self.finished.set()

    def _next(self) -> Probe | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def _ask(self, probe: Probe) -> None:
        reader = self._reader
        taken_at, started = reader.now(), time.monotonic()
        since = reader.still_hanging(probe.name)
        if since is not None:
            detail = f"still hanging since {datetime.fromtimestamp(since, UTC):%Y-%m-%dT%H:%M:%SZ}"
            self._put(ProbeOutcome(probe.name, ProbeStatus.TIMED_OUT, taken_at, taken_at - since, detail))
            return
        result = None
        try:
            result = reader.session().execute(probe.command, probe.deadline_s)
        except StillRunningError as still:
            reader.left_hanging(probe.name, still.channel, taken_at)
            status, detail = ProbeStatus.TIMED_OUT, f"no answer within {probe.deadline_s:g} s"
        except DeviceError as error:
            status, detail = ProbeStatus.FAILED, error.message
            if isinstance(error, DeviceUnreachableError | OutcomeUnknownError):
                self._error = error
        except Exception as error:  # noqa: BLE001 - as above
            status, detail = ProbeStatus.FAILED, f"unexpected {type(error).__name__}: {error}"
        with self._lock:
            if self._over:
                return
            if result is not None:
                status, detail = probe.take(result, taken_at, self._gathered)
            self._answered = self._answered or result is not None or status is ProbeStatus.TIMED_OUT
        self._put(ProbeOutcome(probe.name, status, taken_at, time.monotonic() - started, detail))

    def _put(self, outcome: ProbeOutcome) -> None:
        with self._lock:
            if not self._over:
                self._outcomes[outcome.probe] = outcome
