"""One thread that receives for many connections.

paramiko gives each connection a thread. Of hundreds of threads that all have something to do at once, each waits for
the interpreter's lock at nearly every system call, and handing the lock around costs more than the work itself. So what
a connection's thread would run is a strand of one thread here: a greenlet, which gives way only where it waits for its
socket. What runs in that thread must not wait for anything else; :func:`apart` is for what has to.
"""

import atexit
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakSet

from greenlet import GreenletExit, getcurrent, greenlet

T = TypeVar("T")

_BELL_BYTES = 4096
_BUFFER_BYTES = 64 * 1024
_IN_TIME, _LATE = True, False
"""What a strand is told when it goes on."""
_PATIENCE_S = 5.0
"""How long a program that ends waits for a thread: one in the middle of its work."""


@dataclass(slots=True)
class Watched:
    """A socket that does not block, and the strand that waits until there is something to receive."""

    sock: socket.socket
    flush: Callable[[], None]
    """Called in the thread when the socket takes more, after :meth:`Strands.when_writable`."""
    strand: greenlet | None = None
    interests: int = 0
    forgotten: bool = False


class Strands:
    """The thread and its strands. It begins with the first one, and ends with the last."""

    def __init__(self, name: str) -> None:
        self.buffer = memoryview(bytearray(_BUFFER_BYTES))
        """To receive into, for the strand that runs: a new one each time costs more than the receiving."""
        self._name = name
        self._lock = threading.Lock()
        self._living: set[greenlet] = set()
        self._beginning = 0
        self._calls: deque[Callable[[], None]] = deque()
        self._until: dict[greenlet, float] = {}
        self._thread: threading.Thread | None = None
        self._selector: selectors.BaseSelector
        self._bell: socket.socket
        self._button: socket.socket
        self._rung = False
        self._idle: greenlet
        """What runs while no strand does: it waits for all sockets at once."""

    # --- from any thread ---

    def begin(self, body: Callable[[], None]) -> None:
        """Run ``body`` as a strand."""
        with self._lock:
            self._beginning += 1
            if self._thread is None:
                self._start()
        self.soon(lambda: greenlet(self._live).switch(body))

    def soon(self, call: Callable[[], None]) -> None:
        """Have the thread make a call that does not wait; where there is no strand any more it is made here."""
        with self._lock:
            if self._thread is not None:
                self._calls.append(call)
                if not self._rung:
                    self._rung = True
                    self._button.send(b"!")
                return
        call()

    def end(self) -> None:
        """End all strands where they wait, and the thread with them."""
        thread = self._thread
        if thread is not None:
            self.soon(self._end_all)
            thread.join(_PATIENCE_S)

    # --- in a strand ---

    def readable(self, watched: Watched, timeout_s: float | None) -> bool:
        """Give way until there is something to receive, or the end; ``False`` if the time is over before."""
        if watched.forgotten:
            return True
        if not watched.interests & selectors.EVENT_READ:
            self._want(watched, watched.interests | selectors.EVENT_READ)
        watched.strand = getcurrent()
        try:
            return bool(self._idle.switch()) if timeout_s is None else self.pause(timeout_s)
        finally:
            watched.strand = None

    def pause(self, seconds: float) -> bool:
        """Give way for a time; whether it was cut short."""
        me = getcurrent()
        if me is self._idle:
            raise RuntimeError("only a strand can give way")
        self._until[me] = time.monotonic() + seconds
        try:
            return bool(self._idle.switch())
        finally:
            del self._until[me]

    def apart(self, call: Callable[[], T]) -> T:
        """Give way while a thread of its own makes a call that waits; what it gives, or raises."""
        me = getcurrent()
        if me is self._idle:
            return call()
        results: list[T] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(call())
            except BaseException as error:  # noqa: BLE001 - it belongs to the strand
                errors.append(error)
            if not me.dead:
                self.soon(me.switch)

        threading.Thread(target=work, name=f"{self._name}-apart", daemon=True).start()
        self._idle.switch()
        if errors:
            raise errors[0]
        return results[0]

    # --- in the thread ---

    def when_writable(self, watched: Watched, *, wanted: bool = True) -> None:
        """Call ``watched.flush`` whenever the socket takes more, until it is not wanted any more."""
        if here() is self and not watched.forgotten:
            others = watched.interests & ~selectors.EVENT_WRITE
            self._want(watched, others | (selectors.EVENT_WRITE if wanted else 0))

    def forget(self, watched: Watched) -> None:
        """A socket is about to be closed: who waits for it goes on, and does not wait again."""
        if here() is self:
            self._want(watched, 0)
        watched.forgotten = True
        if watched.strand is not None:
            watched.strand.switch(_IN_TIME)

    def _start(self) -> None:
        """Not in the thread itself: whoever calls next already rings."""
        self._bell, self._button = socket.socketpair()
        self._bell.settimeout(0.0)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._rung = False
        _running.add(self)
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _own.strands = self
        self._idle = getcurrent()
        while not self._is_over():
            self._turn()

    def _is_over(self) -> bool:
        if self._living:
            return False
        with self._lock:
            if self._beginning or self._calls:
                return False
            self._thread = None
            for key in self._selector.get_map().values():
                if key.data is not None:
                    key.data.interests = 0
            for each in (self._selector, self._bell, self._button):
                each.close()
            return True

    def _turn(self) -> None:
        limit_s = max(0.0, min(self._until.values()) - time.monotonic()) if self._until else None
        watched: Watched | None
        for key, events in self._selector.select(limit_s):
            watched = key.data
            if watched is None:
                self._take_calls()
                continue
            if events & selectors.EVENT_WRITE:
                _make(watched.flush)
            if events & selectors.EVENT_READ:
                if watched.strand is not None:
                    watched.strand.switch(_IN_TIME)
                else:
                    # It is busy elsewhere, and asks again before it waits again.
                    self._want(watched, watched.interests & ~selectors.EVENT_READ)
        if self._until:
            now = time.monotonic()
            for strand in [strand for strand, until in self._until.items() if until <= now]:
                strand.switch(_LATE)

    def _take_calls(self) -> None:
        with suppress(BlockingIOError):
            self._bell.recv(_BELL_BYTES)
        with self._lock:
            self._rung = False
            calls, self._calls = self._calls, deque()
        for call in calls:
            _make(call)

    def _want(self, watched: Watched, interests: int) -> None:
        before, watched.interests = watched.interests, interests
        if before == interests:
            return
        if not before:
            self._selector.register(watched.sock, interests, watched)
        elif interests:
            self._selector.modify(watched.sock, interests, watched)
        else:
            self._selector.unregister(watched.sock)

    def _live(self, body: Callable[[], None]) -> None:
        me = getcurrent()
        self._living.add(me)
        with self._lock:
            self._beginning -= 1
        try:
            _make(body)
        finally:
            self._living.discard(me)

    def _end_all(self) -> None:
        for strand in list(self._living):
            strand.throw(GreenletExit)


class _Own(threading.local):
    """Whose thread this is."""

    strands: Strands | None = None


_own = _Own()


_running: "WeakSet[Strands]" = WeakSet()


@atexit.register
def _end_running() -> None:
    """A thread that is cut off in the middle of a strand takes the program down with it."""
    for strands in list(_running):
        strands.end()


def here() -> Strands | None:
    """The strands of this thread, if it has any."""
    return _own.strands


def apart(call: Callable[[], T]) -> T:
    """Make a call that waits: where that would hold up other connections, in a thread of its own."""
    strands = here()
    return call() if strands is None else strands.apart(call)


def _make(call: Callable[[], None]) -> None:
    """Make a call. If it fails that is told as of a thread that ends by it: the other connections go on."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever it is
        threading.excepthook(
            threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
        )
