"""Readers for one screen each: of a component's history, a host's probes, a scheduler or a job, in separate threads.

Each reads one thing at a time, in a daemon thread: a database, a host or a scheduler that hangs must not hold the
terminal of an operator who quits.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from textual.message import Message

from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.history import History
from lumctl.tui.views.sections import Fact

if TYPE_CHECKING:
    from lumctl.fleet.bundle.host_answers import HostAnswer

EVERY_S = 10.0
"""A scheduler serves many users: it is read at most as often as an operator looks at the screen."""
Answer = TypeVar("Answer")


@dataclass
class HistoryRead(Message):
    """The history of each requested component, over the last ``seconds``."""

    seconds: float
    histories: Mapping[str, History]

    @property
    def trouble(self) -> str | None:
        """Why a store could not be read, in one line."""
        return next((history.trouble for history in self.histories.values() if history.trouble), None)


class HistoryAsker:
    """Reads one history at a time. Of the requests made meanwhile, only the newest is then read.

    ``take`` is called from another thread. That thread is a daemon: a database that hangs must not hold the terminal.
    """

    def __init__(self, read: Callable[[str, float], History], take: Callable[[Message], object]) -> None:
        self._read = read
        self._take = take
        self._lock = threading.Lock()
        self._wanted: tuple[tuple[str, ...], float] | None = None
        self._busy = False

    def ask(self, components: tuple[str, ...], seconds: float) -> None:
        """Read the history of components over the last ``seconds``."""
        with self._lock:
            self._wanted = (components, seconds)
            if self._busy:
                return
            self._busy = True
        threading.Thread(target=self._run, name="lumctl-history", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                wanted, self._wanted = self._wanted, None
                if wanted is None:
                    # Under the same lock as the look for a request: one that came in between would wait for ever.
                    self._busy = False
                    return
            components, seconds = wanted
            # ``read`` never raises; if it did, this thread would end busy, and nothing would be read any more.
            self._take(HistoryRead(seconds, {name: self._read(name, seconds) for name in components}))


@dataclass
class ProbeAnswered(Message):
    """One probe has ended, with any result."""

    answer: "HostAnswer"


@dataclass
class HostRead(Message):
    """No more answers come; ``trouble`` is why, if it is not that all have come."""

    trouble: str = ""


class HostOutputReader:
    """One reading at a time. The thread is a daemon: a host that hangs must not hold the terminal."""

    def __init__(self, read: "Callable[[], Iterator[HostAnswer]]", take: Callable[[Message], object]) -> None:
        self._read = read
        self._take = take
        self._is_wanted = threading.Event()
        self._is_wanted.set()

    def start(self) -> None:
        """Ask all probes."""
        threading.Thread(target=self._run, name="lumctl-host", daemon=True).start()

    def stop(self) -> None:
        """Run no further probe; the running one ends by itself, at its deadline."""
        self._is_wanted.clear()

    def _run(self) -> None:
        try:
            for answer in self._read():
                self._take(ProbeAnswered(answer))
                if not self._is_wanted.is_set():
                    break
            self._take(HostRead())
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self._take(HostRead(one_line(error)))


class AnswerReader(Generic[Answer]):
    """One question at a time. The thread is a daemon: what is asked may hang, and must not hold the terminal.

    ``failed`` makes an answer of an error; ``first`` is the one until something has answered.
    """

    def __init__(
        self,
        read: Callable[[], Answer],
        first: Answer,
        failed: Callable[[Exception], Answer],
        now: Callable[[], float],
        every_s: float = EVERY_S,
    ) -> None:
        self._read = read
        self._failed = failed
        self._now = now
        self._every_s = every_s
        self._answer = first
        self._asked_at: float | None = None
        self._is_asking = False

    def answer(self) -> Answer:
        """The last answer; reads again if that is old. Call it from one thread."""
        now = self._now()
        if not self._is_asking and (self._asked_at is None or now - self._asked_at >= self._every_s):
            # Before the thread begins: the screen calls this each second, and must not start a second one.
            self._is_asking, self._asked_at = True, now
            threading.Thread(target=self._run, name="lumctl-answer", daemon=True).start()
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._read()
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self._answer = self._failed(error)
        finally:
            self._is_asking = False


def scheduler_reader(read: Callable[[], Sequence[Fact]], now: Callable[[], float]) -> AnswerReader[Sequence[Fact]]:
    """A reader of what a scheduler says of a component."""
    return AnswerReader(read, (), lambda error: (("scheduler", f"unknown: {error}"),), now)
