"""One thread that receives for many connections.

paramiko gives each connection a thread. When hundreds of threads have work at once, each waits for the interpreter's
lock at nearly every system call, and passing the lock on costs more than the work itself. So the code of a connection's
thread runs here as a task of one shared thread. A task is a greenlet, which yields only while it waits for its socket.
Code in this thread must not wait for anything else; calls that have to wait go through :func:`run_apart`.
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

_WAKE_BYTES = 4096
_BUFFER_BYTES = 64 * 1024
_READY, _TIMED_OUT = True, False
"""Why a waiting task continues; passed to the task."""
_JOIN_TIMEOUT_S = 5.0
"""How long the program waits for the thread when it exits, because the thread may be in the middle of its work."""


@dataclass(slots=True)
class SocketWatch:
    """A non-blocking socket, and the task that waits until there is something to receive."""

    sock: socket.socket
    flush: Callable[[], None]
    """Called in the thread when the socket accepts more bytes, after :meth:`EventLoop.watch_writable`."""
    task: greenlet | None = None
    interests: int = 0
    closed: bool = False


class EventLoop:
    """The thread and its tasks. The thread starts with the first task and ends with the last."""

    def __init__(self, name: str) -> None:
        self.buffer = memoryview(bytearray(_BUFFER_BYTES))
        """Receive buffer of the running task; allocating a buffer for each call would cost more than receiving."""
        self._name = name
        self._lock = threading.Lock()
        self._tasks: set[greenlet] = set()
        # Tasks that were requested and have not begun. While there are any, the thread must not end.
        self._starting = 0
        self._calls: deque[Callable[[], None]] = deque()
        self._wake_times: dict[greenlet, float] = {}
        self._thread: threading.Thread | None = None
        self._selector: selectors.BaseSelector
        self._wake_receiver: socket.socket
        self._wake_sender: socket.socket
        self._wake_sent = False
        self._hub: greenlet
        """The greenlet that runs while no task does. It waits for all sockets at once."""

    # --- from any thread ---

    def start_task(self, body: Callable[[], None]) -> None:
        """Run ``body`` as a task."""
        with self._lock:
            self._starting += 1
            if self._thread is None:
                self._start_thread()
        self.call_soon(lambda: greenlet(self._run_task).switch(body))

    def call_soon(self, call: Callable[[], None]) -> None:
        """Make a call that does not wait: in the thread, or right here if the thread does not run."""
        with self._lock:
            # Under the lock, because `_is_over` closes these sockets under it. One byte wakes the thread for all calls.
            if self._thread is not None:
                self._calls.append(call)
                if not self._wake_sent:
                    self._wake_sent = True
                    self._wake_sender.send(b"!")
                return
        call()

    def end(self) -> None:
        """End all tasks where they wait; the thread ends with them."""
        thread = self._thread
        if thread is not None:
            self.call_soon(self._end_tasks)
            thread.join(_JOIN_TIMEOUT_S)

    # --- in a task ---

    def wait_readable(self, watch: SocketWatch, timeout_s: float | None) -> bool:
        """Yield until there is something to receive, or the socket is closed; ``False`` after ``timeout_s``."""
        if watch.closed:
            return True
        # It stays registered between waits: registering again costs a system call for each packet.
        if not watch.interests & selectors.EVENT_READ:
            self._set_interests(watch, watch.interests | selectors.EVENT_READ)
        watch.task = getcurrent()
        try:
            return bool(self._hub.switch()) if timeout_s is None else self.sleep(timeout_s)
        finally:
            watch.task = None

    def sleep(self, seconds: float) -> bool:
        """Yield for a time; ``True`` if something woke the task earlier."""
        task = getcurrent()
        if task is self._hub:
            raise RuntimeError("only a task can yield")
        self._wake_times[task] = time.monotonic() + seconds
        try:
            return bool(self._hub.switch())
        finally:
            del self._wake_times[task]

    def run_apart(self, call: Callable[[], T]) -> T:
        """Make a call that waits in a separate thread, and yield meanwhile. Return or raise what the call does."""
        task = getcurrent()
        if task is self._hub:
            # The hub cannot yield, so here the call does hold up the other connections.
            return call()
        results: list[T] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(call())
            except BaseException as error:  # noqa: BLE001 - it belongs to the task
                errors.append(error)
            # `end` may have ended the task meanwhile.
            if not task.dead:
                self.call_soon(task.switch)

        threading.Thread(target=work, name=f"{self._name}-apart", daemon=True).start()
        self._hub.switch()
        if errors:
            raise errors[0]
        return results[0]

    # --- in the thread ---

    def watch_writable(self, watch: SocketWatch, *, wanted: bool = True) -> None:
        """Call ``watch.flush`` each time the socket accepts more bytes; stop if ``wanted`` is false."""
        if current_loop() is self and not watch.closed:
            others = watch.interests & ~selectors.EVENT_WRITE
            self._set_interests(watch, others | (selectors.EVENT_WRITE if wanted else 0))

    def unwatch(self, watch: SocketWatch) -> None:
        """Stop watching a socket that is about to be closed. The task that waits for it continues."""
        if current_loop() is self:
            # Otherwise no thread runs, and there is no selector that knows the socket.
            self._set_interests(watch, 0)
        watch.closed = True
        if watch.task is not None:
            watch.task.switch(_READY)

    def _start_thread(self) -> None:
        """Start the thread. The sockets are made here, because the caller's next call already sends a wake-up byte."""
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.settimeout(0.0)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
        self._wake_sent = False
        _running.add(self)
        # A daemon thread, which `_end_running` ends. Python joins other threads before it runs atexit functions, and
        # this one would wait for its hosts for ever.
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # `current_loop` tells code in this thread that it must not wait.
        _current.loop = self
        self._hub = getcurrent()
        while not self._is_over():
            self._turn()

    def _is_over(self) -> bool:
        if self._tasks:
            return False
        with self._lock:
            if self._starting or self._calls:
                return False
            # From here on, `start_task` starts another thread, with a selector and sockets of its own.
            self._thread = None
            for key in self._selector.get_map().values():
                if key.data is not None:
                    # The next thread's selector does not know the socket, so it must be registered again.
                    key.data.interests = 0
            for each in (self._selector, self._wake_receiver, self._wake_sender):
                each.close()
            return True

    def _turn(self) -> None:
        limit_s = max(0.0, min(self._wake_times.values()) - time.monotonic()) if self._wake_times else None
        watch: SocketWatch | None
        for key, events in self._selector.select(limit_s):
            watch = key.data
            if watch is None:
                self._run_calls()
                continue
            if events & selectors.EVENT_WRITE:
                _make(watch.flush)
            if events & selectors.EVENT_READ:
                if watch.task is not None:
                    watch.task.switch(_READY)
                else:
                    # The task waits for something else now. It watches its socket again before it waits for it.
                    self._set_interests(watch, watch.interests & ~selectors.EVENT_READ)
        if self._wake_times:
            now = time.monotonic()
            for task in [task for task, wake_time in self._wake_times.items() if wake_time <= now]:
                task.switch(_TIMED_OUT)

    def _run_calls(self) -> None:
        with suppress(BlockingIOError):
            # First: a call that comes after this and before the lock sends no byte, but is among those taken below.
            self._wake_receiver.recv(_WAKE_BYTES)
        with self._lock:
            self._wake_sent = False
            calls, self._calls = self._calls, deque()
        for call in calls:
            _make(call)

    def _set_interests(self, watch: SocketWatch, interests: int) -> None:
        before, watch.interests = watch.interests, interests
        if before == interests:
            return
        if not before:
            self._selector.register(watch.sock, interests, watch)
        elif interests:
            self._selector.modify(watch.sock, interests, watch)
        else:
            self._selector.unregister(watch.sock)

    def _run_task(self, body: Callable[[], None]) -> None:
        task = getcurrent()
        self._tasks.add(task)
        with self._lock:
            self._starting -= 1
        try:
            _make(body)
        finally:
            self._tasks.discard(task)

    def _end_tasks(self) -> None:
        for task in list(self._tasks):
            task.throw(GreenletExit)


class _Current(threading.local):
    """The event loop that runs in this thread."""

    loop: EventLoop | None = None


_current = _Current()


_running: "WeakSet[EventLoop]" = WeakSet()


@atexit.register
def _end_running() -> None:
    """End all loops, because the interpreter crashes if it exits while a thread is in the middle of a task."""
    for loop in list(_running):
        loop.end()


def current_loop() -> EventLoop | None:
    """The event loop that runs in this thread; ``None`` if none does."""
    return _current.loop


def run_apart(call: Callable[[], T]) -> T:
    """Make a call that waits; in a separate thread if it would delay other connections."""
    loop = current_loop()
    return call() if loop is None else loop.run_apart(call)


def _make(call: Callable[[], None]) -> None:
    """Make a call. Its error is reported like an uncaught error of a thread, and the other connections continue."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever it is
        threading.excepthook(
            threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
        )
