"""Contains faults of plug-ins: a plug-in may raise any error, print, or never return.

A plug-in runs in this process, in a thread of its own that is abandoned when a call is late. Its output through
``sys.stdout`` and ``sys.stderr`` is dropped: standard output belongs to the command, which may be writing JSON. Output
of threads that the plug-in starts is escaped. :mod:`lumctl.descriptors` catches output to the file descriptors.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lumctl.descriptors import catch_stray_output
from lumctl.errors import LumctlError
from lumctl.printable import one_line, printable
from lumctl.process_exit import limit_exit
from lumctl.workers import Workers

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

_MOST_SAID = 500
"""Maximum length of a plug-in's own text in an error, in characters."""
_IN_TURN_S = 1.0
"""Seconds that a thread waits for its turn; then it continues, because the thread before it may hang."""
_turns: dict[str, threading.Lock] = {}


@contextmanager
def in_turn(name: str) -> Iterator[None]:
    """Run blocks of the same name in one thread at a time."""
    # One operation: two threads that come at the same time get the same lock.
    turn = _turns.setdefault(name, threading.Lock())
    mine = turn.acquire(timeout=_IN_TURN_S)
    try:
        yield
    finally:
        # A thread that went on without its turn must not release the lock of the thread that still has it.
        if mine:
            turn.release()


class MisbehavedError(LumctlError):
    """A plug-in broke a rule of plug-ins. The message names plug-in and call; ``what`` is only the mistake."""

    def __init__(self, culprit: "Culprit", call: str, what: str) -> None:
        super().__init__(f"{culprit}: {call} {what}")
        self.what = what


class LateError(MisbehavedError):
    """A call has not returned within its time limit. It may still complete ``late``."""

    def __init__(self, culprit: "Culprit", call: str, within_s: float, late: "Future[Any]") -> None:
        super().__init__(culprit, call, f"has not returned within {within_s:g} s")
        self.late = late


@dataclass(frozen=True, slots=True)
class Culprit:
    """The plug-in that an error names: its kind (``driver``), its name, and its package with the version."""

    what: str
    name: str
    origin: str

    @property
    def is_ours(self) -> bool:
        """Whether the plug-in is part of lumctl itself."""
        return self.origin.split(" ", 1)[0] == "lumctl"

    def __str__(self) -> str:
        return f"{self.what} {self.name!r} of {self.origin}"


def contained(culprit: Culprit, name: str, call: Callable[[], T], within_s: float) -> T:
    """Call a plug-in and return its result. ``name`` is the call's name in messages (``read_states of m1``).

    A domain error of lumctl is a valid answer and is raised; texts of other packages are shortened to one line.

    Raises:
        LateError: the call has not returned within ``within_s`` seconds.
        MisbehavedError: the call raised any other error.
    """
    if not culprit.is_ours:
        # Before the plug-in runs: its output, its threads and its exit handlers are caught only from here on.
        limit_exit()
        catch_stray_output()
        _keep_the_process()
    # The worker must see the caller's context variables: with an empty context a driver could send to a device after
    # the caller's lease has ended.
    context = copy_context()
    done = _workers.submit(lambda: context.run(_silent, call))
    try:
        return done.result(within_s)
    except LumctlError as error:
        if not culprit.is_ours:
            try:
                _shorten(error)
            except Exception:  # noqa: BLE001 - the plug-in's own class may fail here
                raise MisbehavedError(culprit, name, f"raised {_named(error)}") from error
        raise
    except BaseException as error:
        if isinstance(error, _EndOfProcessError):
            raise MisbehavedError(culprit, name, str(error)) from None
        # The very error of the call: a TimeoutError may be the plug-in's own, and Ctrl-C may come as the call ends.
        if done.done() and done.exception() is error:
            raise MisbehavedError(culprit, name, f"raised {_named(error)}") from error
        if isinstance(error, TimeoutError):
            raise LateError(culprit, name, within_s, done) from None
        raise  # for example Ctrl-C, which is not the plug-in's


def contained_here(culprit: Culprit, name: str, call: Callable[[], T]) -> T:
    """As :func:`contained`, in the calling thread and without a time limit.

    For lumctl's own plug-ins: their time limits are tested, and a separate thread would cost each call 0.1 ms.

    Raises:
        MisbehavedError: the call raised an error that is not a domain error.
    """
    try:
        return _silent(call)
    except LumctlError:
        raise
    # Not KeyboardInterrupt: in the calling thread it is the operator's Ctrl-C.
    except (Exception, SystemExit, _EndOfProcessError) as error:
        raise MisbehavedError(culprit, name, f"raised {_named(error)}") from error


_ENDS = ("_exit", "abort", "execv", "execve")
"""Functions of ``os`` that end or replace this process; a caller could take that for success."""


class _EndOfProcessError(BaseException):
    """A plug-in called one of these functions; its own ``except Exception`` cannot catch this error."""


def _keep_the_process() -> None:
    """Make the functions of ``os`` that end the process raise in a contained call; forked children may still end."""
    for name in _ENDS:
        real = getattr(os, name)
        if not hasattr(real, "ends_the_process"):
            setattr(os, name, _refusing(name, real, os.getpid()))


def _refusing(name: str, real: Callable[..., Any], process: int) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if _drops.get() and os.getpid() == process:
            raise _EndOfProcessError(f"called os.{name}, which ends the process")
        return real(*args, **kwargs)

    vars(refuse)["ends_the_process"] = True
    return refuse


_workers = Workers("plug-in")


def _begin_anew() -> None:
    global _workers  # noqa: PLW0603 - a forked process has none of these threads
    _workers = Workers("plug-in")


os.register_at_fork(after_in_child=_begin_anew)


def _named(error: BaseException) -> str:
    """An error in one line; even ``str()`` of a plug-in's error may fail."""
    kind = type(error).__name__
    try:
        said = str(error).strip()
    except Exception:  # noqa: BLE001 - it is a plug-in's own class
        said = ""
    return one_line(f"{kind}: {said}" if said else kind, _MOST_SAID)


def _shorten(error: LumctlError) -> None:
    """Shorten a plug-in's texts in an error to one line each: messages, the journal and incidents contain them."""
    error.message = one_line(str(error.message), _MOST_SAID)
    # ``str()`` of an exception prints its ``args``, not ``message``.
    error.args = (error.message,)
    if error.hint is not None:
        error.hint = one_line(str(error.hint), _MOST_SAID)


def _silent(call: Callable[[], T]) -> T:
    with _dropped():
        return call()


_drops: ContextVar[bool] = ContextVar("drops", default=False)


@contextmanager
def _dropped() -> Iterator[None]:
    """Within the block, drop the output of this thread."""
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        # Checked at each call: a stream that was replaced since, for example by the pager, must be wrapped too.
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Selective):
            # The dashboard draws through sys.__stderr__, in a thread.
            setattr(sys, name, _Selective(stream, escapes=not name.startswith("_")))
    token = _drops.set(True)
    try:
        yield
    finally:
        _drops.reset(token)


class _Selective:
    """A standard stream that drops output of contained calls; otherwise it behaves as the original stream.

    Output of other threads than the main one may be a plug-in's; with ``escapes`` it is made printable.
    """

    def __init__(self, stream: Any, *, escapes: bool) -> None:
        self._stream = stream
        self._escapes = escapes

    def write(self, text: Any) -> Any:
        if _drops.get():
            return len(text)
        return self._stream.write(self._escaped(text))

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._stream, name)
        # Without this, bytes written to ``buffer`` would bypass the drop.
        return _Selective(found, escapes=self._escapes) if name == "buffer" else found

    def _escaped(self, text: Any) -> Any:
        if not self._escapes or threading.current_thread() is threading.main_thread():
            return text
        if isinstance(text, str):
            return printable(text, lines=True)
        return printable(bytes(text).decode(errors="backslashreplace"), lines=True).encode()
