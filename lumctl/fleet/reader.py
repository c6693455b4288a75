"""One host: its loop, which probes are requested when, and the newest of all its readings."""

import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.errors import LumctlError
from lumctl.fleet.frames import Frame, FrameMark, Greeting
from lumctl.fleet.gate import Gate
from lumctl.fleet.habits import Habits
from lumctl.fleet.host_requests import HostRequests, Outcomes, Running
from lumctl.fleet.loop import lanes_of, program
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, Verdict, visible
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import HostSnapshot, ProbeStatus
from lumctl.fleet.rounds import Backoff, Owed, Round
from lumctl.fleet.ssh.host_keys import HostKeyError
from lumctl.fleet.ssh.session import FrozenError, SshSession
from lumctl.workers import Workers

if TYPE_CHECKING:
    from lumctl.fleet.conversation import Conversation

_MIXED = "what ran before it was lost, and may have printed into it"
_GRACE_S = 0.5
"""Extra time for a thread beyond a time limit, so that the limit's own error arrives first."""


@dataclass(frozen=True, slots=True)
class SharedByHosts:
    """What all hosts of a fleet share."""

    workers: Workers
    gate: Gate
    now: Callable[[], float]
    connect_timeout_s: float


class HostReader:
    """A host and its loop. Answers come in by the connection's own thread; any thread may ask."""

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
        self._life = 0
        self._connected = False
        self._error: LumctlError | None = None
        self._backoff = Backoff()
        self._connect_seconds: float | None = None

    # --- asking ---

    def read_now(self, round_: Round, wanted: Collection[str] | None) -> None:
        """Ask for probes, all or those named (``optics`` means all of that kind); the round waits for new answers."""
        numbers = self._outcomes.numbers(wanted)
        with self._lock:
            self._backoff.asked_for()
            self._connect_seconds = None
            self._ask(numbers, Owed(round_, numbers))
            start = self._must_start(deliberate=True)
        self._go(start)

    def read_due(self, round_: Round) -> None:
        """Request what is due. The round waits for the probes of every tick, and for those that were never answered.

        A host that cannot be reached is tried again when its time has come, without a wait.
        """
        now = time.monotonic()
        with self._lock:
            due = [n for n in range(len(self.probes)) if self._due.get(n, 0.0) <= now and not self._lanes.busy(n)]
            awaited = [n for n in due if self.probes[n].every_s == 0 or not self._outcomes.known(n)]
            if self._greeted:
                self._ask(due, Owed(round_, awaited))
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
            # If it is not under way itself, it would only queue up behind what hangs.
            self._outcomes.overdue(number, hanging, time.monotonic(), again=self._lanes.busy(number))
            owed.forgive(number)
        else:
            # What is under way was begun before now; the request after it counts.
            owed.require(number, self._requests + 1)
            self._again.add(number)

    def _flush(self) -> None:
        """Send for what is wanted and not under way. Requests reach the host in the order of their numbers.

        Nothing else may be held here: while new keys are agreed on, sending waits for the connection's own thread.
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
        """The number of the loop that is about to start. Output of earlier loops is ignored."""
        if self._conversation is not None or self._starting_since is not None:
            return None
        if not deliberate and time.monotonic() < self._backoff.until:
            return None
        self._starting_since = inf
        self._connected = False
        self._error = None if deliberate else self._error
        self._life += 1
        return self._life

    def _begin_phase(self, life: int, connected_in_s: float | None = None, *, connected: bool) -> None:
        """The time to connect, and then the time of the shell to answer, begin when their turn has come."""
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
        except Exception as problem:  # noqa: BLE001 - one host's surprise must not take the others' readings along
            error = LumctlError(f"{self.host}: unexpected {type(problem).__name__}: {problem}")
        with self._lock:
            # It may have ended, or been given up, before this thread came back; another may have begun since.
            current = life == self._life
            if current and conversation is not None:
                self._conversation = conversation
                self._settle()
            elif current:
                self._failed(error, frozen=frozen)
        if current:
            self._flush_soon()
        elif conversation is not None:
            conversation.end("it was given up")

    def _failed(self, error: LumctlError | None, *, frozen: bool) -> None:
        """There is no loop: end the waits for it; the next attempts come at growing intervals."""
        self._life += 1
        self._starting_since = None
        self._conversation = None
        self._greeted = False
        self._error = error
        self._backoff.failed(time.monotonic())
        if isinstance(error, DeviceRefusedError):
            self._outcomes.note(self._all_owed(), ProbeStatus.FAILED, error.message)
        elif frozen:
            self._outcomes.note(self._all_owed(), ProbeStatus.TIMED_OUT, "the host's time ran out before it")
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
            # The same start of the host keeps its time, or each kernel line would be dated again at each greeting.
            self._gathered.booted_at = booted_at
        self._boot_id = greeting.boot_id
        self._verdicts.clear()
        self._habits.forget()
        self._greeted = True
        self._settle()

    def _settle(self) -> None:
        """The host is there when both are, the conversation and its greeting, in whichever order they came."""
        if self._greeted and self._conversation is not None:
            self._starting_since = None
            self._error = None
            self._backoff.worked()

    def _take(self, frame: Frame) -> None:
        now, at = time.monotonic(), self._means.now()
        if frame.probe >= len(self.probes):
            return
        running = self._lanes.answered(frame.probe, frame.request, now, at)
        if running is None:
            self._lanes.came_early(frame)
            return
        probe = self.probes[frame.probe]
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
        """What a tool printed was too much for its lane: it has no answer, and what waits behind it has its turn."""
        running = self._lanes.first_in(self._lane_names[frame.probe]) if frame.probe < len(self._lane_names) else None
        if running is not None:
            self._verdicts.pop(running.probe, None)
            self._take(Frame(FrameMark.LOST, running.probe, running.request, frame.status))

    def _read(self, probe: Probe, frame: Frame, running: Running) -> Verdict:
        if running.direct and self._habits.barred:
            lost = frame.mark is FrameMark.LOST
            return ProbeStatus.FAILED, f"its shell was killed (status {frame.status})" if lost else _MIXED
        if frame.mark is FrameMark.LOST:
            return ProbeStatus.FAILED, f"it printed more than the host's shell can hold (status {frame.status})"
        if frame.mark is FrameMark.SAME and frame.probe in self._verdicts:
            probe.again(running.began_at, self._gathered)
            return self._verdicts[frame.probe]
        answer = ProbeAnswer(frame.status, frame.body.decode("utf-8", "replace"), frame.mark is FrameMark.MORE)
        return probe.take(answer, running.began_at, self._gathered)

    def _over(self, life: int, reason: str) -> None:
        """The loop is gone: its requests are forgotten."""
        with self._lock:
            if life != self._life:
                return
            self._failed(DeviceUnreachableError(f"{self.host}: {reason}"), frozen=False)

    # --- deadlines ---

    def expire(self, now: float) -> float:
        """Let go what has run out of time; when the next deadline is."""
        drop = False
        with self._lock:
            limit = self._means.connect_timeout_s + _GRACE_S
            began = self._starting_since
            if began is not None and now >= began + limit:
                drop = self._late_start()
                began = None
            for lane, hanging in self._lanes.expire(now):
                self._hang(lane, hanging)
            nearest = min(self._lanes.next_deadline(), inf if began is None else began + limit)
        if drop:
            # Some thread waits in a place that has no time limit; without a connection it comes free.
            self._session().drop()
        return nearest

    def _late_start(self) -> bool:
        """No answer came within the time to connect: give the host up, or wait longer for its greeting."""
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
        """What is known now; with ``since`` (epoch seconds) only what was read from then on, of the probes wanted."""
        with self._lock:
            error = self._error
            reachable = error is None and (self._connected or self._greeted)
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
                attempts=self._backoff.shown if since is None else 0,
                awaited=not self._outcomes.complete,
                **visible(self._gathered, outcomes, since),
            )
