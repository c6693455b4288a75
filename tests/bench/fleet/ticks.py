"""Warm ticks, all contenders in one run: they take turns in rounds, so that whatever drifts drifts for all of them."""

import contextlib
import sys
import time
from dataclasses import dataclass, field
from statistics import median

import payload
import processes
from competitors import competitors_python
from contender_lumctl import loop_program
from driver import Contender, ContenderError, Kept, Tick
from rack import Rack, addresses
from roster import ROSTER, Entry

_WARM_UPS = 5
"""More than the ticks after which lumctl knows that a host says something new, or nothing new, each time."""
_BETWEEN_S = 0.1


@dataclass
class Result:
    """What was measured of one contender; times in seconds, memory in bytes. ``failed``: why there is nothing."""

    entry: Entry
    ticks: list[Tick] = field(default_factory=list)
    unchanged: list[Tick] = field(default_factory=list)
    server_s: float = 0.0
    peak_rss: int = 0
    pss: int = 0
    start_s: float = 0.0
    failed: str | None = None

    @property
    def wall_s(self) -> float:
        return median(tick.wall_s for tick in self.ticks)

    @property
    def cpu_s(self) -> float:
        """The mean, for a median would drop what a tool does every few ticks."""
        return sum(tick.cpu_s for tick in self.ticks) / len(self.ticks)

    @property
    def server_cpu_s(self) -> float:
        return self.server_s / len(self.ticks)

    @property
    def unchanged_wall_s(self) -> float:
        return median(tick.wall_s for tick in self.unchanged)

    @property
    def unchanged_cpu_s(self) -> float:
        return sum(tick.cpu_s for tick in self.unchanged) / len(self.unchanged)


def measure(entries: tuple[Entry, ...], hosts: int, rounds: int, size: int) -> list[Result]:
    """Measure ticks in which every byte of every answer is new, and then, where they are told apart, unchanged ones."""
    results = [Result(entry) for entry in entries]
    for result in results:
        if result.entry.missing:
            result.failed = f"{result.entry.missing} is not installed"
    python = competitors_python() if any(entry is not ROSTER[0] for entry in entries) else sys.executable
    with Rack(addresses(hosts)) as rack, contextlib.ExitStack() as running:
        payload.put(rack.payload, payload.fresh(size))
        kept = running.enter_context(Kept(rack)) if any(entry.kept for entry in entries) else None
        contenders = _started(results, rack, python, kept, running)
        visits = Visits(rack, size)
        for contender, result in contenders:
            with _failure_noted(result):
                visits.warm_up(contender, result)
        for at in range(rounds):
            _say(f"round {at + 1} of {rounds}")
            for contender, result in _from(contenders, at):
                if at % result.entry.every == 0:
                    with _failure_noted(result):
                        visits.measure(contender, result)
        telling = [pair for pair in contenders if pair[1].entry.tells_apart]
        for at in range(rounds):
            _say(f"round {at + 1} of {rounds}, nothing new")
            for contender, result in _from(telling, at):
                with _failure_noted(result):
                    visits.measure_unchanged(contender, result, warm_up=at == 0)
    return results


def _started(
    results: list[Result], rack: Rack, python: str, kept: Kept | None, running: contextlib.ExitStack
) -> list[tuple[Contender, Result]]:
    contenders: list[tuple[Contender, Result]] = []
    for result in results:
        if result.failed is None:
            with _failure_noted(result):
                contender = _start(result, rack, python, kept)
                running.callback(contender.close)
                contenders.append((contender, result))
    return contenders


def _from(contenders: list[tuple[Contender, Result]], at: int) -> list[tuple[Contender, Result]]:
    """Those that have not failed. Each round begins with another one: nobody always follows the same contender."""
    turn = at % max(1, len(contenders))
    return [pair for pair in contenders[turn:] + contenders[:turn] if pair[1].failed is None]


class Visits:
    """The harness goes from contender to contender."""

    def __init__(self, rack: Rack, size: int) -> None:
        self._rack = rack
        self._size = size
        self._server_s = 0.0

    def warm_up(self, contender: Contender, result: Result) -> None:
        _say(f"{result.entry.name}: warming up")
        # A tool that is started again for each tick has little to warm.
        for _ in range(_WARM_UPS if result.entry.ticks > 1 else 1):
            self._tick(contender)
        digest = self._renew()
        result.peak_rss = contender.peak_rss()
        contender.check(digest)
        result.pss = contender.memory().pss
        self._rest()

    def measure(self, contender: Contender, result: Result) -> None:
        """A contender's turn in a round."""
        before_s = self._server_s
        try:
            for _ in range(result.entry.ticks):
                result.ticks.append(self._tick(contender))
        finally:
            # Also after a failure: what the server did for this one is not to be counted for the next.
            self._rest()
        result.server_s += self._server_s - before_s

    def measure_unchanged(self, contender: Contender, result: Result, *, warm_up: bool) -> None:
        """A contender's turn in a round in which the hosts say what they said before."""
        for _ in range(_WARM_UPS if warm_up else 0):
            self._tick(contender, renew=False)
        for _ in range(result.entry.ticks):
            result.unchanged.append(self._tick(contender, renew=False))
        self._rest()

    def _tick(self, contender: Contender, *, renew: bool = True) -> Tick:
        self._digest = self._renew() if renew else self._digest
        tick = contender.tick()
        contender.check(self._digest)
        return tick

    def _renew(self) -> str:
        return payload.put(self._rack.payload, payload.fresh(self._size))

    def _rest(self) -> None:
        """Let the server finish with this contender, then note what it has used."""
        time.sleep(_BETWEEN_S)
        self._server_s = processes.cpu_s(self._rack.pid)


def _start(result: Result, rack: Rack, python: str, kept: Kept | None) -> Contender:
    entry = result.entry
    _say(f"{entry.name}: connecting to {len(rack.hosts)} hosts")
    started = time.perf_counter()
    try:
        return Contender(
            entry,
            rack,
            sys.executable if entry is ROSTER[0] else python,
            program=loop_program(rack.command),
            kept=kept.process.pid if kept and entry.kept else None,
        )
    finally:
        result.start_s = time.perf_counter() - started


@contextlib.contextmanager
def _failure_noted(result: Result):
    try:
        yield
    except ContenderError as error:
        result.failed = str(error)
        _say(str(error))


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr)
