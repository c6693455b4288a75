"""What a plug-in may do wrong, contained: it raises anything, prints, or does not come back.

A plug-in runs in this process, in a thread of its own that is left behind when it is late. What it prints through
``sys.stdout`` and ``sys.stderr`` is dropped: standard output belongs to the command, which may be writing JSON. What
its own threads print is escaped. :mod:`lumctl.descriptors` catches what it writes to the file descriptors.
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
"""How many characters of a plug-in's own words an error repeats."""
_IN_TURN_S = 1.0
"""How long one waits for its turn; what hangs in its turn holds up the others no longer."""
_turns: dict[str, threading.Lock] = {}


@contextmanager
def in_turn(name: str) -> Iterator[None]:
    """Let threads that give the same name do something one after the other."""
    turn = _turns.setdefault(name, threading.Lock())
    mine = turn.acquire(timeout=_IN_TURN_S)
    try:
        yield
    finally:
        if mine:
            turn.release()


class MisbehavedError(LumctlError):
    """A plug-in did what no plug-in may do. The message says all of it, ``what`` the mistake alone."""

    def __init__(self, culprit: "Culprit", call: str, what: str) -> None:
        super().__init__(f"{culprit}: {call} {what}")
        self.what = what


class LateError(MisbehavedError):
    """A call has not come back in its time. ``late`` may come back yet."""

    def __init__(self, culprit: "Culprit", call: str, within_s: float, late: "Future[Any]") -> None:
        super().__init__(culprit, call, f"has not come back within {within_s:g} s")
        self.late = late


@dataclass(frozen=True, slots=True)
class Culprit:
    """Whom an error names: what kind of plug-in (``driver``), its name, and its package with the version."""

    what: str
    name: str
    origin: str

    @property
    def is_ours(self) -> bool:
        """Whether it comes with lumctl itself."""
        return self.origin.split(" ", 1)[0] == "lumctl"

    def __str__(self) -> str:
        return f"{self.what} {self.name!r} of {self.origin}"


def contained(culprit: Culprit, name: str, call: Callable[[], T], within_s: float) -> T:
    """What a call of a plug-in returns. ``name`` is what messages call it (``read_states of m1``).

    A domain error of lumctl is the plug-in's answer, and raised; a text of another package is shortened to a line.

    Raises:
        LateError: it has not come back within so many seconds.
        MisbehavedError: it raised anything else.
    """
    if not culprit.is_ours:
        limit_exit()
        catch_stray_output()
        _keep_the_process()
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
        if done.done():
            raise MisbehavedError(culprit, name, f"raised {_named(error)}") from error
        if isinstance(error, TimeoutError):
            raise LateError(culprit, name, within_s, done) from None
        raise  # Ctrl-C, say: it is ours


def contained_here(culprit: Culprit, name: str, call: Callable[[], T]) -> T:
    """As :func:`contained`, in the calling thread and without a time limit.

    For plug-ins that come with lumctl: their time limits are tested, and a thread of its own costs each call 0.1 ms.

    Raises:
        MisbehavedError: it raised anything but a domain error.
    """
    try:
        return _silent(call)
    except LumctlError:
        raise
    except (Exception, SystemExit, _EndOfProcessError) as error:
        raise MisbehavedError(culprit, name, f"raised {_named(error)}") from error


_ENDS = ("_exit", "abort", "execv", "execve")
"""Functions of ``os`` that end this process, or replace it: a false success at worst."""


class _EndOfProcessError(BaseException):
    """A plug-in called one of these; no ``except Exception`` of its own catches it."""


def _keep_the_process() -> None:
    """Make the functions of ``os`` that end the process raise in a contained call; a forked child may end."""
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
    """An error in a line; a plug-in's error may even fail to say what it is."""
    kind = type(error).__name__
    try:
        said = str(error).strip()
    except Exception:  # noqa: BLE001 - it is a plug-in's own class
        said = ""
    return one_line(f"{kind}: {said}" if said else kind, _MOST_SAID)


def _shorten(error: LumctlError) -> None:
    """Keep what a plug-in says in an error to a line: it goes into messages, the journal and incidents."""
    error.message = one_line(str(error.message), _MOST_SAID)
    error.args = (error.message,)
    if error.hint is not None:
        error.hint = one_line(str(error.hint), _MOST_SAID)


def _silent(call: Callable[[], T]) -> T:
    with _dropped():
        return call()


_drops: ContextVar[bool] = ContextVar("drops", default=False)


@contextmanager
def _dropped() -> Iterator[None]:
    """While inside, what this thread prints is dropped."""
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
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
    """A standard stream that takes nothing from those who are to be silent; all else is the stream's own.

    What comes from another thread than the main one may be a plug-in's; if ``escapes``, it is made printable.
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
        return _Selective(found, escapes=self._escapes) if name == "buffer" else found

    def _escaped(self, text: Any) -> Any:
        if not self._escapes or threading.current_thread() is threading.main_thread():
            return text
        if isinstance(text, str):
            return printable(text, lines=True)
        return printable(bytes(text).decode(errors="backslashreplace"), lines=True).encode()
