"""The revert guard while it waits: a process that runs this file by its path and imports only Python's library.

The engine writes lines into a pipe: the seconds that it may be silent from now on, and finally ``end``. When that time
has ended, or the pipe closes without ``end``, this process becomes the program that undoes the run
(:mod:`lumctl.change.guard_action`). Only that program imports lumctl, so a waiting guard needs little memory and
starts fast. Before the first line there is nothing to undo.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence

END = b"end"
GONE, SILENT, STOPPED = "gone", "silent", "stopped"
"""Why a run is undone: its engine died, was silent for too long, or did not end when the service was stopped."""

STOP_GRACE_S = 10.0
"""When a service stops, engine and guard are stopped together; the engine has this long to undo its run itself."""

_ACT = (
    "import pickle, sys; order = open(int(sys.argv[1]), 'rb'); sys.path[:] = pickle.load(order); "
    "from lumctl.change.guard_action import main; main(order, sys.argv[2], float(sys.argv[3]))"
)


class Watch:
    """Waits for a reason to undo the run. ``stop`` becomes readable when this process is asked to end."""

    def __init__(
        self,
        pipe: int,
        stop: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[Sequence[int], float | None], Sequence[int]] = lambda files, s: select.select(files, (), (), s)[
            0
        ],
    ) -> None:
        self._pipe, self._stop, self._clock, self._wait = pipe, stop, clock, wait
        self._most_s = float("inf")
        self._said = b""
        self._armed = False
        self.silent_s = float("inf")
        """How long the engine may be silent."""

    def reason(self) -> str | None:
        """Wait for a reason to undo the run; ``None`` if the run has ended or never began."""
        heard_at = self._clock()
        while (left := heard_at + min(self.silent_s, self._most_s) - self._clock()) > 0:
            ready = self._wait((self._pipe, self._stop), left if left < float("inf") else None)
            if self._stop in ready:
                os.read(self._stop, 1)
                heard_at, self._most_s = self._clock(), STOP_GRACE_S
            if self._pipe in ready:
                heard = os.read(self._pipe, 4096)
                if not heard:
                    return GONE if self._armed else None
                heard_at = self._clock()
                # A read may end in the middle of a line; the rest comes with the next one.
                *lines, self._said = (self._said + heard).split(b"\n")
                if END in lines:
                    return None
                if lines:
                    self._armed, self.silent_s = True, float(lines[-1])
        if not self._armed:
            return None
        return SILENT if self._most_s == float("inf") else STOPPED


def main(pipe: int, order: int) -> None:
    """Watch, and act if needed. The signals below were blocked before this process began."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop, stopping = os.pipe()
    os.set_blocking(stopping, False)
    # A signal writes one byte here, which ends the wait in `select`; the handler itself does nothing.
    signal.set_wakeup_fd(stopping)
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
    watch = Watch(pipe, stop)
    why = watch.reason()
    if why is None:
        os._exit(0)  # at once: the engine waits for this process
    # Ignored signals stay ignored across exec. A handler would not: SIGTERM could end the new program while it starts.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # From here on the engine sees that its guard has hung up, and renews its lease before each send.
    os.close(pipe)
    os.execv(sys.executable, [sys.executable, "-P", "-c", _ACT, str(order), why, str(watch.silent_s)])  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
