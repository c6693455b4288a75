"""One host: its loop, when each probe is requested, and the newest of all its readings."""

import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.errors import LumctlError
from lumctl.fleet.frames import Frame, FrameMark, Greeting
from lumctl.fleet.host_requests import Habits, HostRequests, Outcomes, Running
from lumctl.fleet.loop import lanes_of, program
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, Verdict, visible
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import HostSnapshot, ProbeStatus
from lumctl.fleet.rounds import Backoff, Gate, Owed, Round
from lumctl.fleet.ssh.host_keys import HostKeyError
from lumctl.fleet.ssh.session import FrozenError, SshSession
from lumctl.workers import Workers

if TYPE_CHECKING:
    from lumctl.fleet.conversation import Conversation

_MIXED = "the command before it was lost, and its output may be mixed in"
GRACE_S = 0.5
"""Extra time for a thread beyond a time limit, so that the error of the limit itself arrives first."""


@dataclass(frozen=True, slots=True)
class SharedByHosts:
    """What all hosts of a fleet share."""

    workers: Workers
    gate: Gate
    now: Callable[[], float]
    connect_timeout_s: float


class HostReader:
    """A host and its loop. The connection's own thread receives the answers; any thread may request readings."""

    def __init__(
        self, host: str, session: Callable[[], SshSession], probes: tuple[Probe, ...], means: SharedByHosts
    ) -> None:
        self.host = host
        self.probes = probes
        self._session = session
        self._means = means
        self._lock = threading.RLock()
        self._sending = threading.RLock()
        self._lanes = HostRequests(probes)
        self._lane_names = lanes_of(probes)
        self._habits = Habits(probes)
        self._gathered = Gathered()
        self._boot_id: str | None = None
        self._outcomes = Outcomes(probes, means.now)
        self._verdicts: dict[int, Verdict] = {}
        self._due: dict[int, float] = {}
        self._again: set[int] = set()
        self._owed: list[Owed] = []
        self._requests = 0
        self._conversation: Conversation | None = None
        self._greeted = False
        self._starting_since: float | None = None
        # The number of the present loop. What an earlier loop still reports carries its own number and is ignored.
        self._life = 0
        self._connected = False
        self._error: LumctlError | None = None
        self._backoff = Backoff()
        self._connect_seconds: float | None = None

    # --- asking ---

    def read_now(self, round_: Round, wanted: Collection[str] | None) -> None:
        """Request probes (``None``: all; ``optics`` means all of that kind). The round waits for new answers."""
        numbers = self._outcomes.numbers(wanted)
        with self._lock:
            self._backoff.asked_for()
            self._connect_seconds = None
            self._ask(numbers, Owed(round_, numbers))
            start = self._must_start(deliberate=True)
        self._go(start)

    def read_due(self, round_: Round) -> None:
        """Request the probes that are due. The round waits for the probes of every tick, and for first answers.

        An unreachable host is tried again when its back-off has passed. The round does not wait for it.
        """
        now = time.monotonic()
        with self._lock:
            due = [n for n in range(len(self.probes)) if self._due.get(n, 0.0) <= now and not self._lanes.busy(n)]
            awaited = [n for n in due if self.probes[n].every_s == 0 or not self._outcomes.known(n)]
            if self._greeted:
                self._ask(due, Owed(round_, awaited))
            # It was never started: the first round waits for it. After a failure no round waits until it answers again.
            elif self._starting_since is None and not self._backoff.failures:
                self._ask(due, Owed(round_, due))
            start = self._must_start(deliberate=False)
        self._go(start)

    def _go(self, life: int | None) -> None:
        if life is not None:
            self._means.workers.submit(lambda: self._start(life))
        else:
            self._flush_soon()

    def _flush_soon(self) -> None:
        conversation = self._conversation
        if conversation is not None:
            conversation.soon(self._flush)

    def _ask(self, numbers: Iterable[int], owed: Owed) -> None:
        for number in numbers:
            self._owe(number, owed)
        if owed:
            self._owed.append(owed)

    def _owe(self, number: int, owed: Owed) -> None:
        hanging = self._lanes.blocked_by(number)
        if hanging is not None:
            # Unless it is the hanging probe itself, it would only queue behind that probe.
            self._outcomes.overdue(number, hanging, time.monotonic(), again=self._lanes.busy(number))
            owed.forgive(number)
        else:
            # A request that is under way began before now; the one after it counts.
            owed.require(number, self._requests + 1)
            self._again.add(number)

    def _flush(self) -> None:
        """Send a request for the wanted probes that are not in progress. Requests reach the host in numerical order.

        No other lock may be held while sending: during a key exchange, sending waits for the connection's own thread.
        """
        with self._sending:
            with self._lock:
                conversation = self._conversation if self._greeted else None
                unasked = [number for number in sorted(self._again) if not self._lanes.busy(number)]
                if conversation is None or not unasked:
                    return
                now, at = time.monotonic(), self._means.now()
                self._requests += 1
                request = self._requests
                direct: set[int] = set()
                for number in unasked:
                    if self._habits.restless(number) and self._lanes.can_be_direct(number):
                        direct.add(number)
                    self._lanes.asked(number, request, now, at, direct=number in direct)
                    self._due[number] = now + self.probes[number].every_s
                self._again.difference_update(unasked)
            conversation.ask(request, unasked, direct)

    # --- connecting ---

    def _must_start(self, *, deliberate: bool) -> int | None:
        """The number of the loop to start now; ``None`` if no loop must start. Output of earlier loops is ignored."""
        if self._conversation is not None or self._starting_since is not None:
            return None
        if not deliberate and time.monotonic() < self._backoff.until:
            return None
        # Its time begins when the gate lets it pass; until then it waits for others.
        self._starting_since = inf
        self._connected = False
        self._error = None if deliberate else self._error
        self._life += 1
        return self._life

    def _begin_phase(self, life: int, connected_in_s: float | None = None, *, connected: bool) -> None:
        """Start the time limit of a phase: first of connecting, then of the shell's answer."""
        with self._lock:
            if life == self._life:
                self._starting_since = time.monotonic()
                self._connected = connected
                self._connect_seconds = connected_in_s

    def _start(self, life: int) -> None:
        frozen = False
        error: LumctlError | None = None
        conversation: Conversation | None = None
        try:
            with self._means.gate.passing():
                self._begin_phase(life, connected=False)
                session = self._session()
                self._begin_phase(life, session.connect(), connected=True)
                conversation = session.converse(
                    program(self.probes),
                    self._means.connect_timeout_s,
                    lambda said: self._hear(life, said),
                    lambda reason: self._over(life, reason),
                )
        except FrozenError:
            frozen = True
        except LumctlError as problem:
            error = problem
        except Exception as problem:  # noqa: BLE001 - an error with one host must not end the reading of the others
            error = LumctlError(f"{self.host}: unexpected {type(problem).__name__}: {problem}")
        with self._lock:
            # This loop may have ended or been given up before this thread came back; another may have started since.
            current = life == self._life
            if current and conversation is not None:
                self._conversation = conversation
                self._settle()
            elif current:
                self._failed(error, frozen=frozen)
        if current:
            self._flush_soon()
        elif conversation is not None:
            conversation.end("it was abandoned")

    def _failed(self, error: LumctlError | None, *, frozen: bool) -> None:
        """Note that there is no loop, and end the waits for it. The next attempts come at growing intervals."""
        # What the loop that was given up still says must not count.
        self._life += 1
        self._starting_since = None
        self._conversation = None
        self._greeted = False
        self._error = error
        self._backoff.failed(time.monotonic())
        if isinstance(error, DeviceRefusedError):
            self._outcomes.note(self._all_owed(), ProbeStatus.FAILED, error.message)
        elif frozen:
            self._outcomes.note(self._all_owed(), ProbeStatus.TIMED_OUT, "the host's time limit ended before it ran")
        self._give_up()

    def _give_up(self) -> None:
        self._lanes.clear()
        self._again.clear()
        self._forgive()

    def _forgive(self) -> None:
        for owed in self._owed:
            owed.forgive_all()
        self._owed.clear()

    def _all_owed(self) -> set[int]:
        return {number for owed in self._owed for number in owed.probes}

    # --- hearing, in the connection's own thread ---

    def _hear(self, life: int, said: Greeting | Frame) -> None:
        with self._lock:
            if life != self._life:
                return
            if isinstance(said, Greeting):
                self._welcome(said)
            elif said.mark is FrameMark.LOST:
                self._lose(said)
            else:
                self._take(said)
            wanted = bool(self._again)
        if wanted:
            self._flush()

    def _welcome(self, greeting: Greeting) -> None:
        at = self._means.now()
        booted_at = None if greeting.uptime_s is None else at - greeting.uptime_s
        if greeting.boot_id != self._boot_id or self._gathered.booted_at is None:
            # The boot time is kept until the host restarts. Otherwise each greeting would date all kernel lines again.
            self._gathered.booted_at = booted_at
        if self._boot_id not in {None, greeting.boot_id}:
            self._gathered.forget_log()
        self._boot_id = greeting.boot_id
        # The new loop has no earlier answers to compare with.
        self._verdicts.clear()
        self._habits.forget()
        self._greeted = True
        self._settle()

    def _settle(self) -> None:
        """Count the host as reached once the conversation and its greeting have arrived, in either order."""
        if self._greeted and self._conversation is not None:
            self._starting_since = None
            self._error = None
            self._backoff.worked()

    def _take(self, frame: Frame) -> None:
        now, at = time.monotonic(), self._means.now()
        # A host may print anything, so also a number that no probe has.
        if frame.probe >= len(self.probes):
            return
        running = self._lanes.answered(frame.probe, frame.request, now, at)
        if running is None:
            self._lanes.came_early(frame)
            return
        probe = self.probes[frame.probe]
        # Before the answer is read: if it reports a lost tool, direct answers are barred, and this one too.
        self._habits.heard(frame, direct=running.direct)
        self._gathered.heard_at = at
        try:
            verdict = self._read(probe, frame, running)
        except Exception as error:  # noqa: BLE001 - what one host prints must not end the reading of the others
            verdict = (ProbeStatus.FAILED, f"unexpected {type(error).__name__}: {error}")
        self._verdicts[frame.probe] = verdict
        self._outcomes.answered(frame.probe, verdict, running.began_at, now - running.since)
        for owed in list(self._owed):
            owed.answered(frame.probe, frame.request)
            if not owed:
                self._owed.remove(owed)
        next_one = self._lanes.came_before(probe.lane)
        if next_one is not None:
            self._take(next_one)

    def _lose(self, frame: Frame) -> None:
        """Note that too much output of a tool ended its lane's shell. The lane's next request has its turn."""
        running = self._lanes.first_in(self._lane_names[frame.probe]) if frame.probe < len(self._lane_names) else None
        if running is not None:
            self._verdicts.pop(running.probe, None)
            self._take(Frame(FrameMark.LOST, running.probe, running.request, frame.status))

    def _read(self, probe: Probe, frame: Frame, running: Running) -> Verdict:
        if running.direct and self._habits.barred:
            lost = frame.mark is FrameMark.LOST
            return ProbeStatus.FAILED, f"its shell was killed (status {frame.status})" if lost else _MIXED
        if frame.mark is FrameMark.LOST:
            return ProbeStatus.FAILED, f"it printed more than the host's shell can store (status {frame.status})"
        if frame.mark is FrameMark.SAME and frame.probe in self._verdicts:
            probe.again(running.began_at, self._gathered)
            return self._verdicts[frame.probe]
        answer = ProbeAnswer(frame.status, frame.body.decode("utf-8", "replace"), frame.mark is FrameMark.MORE)
        return probe.take(answer, running.began_at, self._gathered)

    def _over(self, life: int, reason: str) -> None:
        """Note that the loop has ended, and forget its requests."""
        with self._lock:
            if life != self._life:
                return
            self._failed(DeviceUnreachableError(f"{self.host}: {reason}"), frozen=False)

    # --- deadlines ---

    def expire(self, now: float) -> float:
        """Abandon requests that have run out of time; return when the next deadline is."""
        drop = False
        with self._lock:
            limit = self._means.connect_timeout_s + GRACE_S
            began = self._starting_since
            if began is not None and now >= began + limit:
                drop = self._late_start()
                began = None
            for lane, hanging in self._lanes.expire(now):
                self._hang(lane, hanging)
            nearest = min(self._lanes.next_deadline(), inf if began is None else began + limit)
        if drop:
            # A thread waits in a call without a time limit. Dropping the connection ends that wait.
            self._session().drop()
        return nearest

    def _late_start(self) -> bool:
        """Handle a late start: abandon the host, or keep waiting for its greeting. Return whether it was abandoned."""
        if self._conversation is None:
            connected = self._connected
            error = None if connected else DeviceUnreachableError(f"{self.host}: no SSH session in time")
            self._failed(error, frozen=connected)
            return True
        self._outcomes.note(self._all_owed(), ProbeStatus.TIMED_OUT, "its shell does not answer")
        self._forgive()
        return False

    def _hang(self, lane: str, hanging: Running) -> None:
        for running in self._lanes.waiting_in(lane):
            self._outcomes.overdue(running.probe, hanging, time.monotonic(), again=False)
        for owed in list(self._owed):
            for number in owed.probes:
                if self.probes[number].lane == lane:
                    owed.forgive(number)
            if not owed:
                self._owed.remove(owed)
        self._again -= {number for number in self._again if self.probes[number].lane == lane}

    # --- telling ---

    def snapshot(self, wanted: Collection[str] | None, since: float | None) -> HostSnapshot:
        """The readings, and the outcomes of the wanted probes; with ``since`` (epoch seconds) no older readings."""
        with self._lock:
            error = self._error
            reachable = error is None and (self._connected or self._greeted)
            # The host answers but runs no commands: its network works.
            if isinstance(error, DeviceRefusedError):
                reachable = True
            outcomes = self._outcomes.named(wanted)
            return HostSnapshot(
                host=self.host,
                taken_at=self._means.now() if since is None else since,
                reachable=reachable,
                error=None if reachable or error is None else error.message,
                host_key_problem=isinstance(error, HostKeyError),
                connect_seconds=self._connect_seconds,
                probes=outcomes if reachable else {},
                boot_id=self._boot_id,
                booted_at=self._gathered.booted_at,
                # A deliberate collection shows no count, so that health takes its one miss as the loss of the host.
                attempts=self._backoff.shown if since is None else 0,
                awaited=not self._outcomes.complete,
                **visible(self._gathered, outcomes, since),
            )
