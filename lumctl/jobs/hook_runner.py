"""Runs a hook. Lumctl starts this file by its path; it needs only the standard library and leads a process group.

Two hooks of one job never run at the same time: the running one holds a lock. A hook never outlives the program that
started it: if that program is killed, another process undoes its run and calls the opposite hook.
"""

import fcntl
import os
import signal
import subprocess
import sys

PARENT_DIED = 1
"""``PR_SET_PDEATHSIG`` of prctl(2)."""
GRACE_S = 2
NOT_STARTED, CUT = 127, 125
"""Exit codes of this program itself, with the values that shells and timeout(1) use."""

_cut_short: list[int] = []
"""The signal that reported the death of the program that started the hook."""


def main(parent: int, lock: str, argv: list[str]) -> int:
    """Run a hook to its end; return its exit code, or 128 plus the number of the signal that ended it."""
    # Handlers before prctl: by default, SIGUSR1 would end this program and leave the hook running.
    signal.signal(signal.SIGTERM, _stay)
    signal.signal(signal.SIGUSR1, _cut)
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - where it is needed

        # Not SIGKILL: this program must survive its parent, to end what the hook has started. The kernel sends the
        # signal when the thread that forked this program ends; run_program() waits for it in that thread.
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGUSR1)
    # The parent may have died before prctl took effect; then no signal comes.
    if os.getppid() != parent:
        return CUT
    # The lock ends with this program, even if the hook leaves processes running: they do not inherit the descriptor.
    fcntl.flock(_opened(lock), fcntl.LOCK_EX)
    if _cut_short:
        return CUT  # the caller died while another hook held the lock
    try:
        code = subprocess.Popen(argv, stdin=subprocess.DEVNULL).wait()  # noqa: S603 - the operator's own program
    except OSError as error:
        print(f"{argv[0]} cannot be run: {error.strerror}", flush=True)  # noqa: T201 - the caller reads it
        return NOT_STARTED
    if _cut_short:
        os.killpg(0, signal.SIGKILL)  # ends what the hook has started, and this program
    return code if code >= 0 else 128 - code


def _opened(lock: str) -> int:
    """Open the lock file. An existing one is opened even if it cannot be written: a paused job must be resumed."""
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)


def _stay(_number: int, _frame: object) -> None:
    """Handle a termination signal to the process group: keep the lock until the hook has ended.

    This is a handler because the hook would inherit an ignored signal.
    """


def _cut(number: int, _frame: object) -> None:
    """Handle the death of the caller: end the hook, all that it started, and this program."""
    _cut_short.append(number)
    # The group contains this program as well, which survives: see _stay().
    os.killpg(0, signal.SIGTERM)
    # An alarm, because the main code still waits for the hook.
    signal.signal(signal.SIGALRM, lambda _number, _frame: os.killpg(0, signal.SIGKILL))
    signal.alarm(GRACE_S)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
