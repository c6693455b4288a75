"""Waiting for a collective in a way that can be left.

gloo of PyTorch 2.13 tells the operations on its lists when a connection ends. An operation whose bytes have begun to
move is on no list: if the connection ends before its last byte, whoever waits for it waits for the time-out of
collectives. So threads that are kept for it wait for gloo, and the script waits for them.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from lumctl.training.torch.stores import GivenUpError

if TYPE_CHECKING:
    # What is public is typed in the private module only.
    from torch._C._distributed_c10d import Work
else:
    from torch.distributed import Work

Native = Callable[[], Any]
Outcome = SimpleQueue[tuple[Any, BaseException | None]]
_natively: Callable[..., Any] = Work.wait
_helpers: SimpleQueue[SimpleQueue[tuple[Native, Outcome]]] = SimpleQueue()
"""Where threads are asked that wait for nothing now."""


class Waits:
    """Those who wait for collectives of one group; each method may be called by any thread."""

    def __init__(self) -> None:
        self._waiting: set[Outcome] = set()
        self._left = False
        self._change = threading.Condition()

    def wait(self, native: Native) -> Any:
        """What ``native`` gives, or raises.

        Raises:
            GivenUpError: it did not come to its end before :meth:`leave`.
        """
        outcome: Outcome = SimpleQueue()
        with self._change:
            if self._left:
                raise _given_up()
            self._waiting.add(outcome)
        try:
            _helper().put((native, outcome))
            found, error = outcome.get()
        finally:
            with self._change:
                self._waiting.discard(outcome)
                self._change.notify_all()
        if error is not None:
            raise error
        return found

    def leave(self, within_s: float) -> None:
        """Have those go on with an error who do not come to their end by then, and whoever waits later."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting, within_s)
            self._left = True
            for outcome in self._waiting:
                outcome.put((None, _given_up()))

    def take_over(self) -> None:
        """From now on whatever in this process waits for a collective waits here."""
        global _current  # noqa: PLW0603 - there is one class of PyTorch's in a process, and one group at a time
        _current = self
        setattr(Work, "wait", _wait)  # noqa: B010 - to mypy, assigning a method is an error


_current = Waits()


def keep(groups: list[object], for_s: float) -> None:
    """Have groups live for so long: whoever frees one waits for its threads, and they may wait for a lost peer.

    They may also wait for Python's interpreter, to free a tensor, and whoever frees the group holds that.
    """
    nothing_comes = threading.Event()

    def hold_on() -> None:  # what a thread knows is there to the end of the process, whatever is torn down before
        nothing_comes.wait(for_s)
        groups.clear()

    threading.Thread(target=hold_on, name="lumctl-group-left", daemon=True).start()


def _wait(work: Work, *given: Any, **named: Any) -> Any:
    """What takes the place of ``Work.wait``."""
    if work.is_completed():
        return _natively(work, *given, **named)
    return _current.wait(lambda: _natively(work, *given, **named))


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
        except BaseException as raised:  # noqa: BLE001 - whoever waits raises it
            found, error = None, raised
        del native
        _helpers.put(asked)
        outcome.put((found, error))
        del found, error, outcome


def _given_up() -> GivenUpError:
    return GivenUpError("the group is given up")
