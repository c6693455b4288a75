"""The waits of a script for collectives, which can be released.

When a connection ends, gloo of PyTorch 2.13 informs the operations on its lists. An operation whose bytes have begun to
move is on no list: if its connection ends before the last byte, the caller waits for the time-out of collectives. So
helper threads wait for gloo. The script waits for the helper threads, and can be released from that.
"""

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from lumctl.training.torch.collective_times import waited
from lumctl.training.torch.stores import GivenUpError

if TYPE_CHECKING:
    # The public class has types only in the private module.
    from torch._C._distributed_c10d import Work
else:
    from torch.distributed import Work

Native = Callable[[], Any]
Outcome = SimpleQueue[tuple[Any, BaseException | None]]
_natively: Callable[..., Any] = Work.wait
_helpers: SimpleQueue[SimpleQueue[tuple[Native, Outcome]]] = SimpleQueue()
"""The queues of idle helper threads."""


class Waits:
    """The waits for collectives of one group. Any thread may call any method."""

    def __init__(self) -> None:
        self._waiting: set[Outcome] = set()
        self._left = False
        self._blocked_s = 0.0
        self._change = threading.Condition()

    def wait(self, native: Native) -> Any:
        """The result of ``native``, or its error.

        Raises:
            GivenUpError: the collective did not end before :meth:`leave`.
        """
        outcome: Outcome = SimpleQueue()
        with self._change:
            if self._left:
                raise given_up()
            self._waiting.add(outcome)
        began = time.monotonic()
        try:
            _helper().put((native, outcome))
            found, error = outcome.get()
        finally:
            with self._change:
                self._waiting.discard(outcome)
                self._blocked_s += time.monotonic() - began
                self._change.notify_all()
        if error is not None:
            raise error
        return found

    def blocked_s(self) -> float:
        """How long threads have waited since the last call, in seconds."""
        with self._change:
            found, self._blocked_s = self._blocked_s, 0.0
            return found

    def leave(self, within_s: float) -> None:
        """Release waits that do not end within ``within_s``, and all later ones, with an error."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting, within_s)
            self._left = True
            for outcome in self._waiting:
                outcome.put((None, given_up()))

    def take_over(self) -> None:
        """Route all waits for collectives of this process through this object."""
        global _current  # noqa: PLW0603 - a process has one class `Work`, and one group at a time
        _current = self
        setattr(Work, "wait", _wait)  # noqa: B010 - to mypy, assigning a method is an error


_current = Waits()


def keep(groups: list[object], for_s: float) -> None:
    """Keep groups alive for ``for_s``: freeing a group waits for its threads, which may wait for a lost peer.

    Its threads may also wait for the interpreter lock, to free a tensor. The thread that frees the group holds it.
    """
    never_set = threading.Event()

    def hold_on() -> None:  # the objects that this thread refers to stay alive with it
        never_set.wait(for_s)
        groups.clear()

    threading.Thread(target=hold_on, name="lumctl-group-left", daemon=True).start()


def natively(work: Work, *timeout: Any) -> None:
    """Wait for a collective without recording that; nothing releases the thread. Raises its error."""
    _natively(work, *timeout)


def _wait(work: Work, *given: Any, **named: Any) -> Any:
    """The replacement of ``Work.wait``."""

    def native() -> Any:
        return _natively(work, *given, **named)

    return waited(work, native if work.is_completed() else lambda: _current.wait(native))


def _helper() -> "SimpleQueue[tuple[Native, Outcome]]":
    try:
        return _helpers.get_nowait()
    except Empty:
        asked: SimpleQueue[tuple[Native, Outcome]] = SimpleQueue()
        threading.Thread(target=_help, args=(asked,), name="lumctl-collective", daemon=True).start()
        return asked


def _help(asked: "SimpleQueue[tuple[Native, Outcome]]") -> None:
    while True:
        native, outcome = asked.get()
        try:
            found, error = native(), None
        except BaseException as raised:  # noqa: BLE001 - the waiting thread raises it
            found, error = None, raised
        del native
        _helpers.put(asked)
        outcome.put((found, error))
        del found, error, outcome


def given_up() -> GivenUpError:
    """The error of what an abandoned group was to do."""
    return GivenUpError("the group is abandoned")
