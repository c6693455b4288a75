"""Threads that the program does not wait for when it ends.

An executor of the standard library joins its threads when the program ends, so one host that hangs would delay the end
of ``lumctl status`` after its answer is printed. These are daemon threads; idle ones are used again or end after a
while. Their number is not limited, because with a limit one host that hangs could delay the reading of another.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_IDLE_S = 10.0
_Task = tuple["Future[Any]", Callable[[], Any]]


class Workers:
    """Runs calls in threads of its own."""

    def __init__(self, name: str, *, idle_s: float = _IDLE_S) -> None:
        self._name = name
        self._idle_s = idle_s
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._alive = 0
        self._closed = False

    def submit(self, call: Callable[[], T]) -> "Future[T]":
        """Start a call; its result or its error is in the future."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("these workers were dismissed")
            if self._idle:
                # Reserve the idle thread now, or two tasks would rely on the same thread.
                self._idle -= 1
            else:
                self._alive += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._alive}", daemon=True).start()
            self._tasks.put((future, call))
        return future

    def close(self) -> None:
        """Dismiss the threads without waiting; a busy thread ends when its call is done."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for _ in range(self._alive):
                    self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._next()) is not None:
            future, call = task
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the reader of the future gets it
                future.set_exception(error)
            # An idle thread must not keep the last call and its result in memory.
            del task, future, call
            with self._lock:
                self._idle += 1

    def _next(self) -> _Task | None:
        """The next task; ``None`` if this thread must end."""
        while True:
            try:
                return self._tasks.get(timeout=self._idle_s)
            except Empty:
                with self._lock:
                    # End only if no task was just queued for this thread. After close, each thread gets a ``None``.
                    if self._idle and not self._closed:
                        self._idle -= 1
                        self._alive -= 1
                        return None
