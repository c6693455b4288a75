"""What a plug-in may do wrong, contained: it raises anything, prints, or does not come back.

A plug-in runs in this process, in a thread of its own that is left behind when it is late. What it prints through
``sys.stdout`` and ``sys.stderr`` is dropped: standard output belongs to the command, which may be writing JSON. (What
it writes to the file descriptors themselves, or from threads that it starts, is not seen here.)
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lumctl.errors import LumctlError
from lumctl.printable import printable
from lumctl.workers import Workers

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

_MOST_SAID = 300
"""How many characters of a plug-in's own words an error repeats."""


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

    A domain error of lumctl is the plug-in's answer, and raised as it is.

    Raises:
        LateError: it has not come back within so many seconds.
        MisbehavedError: it raised anything else.
    """
    context = copy_context()
    done = _workers.submit(lambda: context.run(_silent, call))
    try:
        return done.result(within_s)
    except LumctlError:
        raise
    except BaseException as error:
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
    except (Exception, SystemExit) as error:
        raise MisbehavedError(culprit, name, f"raised {_named(error)}") from error


_workers = Workers("plug-in")


def _begin_anew() -> None:
    global _workers  # noqa: PLW0603 - a forked process has none of these threads
    _workers = Workers("plug-in")


os.register_at_fork(after_in_child=_begin_anew)


def _named(error: BaseException) -> str:
    """An error in a line; a plug-in's error may even fail to say what it is."""
    kind = type(error).__name__
    try:
        said = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - it is a plug-in's own class
        said = ""
    return printable(f"{kind}: {said}"[:_MOST_SAID] if said else kind)


def _silent(call: Callable[[], T]) -> T:
    with _dropped():
        return call()


_drops: ContextVar[bool] = ContextVar("drops", default=False)


@contextmanager
def _dropped() -> Iterator[None]:
    """While inside, what this thread prints is dropped."""
    for name in ("stdout", "stderr"):
        if not isinstance(getattr(sys, name), _Selective):
            setattr(sys, name, _Selective(getattr(sys, name)))
    token = _drops.set(True)
    try:
        yield
    finally:
        _drops.reset(token)


class _Selective:
    """A standard stream that takes nothing from those who are to be silent; all else is the stream's own."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: Any) -> Any:
        return len(text) if _drops.get() else self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        if not _drops.get():
            self._stream.writelines(lines)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._stream, name)
        return _Selective(found) if name == "buffer" else found
